"""How wide is the standing score over ten releases, does it cover the truth, and does the test for tuning find it?

    CONCORD_TEST_DATA=... python -m tools.simulations.standing [--lives 400]

A life is ten releases of 300 answers, taken at random from a data set in which every answer has a judge's and an
expert's value. From one release to the next a fifth of the answers are replaced at random. *Tuned*: before that, each
answer that was rated badly (lower half of the scale) is replaced with chance 0.7 by one that is not bad. In each
release 30 answers without a standing rating are drawn by strata and rated. All draws, estimates and tests are the
product's.

``worth``: labels of a fresh stratified draw whose interval is as wide, in releases 6 to 10. ``coverage``: share of
intervals of releases 2 to 10 that hold the true mean of the release; ``least`` that of the worst release."""

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
from review.statistics.sampling.draw import CERTAIN, draw
from review.statistics.sampling.member import DrawParams, Member
from review.statistics.standing import earlier_slope, score_levels, tuning_test
from tools.simulations.coverage import Population, populations

RELEASES, ANSWERS, RATINGS = 10, 300, 30
CHANGED, FIXED = 0.2, 0.7
# Sizes of fresh draws between which the worth of an interval is interpolated.
FRESH_SIZES = (30, 40, 50, 65, 85)
FIRST_MEASURED = 6
JUDGES = (("openqa", "gpt-4"), ("coherence", "expert 0"))
LEAST_WORTH, LEAST_TUNED_WORTH, LEAST_COVERAGE, MOST_FALSE, LEAST_POWER = 50, 42, 0.93, 0.05, 0.85
TESTED_RELEASE = 3
Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Life:
    """Ten releases: whether each interval holds the truth, its width, the widths of fresh draws (release x size, NaN
    before release 6), and whether the test for tuning fires (False in the first release)."""

    covered: Array
    width: Array
    fresh: Array
    fired: Array


def component(population: Population, answers: Array, members: list, slope: float | None) -> Component:
    """Return the component of a release; ``members`` are the drawn answers of the whole frame by position."""
    sampled = np.array([member.sampled for member in members])
    strata = sorted({member.stratum for member in members})
    frame = SamplingFrame(
        key=np.arange(len(answers)),
        names=range(len(answers)),
        judge=population.judge[answers],
        rating=np.where(sampled, population.expert[answers], np.nan),
        state=np.where(sampled, ReviewState.RATED, ReviewState.NOT_SAMPLED),
        probability=np.array([member.probability for member in members]),
        stratum=np.array([strata.index(member.stratum) for member in members]),
        strata=strata,
        group=np.arange(len(answers)),
        groups=range(len(answers)),
        in_prompt=np.zeros(len(answers), dtype=bool),
    )
    return Component("x", frame, population.low, population.high, yes_no=population.yes_no, slope=slope)


def width(population: Population, answers: Array, size: int, seed: int) -> float:
    """Width of the interval of a fresh stratified draw."""
    members = [Member(index, "", float(value)) for index, value in enumerate(population.judge[answers])]
    outcome = corrected_component(component(population, answers, draw(members, "stratified", size, seed), None))
    return outcome.high - outcome.low if isinstance(outcome, Estimate) else np.nan


def live(population: Population, tuned: float, seed: int) -> Life:
    """Simulate ten releases; ``tuned`` is the chance that a badly rated answer is replaced by one that is not bad."""
    random = np.random.default_rng(seed)
    bad = population.expert < (population.low + population.high) / 2
    good_answers = np.flatnonzero(~bad)
    answers = random.integers(0, len(bad), ANSWERS)
    standing, ratings, steps = np.zeros(ANSWERS, dtype=bool), [], []
    covered, widths, fired = np.zeros(RELEASES), np.zeros(RELEASES), np.zeros(RELEASES, dtype=bool)
    fresh = np.full((RELEASES, len(FRESH_SIZES)), np.nan)
    for release in range(RELEASES):
        if release:
            before = answers
            fixed = standing & bad[before] & (random.random(ANSWERS) < tuned)
            replaced = ~fixed & (random.random(ANSWERS) < CHANGED)
            answers = np.where(fixed, random.choice(good_answers, ANSWERS), before)
            answers = np.where(replaced, random.integers(0, len(bad), ANSWERS), answers)
            levels = score_levels(population.judge[before]) + 100 * release
            steps.append((fixed | replaced, standing, levels))
            fired[release] = tuning_test(*map(np.concatenate, zip(*steps, strict=True))).fired
            standing = standing & ~fixed & ~replaced
        members = [Member(index, "", float(value)) for index, value in enumerate(population.judge[answers])]
        params = DrawParams(certain=frozenset(np.flatnonzero(standing).tolist()))
        drawn = draw(members, "stratified", RATINGS, seed + release, params)
        earlier = np.array(ratings, dtype=int)
        slope = earlier_slope(population.judge[earlier], population.expert[earlier])
        outcome = corrected_component(component(population, answers, drawn, slope))
        assert isinstance(outcome, Estimate)
        covered[release] = outcome.low <= population.expert[answers].mean() <= outcome.high
        widths[release] = outcome.high - outcome.low
        if release + 1 >= FIRST_MEASURED:
            fresh[release] = [width(population, answers, size, seed + release) for size in FRESH_SIZES]
        new = [member.key for member in drawn if member.sampled and member.stratum != CERTAIN]
        ratings += answers[new].tolist()
        standing = standing.copy()
        standing[new] = True
    return Life(covered, widths, fresh, fired)


