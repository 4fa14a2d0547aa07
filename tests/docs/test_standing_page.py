"""docs/releases.md shows the table of the simulation of standing scores."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.simulations.standing import standing_table

PAGE = Path(__file__).parents[2] / "docs/releases.md"
DATA = os.environ.get("CONCORD_TEST_DATA", "")


@pytest.mark.endurance
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
def test_simulation_table_is_up_to_date() -> None:
    *table, goals = standing_table(Path(DATA), 400)
    assert "\n".join(table) in PAGE.read_text(encoding="utf-8")
    assert goals == "\ngoals: met"
