"""Are two rounds of 50 ratings worth one draw of 100, and do verdicts at either look hold their error?

    CONCORD_TEST_DATA=... python -m tools.simulations.rounds [--draws 400]

Two planned rounds of 50 are drawn through the product, the second with the answers of the first as certain, and
combined. ``width`` is the width of the composite's 95% interval over that of one draw of 100, ``last round`` the same
for the second round's own interval. ``one draw`` and ``composite`` are coverages of 95% intervals. ``wrong`` is the
share of reviews in which the interval of either look misses the truth, at 97.5% each: a limit at the truth then gives a
wrong verdict. ``at 95%`` is the same without sharing the error."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from review.statistics.correction.corrected import corrected_component
from review.statistics.correction.frame import Component, EarlierRound, ReviewState, SamplingFrame
from review.statistics.correction.outcome import Estimate
from review.statistics.paired_tests.gate import gate_confidence
from review.statistics.sampling.draw import draw
from review.statistics.sampling.member import DrawParams, Member, Strategy
from tools.simulations.coverage import DESIGNS, Population, populations

ROUND, LOOKS = 50, 2
SCALES = ("openqa", "coherence", "consistency")
MOST_WIDTH, LEAST_COVERAGE, MOST_WRONG = 1.10, 0.93, 0.05
Array = np.ndarray


@dataclass(frozen=True, slots=True)
class RoundsCell:
    """Results of a judge and design: ratios of mean widths, coverages, and shares of reviews with a wrong verdict."""

    width: float
    last_round: float
    one_draw: float
    composite: float
    wrong: float
    wrong_at_95: float


def simulate(population: Population, design: str, draws: int) -> RoundsCell:
    """Simulate ``draws`` reviews of two rounds, each beside one draw of all their answers."""
    truth, rows = population.expert.mean(), []
    members = [Member(key, "", float(value)) for key, value in enumerate(population.judge)]
    for seed in range(draws):
        one = Component("x", _frame(population, members, design, LOOKS * ROUND, 2 * seed), *_scale(population))
        first = _frame(population, members, design, ROUND, 2 * seed)
        rated = frozenset(np.flatnonzero(first.labelled).tolist())
        last = _frame(population, members, design, ROUND, 2 * seed + 1, rated)
        composite = Component("x", last, *_scale(population), earlier=(EarlierRound(first),))
        single, alone = replace(composite, frame=first, earlier=()), replace(composite, earlier=())
        whole = [_interval(component) for component in (one, composite, alone)]
        if None in whole:
            continue
        (one_low, one_high), (low, high), (last_low, last_high) = (ends for ends in whole if ends)
        looks = [
            [_interval(component, confidence) for component in (single, composite)]
            for confidence in (gate_confidence(LOOKS), gate_confidence(1))
        ]
        wrong = [any(ends and not ends[0] <= truth <= ends[1] for ends in both) for both in looks]
        rows.append(
            (
                *(one_high - one_low, high - low, last_high - last_low),
                *(one_low <= truth <= one_high, low <= truth <= high, *wrong),
            )
        )
    one_width, width, last_width, one_draw, covered, wrong_rate, at_95 = np.array(rows, float).mean(axis=0)
    return RoundsCell(width / one_width, last_width / one_width, one_draw, covered, wrong_rate, at_95)


def _scale(population: Population) -> tuple[float, float]:
    return population.low, population.high


def _frame(
    population: Population,
    members: list[Member],
    design: str,
    size: int,
    seed: int,
    certain: frozenset[int] = frozenset(),
) -> SamplingFrame:
    """Frame of a draw in which every sampled answer is rated."""
    drawn = draw(members, Strategy(design), size, seed, DrawParams(certain=certain))
    sampled = np.array([answer.sampled for answer in drawn])
    strata = list(dict.fromkeys(answer.stratum for answer in drawn))
    numbers = range(len(drawn))
    return SamplingFrame(
        key=np.array(numbers),
        names=numbers,
        judge=population.judge,
        rating=np.where(sampled, population.expert, np.nan),
        state=np.where(sampled, int(ReviewState.RATED), int(ReviewState.NOT_SAMPLED)),
        probability=np.array([answer.probability for answer in drawn], float),
        stratum=np.array([strata.index(answer.stratum) for answer in drawn]),
        strata=strata,
        group=np.array(numbers),
        groups=numbers,
        in_prompt=np.zeros(len(drawn), dtype=bool),
    )


def _interval(component: Component, confidence: float = 0.95) -> tuple[float, float] | None:
    outcome = corrected_component(component, confidence=confidence)
    return (outcome.low, outcome.high) if isinstance(outcome, Estimate) else None


def simulation_table(folder: Path, draws: int) -> Iterator[str]:
    """One row per judge and design, and the goals by scale."""
    yield "| scale | judge | design | width | last round | one draw | composite | wrong | at 95% |"
    yield "|---" * 9 + "|"
    cells: dict[str, list[RoundsCell]] = {}
    for population in populations(folder):
        for design in DESIGNS if population.scale in SCALES else ():
            cell = simulate(population, design, draws)
            cells.setdefault(population.scale, []).append(cell)
            yield f"| {population.scale} | {population.name} | {design} {_cells(cell)}"
    yield from ("", *summary_table(cells), "")
    for name, goal, met in _goals(cells):
        yield f"{name}; goal {goal}: {'met' if met else 'missed'}"


def summary_table(cells: dict[str, list[RoundsCell]]) -> list[str]:
    """The table of ``docs/correction.md``: means over judges and designs, by scale."""
    rows = ["| scale | cells | width | last round | one draw | composite | wrong | at 95% |", "|---" * 8 + "|"]
    for scale, group in cells.items():
        names = ("width", "last_round", "one_draw", "composite", "wrong", "wrong_at_95")
        mean = RoundsCell(*(float(np.mean([getattr(cell, name) for cell in group])) for name in names))
        rows.append(f"| {scale} | {len(group)} {_cells(mean)}")
    return rows


def _cells(cell: RoundsCell) -> str:
    wrong = f"{100 * cell.wrong:.1f}% | {100 * cell.wrong_at_95:.1f}%"
    return f"| {cell.width:.2f} | {cell.last_round:.2f} | {cell.one_draw:.3f} | {cell.composite:.3f} | {wrong} |"


def _goals(cells: dict[str, list[RoundsCell]]) -> Iterator[tuple[str, str, bool]]:
    for scale, group in cells.items():
        width = float(np.mean([cell.width for cell in group]))
        coverage = float(np.mean([cell.composite for cell in group]))
        wrong = float(np.mean([cell.wrong for cell in group]))
        yield f"{scale}: width {width:.2f} of one draw", f"{MOST_WIDTH}", width <= MOST_WIDTH
        yield f"{scale}: coverage {coverage:.3f}", f"{LEAST_COVERAGE}", coverage >= LEAST_COVERAGE
        yield f"{scale}: wrong verdict at any look {100 * wrong:.1f}%", f"{100 * MOST_WRONG:.0f}%", wrong <= MOST_WRONG


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=400)
    options = parser.parse_args()
    folder = os.environ.get("CONCORD_TEST_DATA")
    if not folder:
        raise SystemExit("CONCORD_TEST_DATA names no folder of sample data")
    for line in simulation_table(Path(folder), options.draws):
        print(line, flush=True)


if __name__ == "__main__":
    main()
