"""docs/releases.md shows the table of the simulation."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.simulations.releases import CELLS, Pairs, ReleaseCell, simulate, table_row

PAGE = Path(__file__).parents[2] / "docs/releases.md"
DATA = os.environ.get("CONCORD_TEST_DATA", "")


@pytest.mark.endurance
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: f"{cell.changed:.0%}")
def test_simulation_table_is_up_to_date(cell: ReleaseCell) -> None:
    row = table_row(cell, simulate(Pairs(Path(DATA)), cell, 1000))
    assert f"| {' | '.join(row)} |" in PAGE.read_text(encoding="utf-8")
