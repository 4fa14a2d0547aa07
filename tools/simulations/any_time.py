"""How often does an interval that is inspected while ratings arrive miss the truth at any look?

    CONCORD_TEST_DATA=... python -m tools.simulations.any_time [--draws 1000]

200 ratings of each population arrive one by one in random order, with a look after every fourth: 50 looks. The ordinary
interval is shown beside the any-time interval, from 20 ratings on (a tenth of the draws)."""

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

RATINGS, LOOK_INTERVAL = 200, 4


def any_time_misses(population: Population, order: list[int]) -> tuple[bool, float]:
    """Return whether the any-time interval misses the truth at any look, and its last width as a share of the scale.
    The interval never widens, so the last look decides."""
    ratings = [(index, population.expert[index]) for index in order]
    low, high = any_time_interval(
        [RatingStream(population.judge, ratings, len(order))], population.low, population.high
    )
    return not low <= population.truth <= high, (high - low) / (population.high - population.low)


def ordinary_misses(population: Population, order: list[int]) -> tuple[bool, float]:
    """Return whether the ordinary interval of the corrected score misses the truth at any look (one after every fourth
    rating), and its last width as a share of the scale."""
    width, missed = 0.0, False
    for count in range(20, len(order) + 1, LOOK_INTERVAL):
        rated_indexes = set(order[:count])
        sampling_rate = count / len(population.judge)
        answers = [
            FrameAnswer(index, judge, population.expert[index], ReviewState.RATED, sampling_rate)
            if index in rated_indexes
            else FrameAnswer(index, judge, probability=sampling_rate)
            for index, judge in enumerate(population.judge)
        ]
        yes_no = population.high - population.low == 1.0
        outcome = corrected_component(Component("x", frame_of(answers), population.low, population.high, yes_no=yes_no))
        if isinstance(outcome, Estimate):
            missed |= not outcome.low <= population.truth <= outcome.high
            width = (outcome.high - outcome.low) / (population.high - population.low)
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
        any_time_rates = np.array([any_time_misses(population, order) for order in orders]).mean(axis=0)
        ordinary_rates = np.array([ordinary_misses(population, order) for order in orders[: options.draws // 10]]).mean(
            axis=0
        )
        print(
            f"| {population.name} | {100 * any_time_rates[0]:.1f}% | {100 * ordinary_rates[0]:.0f}% | {any_time_rates[1]:.3f} | {ordinary_rates[1]:.3f} |",  # noqa: E501
            flush=True,
        )


if __name__ == "__main__":
    main()
