"""Calibration fixtures with a scripted judge; no request leaves the process."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import pytest

from tests.prepared import module_db
from tests.review.calibration.place import CalibrationSetup, scripted_judge
from tests.review.calibration.world import World

__all__ = ["module_db"]


@pytest.fixture(scope="module")
def prepared_place(module_db: None) -> CalibrationSetup:
    return CalibrationSetup()


@pytest.fixture
def place(prepared_place: CalibrationSetup, db: None) -> Iterator[CalibrationSetup]:
    """Copy of the prepared setup, so that tests do not share model instances."""
    copy = deepcopy(prepared_place)
    with scripted_judge(copy):
        yield copy


@pytest.fixture(scope="module")
def prepared_world(module_db: None) -> World:
    return World()


@pytest.fixture
def world(prepared_world: World, db: None) -> World:
    return deepcopy(prepared_world)
