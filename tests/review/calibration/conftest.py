"""The judge of these tests is a script; nothing is sent anywhere."""

from __future__ import annotations

import pytest

from evaluation.judging.calls import Rung
from evaluation.scoring import aside
from evaluation.scoring.aside import Reached
from review.calibration import turns
from tests.review.calibration.place import Place


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    found = Place()
    monkeypatch.setattr(aside, "client_of", lambda _: found.script)
    monkeypatch.setattr(turns, "reach", lambda _: Reached(Rung.JSON_SCHEMA, "model-1"))
    return found
