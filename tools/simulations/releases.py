"""Is a change between two releases found by rating changed questions only, and does its interval cover it?

    CONCORD_TEST_DATA=... python -m tools.simulations.releases [--lives 1000]

Each life has 300 questions with an answer of each release, taken from the answers of openqa_nq301 that have a verdict
of gpt-4 beside the human label. A share of the answers changed, and 14 more of the 300 are right (4.6 points).
``width`` and ``found`` are those of the release difference: the same changed questions are rated in both releases.
``independent`` draws the same number of answers from each release on its own. ``tuned``: 15 of the changed answers
were changed because experts had rated them badly. Found: the 95% interval lies above 0."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from review.statistics.correction.frame import Component, ReviewState, SamplingFrame
from review.statistics.correction.outcome import Estimate, Target
from review.statistics.paired_tests.paired import corrected_difference
from review.statistics.release_difference import PairedPart, release_difference

QUESTIONS, RISE, TUNED = 300, 14, 15
LEAST_COVERAGE = 0.93
HEADER = (
    *("changed", "ratings in each release", "width, independent", "width"),
    *("found, independent", "found", "coverage", "tuned"),
)


@dataclass(frozen=True, slots=True)
class ReleaseCell:
    """A share of changed answers, the ratings in each release, and the least share of lives in which the rise is
    found."""

    changed: float
    ratings: int
    least_found: float


CELLS = (ReleaseCell(0.1, 20, 0.95), ReleaseCell(0.2, 30, 0.65), ReleaseCell(0.5, 60, 0.40), ReleaseCell(1.0, 60, 0.0))
Array = np.ndarray
# Expert's and judge's value of an answer.
Value = tuple[float, float]


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """Shares of lives and mean widths; ``tuned`` is the coverage where badly rated answers were changed."""

    width: float
    found: float
    coverage: float
    tuned: float
    independent_width: float
    independent_found: float


class Pairs:
    """Pairs of different answers to one question, by their change of the expert's value (-1, 0, 1)."""

    def __init__(self, folder: Path) -> None:
        by_question: dict[str, dict[str, Value]] = {}
        for line in (folder / "openqa_nq301/items.jsonl").read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if (verdict := row["judges"]["gpt-4"]["verdict"]) is not None:
                value = float(row["human"]["acceptable"]), float(verdict)
                by_question.setdefault(row["question_id"], {})[row["answer"]] = value
        self.answers = np.array([value for answers in by_question.values() for value in answers.values()])
        pairs = [
            (*old, *new)
            for answers in by_question.values()
            for before, old in answers.items()
            for after, new in answers.items()
            if before != after
        ]
        self.pairs = np.array(pairs)

    def draw(self, random: np.random.Generator, count: int, tuned: int) -> Array:
        """Pairs with a total rise of ``RISE``; the old answer of the first ``tuned`` was bad.

        Pairs are drawn with probabilities proportional to exp(tilt x rise), then again until the total is right."""
        rise = self.pairs[:, 2] - self.pairs[:, 0]
        bad = self.pairs[:, 0] == 0
        low, high = -10.0, 10.0
        while high - low > 1e-6:
            tilt = (low + high) / 2
            weight = np.exp(tilt * rise)
            mean = tuned * (weight * rise)[bad].sum() / weight[bad].sum()
            mean += (count - tuned) * (weight * rise).sum() / weight.sum()
            low, high = (tilt, high) if mean < RISE else (low, tilt)
        every, badly = weight / weight.sum(), np.where(bad, weight, 0) / weight[bad].sum()
        while True:
            chosen = np.concatenate(
                [random.choice(len(rise), tuned, p=badly), random.choice(len(rise), count - tuned, p=every)]
            )
            if rise[chosen].sum() == RISE:
                return self.pairs[chosen]


def _component(judge: Array, expert: Array, drawn: Array, low: float, *, name: str = "correct") -> Component:
    size = len(judge)
    state, rating = np.full(size, int(ReviewState.NOT_SAMPLED)), np.full(size, np.nan)
    state[drawn], rating[drawn] = ReviewState.RATED, expert[drawn]
    frame = SamplingFrame(
        key=np.arange(size),
        names=range(size),
        judge=judge,
        rating=rating,
        state=state,
        probability=np.full(size, len(drawn) / size),
        stratum=np.zeros(size, dtype=np.int64),
        strata=[""],
        group=np.arange(size),
        groups=range(size),
        in_prompt=np.zeros(size, dtype=np.bool_),
    )
    return Component(name, frame, low, 1.0, judged=True)


