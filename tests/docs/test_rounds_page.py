"""docs/correction.md shows the table of the simulation of rounds."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tools.simulations.coverage import populations
from tools.simulations.rounds import LEAST_COVERAGE, MOST_WIDTH, MOST_WRONG, SCALES, simulate, simulation_table

PAGE = Path(__file__).parents[2] / "docs/correction.md"
DATA = os.environ.get("CONCORD_TEST_DATA", "")


@pytest.mark.endurance
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
def test_simulation_table_is_up_to_date() -> None:
    lines = list(simulation_table(Path(DATA), 400))
    start = lines.index("") + 1
    assert "\n".join(lines[start : start + 2 + len(SCALES)]) in PAGE.read_text(encoding="utf-8")
    assert not any("missed" in line for line in lines)


@pytest.mark.slow
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
@pytest.mark.parametrize("scale", SCALES)
def test_small_simulation_keeps_promised_limits(scale: str) -> None:
    """60 reviews of one population, so that shares may be three standard deviations off: .08 of the coverage and of
    wrong verdicts. The width is promised for the mean of a scale's populations."""
    population = next(population for population in populations(Path(DATA)) if population.scale == scale)
    cell = simulate(population, "stratified", 60)
    assert cell.width <= MOST_WIDTH + 0.05
    assert cell.composite >= LEAST_COVERAGE - 0.08
    assert cell.wrong <= MOST_WRONG + 0.08
