"""How often does an interval that is looked at while ratings arrive leave out the truth at any look?

    CONCORD_TEST_DATA=... python -m tools.simulations.any_time [--draws 1000]

200 ratings of each population arrive one by one in random order, and somebody looks after every fourth: 50 looks.
Beside the interval that holds at every look stands the ordinary one, from 20 ratings on (a tenth of the draws).
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from review.statistics.correction.any_time import RatingStream, any_time_interval
from review.statistics.correction.corrected import corrected_component
from review.statistics.correction.frame import Component, ReviewState
from review.statistics.correction.outcome import Estimate
from tests.review.statistics.correction.frames import FrameAnswer, frame_of
from tools.simulations.correction import Population, populations

RATINGS, EVERY = 200, 4


def leaves_out(population: Population, order: list[int]) -> tuple[bool, float]:
    """Whether any look of the betting interval leaves out the truth, and its last width as a share of the scale. It is
    never wider at a later look, so that the last tells of all."""
    ratings = [(at, population.expert[at]) for at in order]
    low, high = any_time_interval(
        [RatingStream(population.judge, ratings, len(order))], population.low, population.high
    )
    return not low <= population.truth <= high, (high - low) / (population.high - population.low)


def ordinary_leaves_out(population: Population, order: list[int]) -> tuple[bool, float]:
    """The same of the corrected figure, looked at after every fourth rating."""
    width, missed = 0.0, False
    for count in range(20, len(order) + 1, EVERY):
        rated = set(order[:count])
        share = count / len(population.judge)
        answers = [
            FrameAnswer(at, judge, population.expert[at], ReviewState.RATED, share)
            if at in rated
            else FrameAnswer(at, judge, probability=share)
            for at, judge in enumerate(population.judge)
        ]
        yes_no = population.high - population.low == 1.0
        found = corrected_component(Component("x", frame_of(answers), population.low, population.high, yes_no=yes_no))
        if isinstance(found, Estimate):
            missed |= not found.low <= population.truth <= found.high
            width = (found.high - found.low) / (population.high - population.low)
    return missed, width


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    folder = os.environ.get("CONCORD_TEST_DATA")
    if not folder:
        raise SystemExit("CONCORD_TEST_DATA names no folder of sample data")
    print("| judge | truth left out at any look | ordinary interval | width after 200 | ordinary |")
    print("|---|---|---|---|---|")
    for population in populations(Path(folder), ""):
        orders = [
            np.random.default_rng(seed).permutation(len(population.judge))[:RATINGS].tolist()
            for seed in range(options.draws)
        ]
        held = np.array([leaves_out(population, order) for order in orders]).mean(axis=0)
        usual = np.array([ordinary_leaves_out(population, order) for order in orders[: options.draws // 10]]).mean(
            axis=0
        )
        print(
            f"| {population.name} | {100 * held[0]:.1f}% | {100 * usual[0]:.0f}% | {held[1]:.3f} | {usual[1]:.3f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