def _differences(pairs: Pairs, cell: ReleaseCell, lives: int, tuned: int) -> list[Estimate]:
    random, estimates = np.random.default_rng(tuned), []
    for _ in range(lives):
        changed = pairs.draw(random, round(cell.changed * QUESTIONS), tuned)
        drawn = random.choice(len(changed), cell.ratings, replace=False)
        rise, judged = changed[:, 2] - changed[:, 0], changed[:, 3] - changed[:, 1]
        outcome = release_difference([PairedPart(_component(judged, rise, drawn, -1.0), QUESTIONS)], QUESTIONS)
        assert isinstance(outcome, Estimate), outcome
        estimates.append(outcome)
    return estimates


def _independent_differences(pairs: Pairs, cell: ReleaseCell, lives: int) -> list[Estimate]:
    random, estimates = np.random.default_rng(0), []
    for _ in range(lives):
        changed = pairs.draw(random, round(cell.changed * QUESTIONS), 0)
        equal = pairs.answers[random.integers(0, len(pairs.answers), QUESTIONS - len(changed))]
        old, new = np.concatenate([changed[:, :2], equal]), np.concatenate([changed[:, 2:], equal])
        sides = [
            [_component(values[:, 1], values[:, 0], random.choice(QUESTIONS, cell.ratings, replace=False), 0.0)]
            for values in (new, old)
        ]
        outcome = corrected_difference(*sides, Target.THIS_RUN)
        assert isinstance(outcome, Estimate), outcome
        estimates.append(outcome)
    return estimates


def simulate(pairs: Pairs, cell: ReleaseCell, lives: int) -> ReleaseResult:
    """Simulate one cell."""
    plain, tuned = (_differences(pairs, cell, lives, count) for count in (0, TUNED))
    independent = _independent_differences(pairs, cell, lives)
    return ReleaseResult(
        _width(plain), _found(plain), _coverage(plain), _coverage(tuned), _width(independent), _found(independent)
    )


def _width(estimates: Sequence[Estimate]) -> float:
    return float(np.mean([estimate.high - estimate.low for estimate in estimates]))


def _found(estimates: Sequence[Estimate]) -> float:
    return float(np.mean([estimate.low > 0 for estimate in estimates]))


def _coverage(estimates: Sequence[Estimate]) -> float:
    rise = RISE / QUESTIONS
    return float(np.mean([estimate.low - 1e-9 <= rise <= estimate.high + 1e-9 for estimate in estimates]))


def table_row(cell: ReleaseCell, result: ReleaseResult) -> list[str]:
    """Cells of the table, also that of ``docs/releases.md``."""
    return [
        f"{cell.changed:.0%}",
        str(cell.ratings),
        f"{result.independent_width:.3f}",
        f"{result.width:.3f}",
        f"{result.independent_found:.0%}",
        f"{result.found:.0%}",
        f"{result.coverage:.3f}",
        f"{result.tuned:.3f}",
    ]


def simulation_table(folder: Path, lives: int) -> Iterator[str]:
    """A row a cell, and whether the goals are met."""
    pairs, missed = Pairs(folder), []
    yield f"| {' | '.join(HEADER)} |"
    yield "|---" * len(HEADER) + "|"
    for cell in CELLS:
        result = simulate(pairs, cell, lives)
        yield f"| {' | '.join(table_row(cell, result))} |"
        missed += [f"found {cell.changed:.0%}"] if result.found < cell.least_found else []
        missed += [f"coverage {cell.changed:.0%}"] if min(result.coverage, result.tuned) < LEAST_COVERAGE else []
    goals = ", ".join(f"{cell.least_found:.0%}" for cell in CELLS if cell.least_found)
    outcome = f"missed: {', '.join(missed)}" if missed else "met"
    yield f"\nfound in at least {goals}; coverage at least {LEAST_COVERAGE}: {outcome}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lives", type=int, default=1000)
    options = parser.parse_args()
    folder = os.environ.get("CONCORD_TEST_DATA")
    if not folder:
        raise SystemExit("CONCORD_TEST_DATA names no folder of sample data")
    for line in simulation_table(Path(folder), options.lives):
        print(line, flush=True)


if __name__ == "__main__":
    main()
