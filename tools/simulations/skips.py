"""How often do corrected intervals cover the truth when reviewers skip the worst answers they are served?

    CONCORD_TEST_DATA=... python -m tools.simulations.skips [--draws 400]

Of 100 drawn answers the given number get no rating: those with the lowest expert values, ties at random. That is below
the share of 10% above which no corrected score is shown. ``responders`` is the coverage of the same interval without
the bounds of the skipped answers; ``width`` is the width of the interval shown divided by that of the responders'
interval."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from review.statistics.correction.corrected import corrected_component
from review.statistics.correction.frame import Component, ReviewState, SamplingFrame
from review.statistics.correction.outcome import Estimate
from tools.simulations.coverage import DESIGNS, Population, populations, strata

SIZE = 100
SKIPPED = (1, 4, 8)
SCALES = ("openqa", "coherence", "consistency")
LEAST = 0.90
Array = np.ndarray


@dataclass(frozen=True, slots=True)
class SkipCell:
    """Coverage of the interval shown and of the responders' interval, the ratio of their widths, and the share of draws
    with a figure."""

    coverage: float
    responders: float
    width: float
    shown: float


def simulate(population: Population, design: str, skipped: int, draws: int) -> SkipCell:
    """``draws`` reviews in each of which the worst ``skipped`` of the answers served get no rating."""
    stratum, counts = strata(population, design, SIZE)
    random, truth, rows = np.random.default_rng(0), population.expert.mean(), []
    members = [np.flatnonzero(stratum == number) for number in range(len(counts))]
    for _ in range(draws):
        sampled = [random.choice(own, count, replace=False) for own, count in zip(members, counts, strict=True)]
        served = random.permutation(np.concatenate(sampled))
        skipped_answers = served[np.argsort(population.expert[served], kind="stable")[:skipped]]
        outcome = corrected_component(_component(population, stratum, counts, served, skipped_answers))
        if isinstance(outcome, Estimate):
            worst, best = outcome.response_bounds or (outcome.value, outcome.value)
            low, high = outcome.low + (outcome.value - worst), outcome.high - (best - outcome.value)
            covers = outcome.low <= truth <= outcome.high, low <= truth <= high
            rows.append((*covers, outcome.high - outcome.low, high - low))
    column_means = np.array(rows).mean(axis=0)
    return SkipCell(column_means[0], column_means[1], column_means[2] / column_means[3], len(rows) / draws)


def _component(
    population: Population, stratum: Array, counts: list[int], served: Array, skipped_answers: Array
) -> Component:
    size = len(stratum)
    state, rating = np.full(size, int(ReviewState.NOT_SAMPLED)), np.full(size, np.nan)
    state[served], rating[served] = ReviewState.RATED, population.expert[served]
    state[skipped_answers], rating[skipped_answers] = ReviewState.NO_RESPONSE, np.nan
    frame = SamplingFrame(
        key=np.arange(size),
        names=range(size),
        judge=population.judge,
        rating=rating,
        state=state,
        probability=(np.array(counts) / np.bincount(stratum))[stratum],
        stratum=stratum,
        strata=[str(number) for number in range(len(counts))],
        group=np.arange(size),
        groups=range(size),
        in_prompt=np.zeros(size, dtype=bool),
    )
    return Component("x", frame, population.low, population.high, yes_no=population.yes_no)


def simulation_table(folder: Path, draws: int) -> Iterator[str]:
    """A row a judge, design and number of skips, and how many cells cover less than promised."""
    yield f"| scale | judge | design | skipped of {SIZE} | coverage | responders | width | shown |"
    yield "|---" * 8 + "|"
    least: dict[str, float] = {}
    for population in populations(folder):
        for design in DESIGNS if population.scale in SCALES else ():
            for skipped in SKIPPED:
                results = simulate(population, design, skipped, draws)
                least[population.scale] = min(least.get(population.scale, 1.0), results.coverage)
                yield (
                    f"| {population.scale} | {population.name} | {design} | {skipped} | {results.coverage:.3f} "
                    f"| {results.responders:.3f} | {results.width:.2f} | {results.shown:.3f} |"
                )
    coverage_by_scale = ", ".join(f"{scale} {coverage:.3f}" for scale, coverage in least.items())
    missed = sum(coverage < LEAST for coverage in least.values())
    yield f"\nleast coverage: {coverage_by_scale}; goal {LEAST}: {'missed' if missed else 'met'}"


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
