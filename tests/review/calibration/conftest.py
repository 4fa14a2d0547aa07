"""The judge of these tests is a script; nothing is sent anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import pytest

from tests.prepared import module_db
from tests.review.calibration.place import Place, scripted
from tests.review.calibration.world import World

__all__ = ["module_db"]


@pytest.fixture(scope="module")
def prepared_place(module_db: None) -> Place:
    """The place that every test of the module starts from."""
    return Place()


@pytest.fixture
def place(prepared_place: Place, db: None) -> Iterator[Place]:
    """A copy of the place, so that no test changes the rows that another one holds."""
    copy = deepcopy(prepared_place)
    with scripted(copy):
        yield copy


@pytest.fixture(scope="module")
def prepared_world(module_db: None) -> World:
    """The world that every test of the module starts from."""
    return World()


@pytest.fixture
def world(prepared_world: World, db: None) -> World:
    """A copy of the world."""
    return deepcopy(prepared_world)