@dataclass(frozen=True, slots=True)
class StandingCell:
    """Worth in labels, coverage, that of the worst release, and the share of lives in which the test fires, by
    release."""

    worth: float
    coverage: float
    least: float
    fired: Array


def simulate(population: Population, tuned: float, lives: int) -> StandingCell:
    results = [live(population, tuned, 1000 * number) for number in range(lives)]
    covered = np.array([result.covered for result in results])[:, 1:]
    standing = np.mean([result.width[FIRST_MEASURED - 1 :] for result in results])
    fresh = np.nanmean([result.fresh[FIRST_MEASURED - 1 :] for result in results], axis=(0, 1))
    # The width falls as labels grow; np.interp takes ascending values.
    worth = float(np.interp(standing, fresh[::-1], FRESH_SIZES[::-1]))
    fired = np.mean([result.fired for result in results], axis=0)
    return StandingCell(worth, float(covered.mean()), float(covered.mean(axis=0).min()), fired)


def standing_table(folder: Path, lives: int) -> Iterator[str]:
    """A row of each data set and way of changing answers, and whether the goals are met."""
    yield "| data | answers are | worth | coverage | least | test fires at release 2 | 3 | 5 | 10 |"
    yield "|---" * 9 + "|"
    missed = []
    for population in populations(folder):
        for tuned in (0.0, FIXED) if (population.scale, population.name) in JUDGES else ():
            cell = simulate(population, tuned, lives)
            fired = " | ".join(f"{100 * cell.fired[release - 1]:.1f}%" for release in (2, 3, 5, 10))
            way = "tuned" if tuned else "changed at random"
            yield (
                f"| {population.scale}, {population.name} | {way} | {cell.worth:.0f} | {cell.coverage:.3f} "
                f"| {cell.least:.3f} | {fired} |"
            )
            missed += missed_goals(cell, population.scale, lives, tuned=bool(tuned))
    yield f"\ngoals: {'; '.join(missed) or 'met'}"


def missed_goals(cell: StandingCell, scale: str, lives: int, *, tuned: bool) -> Iterator[str]:
    """Goals that a cell misses. Those of worth and power are for OpenQA. A share of false alarms is too large if its
    99% limit is."""
    if cell.coverage < LEAST_COVERAGE:
        yield f"{scale}: coverage {cell.coverage:.3f} below {LEAST_COVERAGE}"
    least = LEAST_TUNED_WORTH if tuned else LEAST_WORTH
    if scale == "openqa" and cell.worth < least:
        yield f"{scale}: worth {cell.worth:.0f} below {least}"
    power = cell.fired[TESTED_RELEASE - 1]
    if tuned and scale == "openqa" and power < LEAST_POWER:
        yield f"{scale}: power {power:.2f} below {LEAST_POWER}"
    error = 2.326 * (MOST_FALSE * (1 - MOST_FALSE) / lives) ** 0.5
    if not tuned and cell.fired.max() > MOST_FALSE + error:
        yield f"{scale}: false alarms {cell.fired.max():.3f} above {MOST_FALSE}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=400)
    options = parser.parse_args()
    folder = os.environ.get("CONCORD_TEST_DATA")
    if not folder:
        raise SystemExit("CONCORD_TEST_DATA names no folder of sample data")
    for line in standing_table(Path(folder), options.lives):
        print(line, flush=True)


if __name__ == "__main__":
    main()
