"""Do intervals for this run cover at 25 to 200 labels? Whole cells of draws at once, as arrays.

    CONCORD_TEST_DATA=... python -m tools.simulations.coverage [--draws 4000] [--only summeval]

First ``PROOFS`` draws go through the product's own :func:`corrected` as well: the arrays have to give the same figures.
Then one row a cell (scale, judge, design, labels), and means by scale. ``t`` is the coverage of Student's interval
without the variance of what was not seen, ``width`` that of the interval over Student's, ``worth`` the labels of a
uniform draw that err as much in root mean square, ``printed`` the effective labels that the product gives (mean of some
draws) over that, ``warned`` the share of draws with ``unseen_answers``.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import stdtrit

from review.statistics.agreement.bootstrap import clopper_pearson
from review.statistics.correction.corrected import MAX_UNSEEN_SHARE, corrected_component
from review.statistics.correction.frame import Component, ReviewState
from review.statistics.correction.outcome import Estimate, EstimateWarning
from review.statistics.correction.strata_estimates import (
    MIN_FREEDOM,
    MIN_OWN_SLOPE_LABELS,
    MIN_UNIFORM_LABELS,
    PSEUDO_LABELS,
    unseen_rate,
)
from review.statistics.sampling.draw import allocate
from review.statistics.sampling.member import Member, stratify
from tests.review.statistics.correction.frames import FrameAnswer, frame_of
from tools.simulations.correction import skewed

SIZES = (25, 50, 100, 200)
DESIGNS = ("uniform", "stratified")
PROOFS = 80
CHOSEN_ON = {"openqa", "consistency", "relevance", "correctness"}  # of these scales; the others were held back
LEAST, BEYOND_99 = 0.92, 2.576
PRINTED = 400  # draws of which effective labels are computed
MOST_OFF = 0.15
Array = np.ndarray


@dataclass(frozen=True, slots=True)
class Population:
    """A judge and the truth on one scale, every answer with both."""

    scale: str
    name: str
    judge: Array
    expert: Array
    low: float
    high: float
    yes_no: bool = False


@dataclass(frozen=True, slots=True)
class Cell:
    """What the draws of a population, design and size gave; ``shown`` is the share that gave a figure."""

    coverage: float
    student: float
    width: float
    worth: float
    printed: float
    warned: float
    shown: float

    def short(self, draws: int) -> bool:
        """Whether the 99% upper limit of the coverage lies below 92%."""
        return self.coverage + BEYOND_99 * (self.coverage * (1 - self.coverage) / draws) ** 0.5 < LEAST


def populations(folder: Path) -> Iterator[Population]:
    """All judges of all sets with experts' labels. SummEval has no judges: each expert stands against the mean of the
    others, and two are made up, one with 40% of an expert's values exchanged, one who is harsher by about a level."""
    rows = _rows(folder / "openqa_nq301/items.jsonl")
    truth = [row["human"]["acceptable"] for row in rows]
    for name in ("gpt-4", "text-davinci-003", "bem"):
        yield _known("openqa", name, [row["judges"][name]["verdict"] for row in rows], truth, (0, 1))
    yield _known("openqa", "bem, probability", [row["judges"]["bem"]["prob"] for row in rows], truth, (0, 1))
    rows, random = _rows(folder / "summeval_human/items.jsonl"), np.random.default_rng(0)
    for scale in ("coherence", "consistency", "fluency", "relevance"):
        experts = np.array([row["human"][scale] for row in rows], float)
        for at in range(3):
            yield Population(scale, f"expert {at}", experts[:, at], np.delete(experts, at, 1).mean(1), 1, 5)
        first = experts[:, 0]
        noisy = np.where(random.random(len(first)) < 0.4, random.permutation(first), first)
        harsh = np.clip(np.round(first - np.abs(random.normal(0, 1.2, len(first)))), 1, 5)
        yield Population(scale, "made up, noisy", noisy, experts[:, 1:].mean(1), 1, 5)
        yield Population(scale, "made up, harsh", harsh, experts.mean(1), 1, 5)
        yield Population(scale, "made up, harsh, one expert", harsh, experts[:, 1], 1, 5)
    rows = _rows(folder / "ragchecker_meta/pairs.jsonl")
    for scale in ("correctness", "completeness", "overall"):
        both = [[row["judge"]["ragchecker"][side][scale] for row in rows] for side in "ab"]
        preference = 2 * (np.array(both[1], float) - np.array(both[0], float))
        expert = np.array([np.mean(row["human"][scale]) for row in rows])
        yield Population(scale, "ragchecker", preference, expert, -2, 2)
    rows = _rows(folder / "llmjudge_dl23/judgements.jsonl")
    for name in sorted(rows[0]["judges"]):
        yield _known("llmjudge", name, [row["judges"][name] for row in rows], [row["human"] for row in rows], (0, 3))


def _skewed() -> Population:
    """Answers of which 95% get a 5, and a judge who misses half of the others: no data, and in no mean."""
    made = skewed()
    return Population("synthetic", "skewed", np.array(made.judge), np.array(made.expert), made.low, made.high)


def _known(scale: str, name: str, judge: Sequence, expert: Sequence, ends: tuple[int, int]) -> Population:
    """The answers with a judge's value on the scale; the others have strata of their own and are left out here."""
    at = [at for at, value in enumerate(judge) if value is not None and ends[0] <= value <= ends[1]]
    values = (np.array([of[place] for place in at], float) for of in (judge, expert))
    return Population(scale, name, *values, *ends, yes_no=ends == (0, 1))


def strata(population: Population, design: str, size: int) -> tuple[Array, list[int]]:
    """The stratum of each answer and the labels of each stratum, as the product draws them."""
    frame = len(population.judge)
    if design == "uniform":
        return np.zeros(frame, int), [size]
    found = stratify([Member(at, "", float(value)) for at, value in enumerate(population.judge)], 0.08, size // 2)
    counts = allocate(Counter(sorted(found.values())), size, 2)
    names = sorted(counts)
    return np.array([names.index(found[at]) for at in range(frame)]), [counts[name] for name in names]


@dataclass(frozen=True, slots=True)
class Draws:
    """Aligned by draw: the answers taken, the figure, its interval, Student's, whether it is shown and warned."""

    taken: Array
    value: Array
    ends: tuple[Array, Array]
    student: tuple[Array, Array]
    shown: Array
    warned: Array
    effective: Array  # of the first draws, NaN where the ratings are constant or nothing is shown


def draws_of(
    population: Population, stratum: Array, counts: list[int], draws: int, random: np.random.Generator
) -> Draws:
    """Many draws and their figures: ``docs/correction.md`` for simple strata that all responded."""
    frame, low, high = len(stratum), population.low, population.high
    width, size, several = high - low, sum(counts), len(counts) > 1
    members = [np.flatnonzero(stratum == at) for at in range(len(counts))]
    taken = [own[_choose(random, draws, len(own), n)] for own, n in zip(members, counts, strict=True)]
    sizes, share = np.array([len(own) for own in members]), np.array([len(own) / frame for own in members])
    y, f = [population.expert[at] for at in taken], [population.judge[at] for at in taken]
    average = [population.judge[own].mean() for own in members]
    importance = [N**2 * (1 - n / N) / n for N, n in zip(sizes, counts, strict=True)]
    pull = [a / (n - 1) * (one - one.mean(1, keepdims=True)) for a, n, one in zip(importance, counts, f, strict=True)]
    parts = (
        [[at] for at in range(len(counts))] if several and min(counts) >= MIN_OWN_SLOPE_LABELS else [range(len(counts))]
    )
    slope, lever, estimated = [np.zeros(draws)] * len(counts), [np.zeros((draws, n)) for n in counts], np.zeros(draws)
    if len(parts) > 1 or size - len(counts) - 1 >= MIN_FREEDOM:
        for part in parts:
            spread = sum((pull[at] * f[at]).sum(1) for at in part)
            known = spread > 1e-12 * sum(importance[at] for at in part) * width**2
            over = np.where(known, 1 / np.where(known, spread, 1), 0.0)
            shift = sum(share[at] * (average[at] - f[at].mean(1)) for at in part)
            for at in part:
                slope[at] = over * sum((pull[each] * y[each]).sum(1) for each in part)
                lever[at] = pull[at] * (over * shift)[:, None]
            estimated += known
    error = [y[at] - slope[at][:, None] * f[at] for at in range(len(counts))]
    level = [one.mean(1) for one in error]
    residual = [one - mean[:, None] for one, mean in zip(error, level, strict=True)]
    inclusion = np.concatenate([np.full(n, n / N) for n, N in zip(counts, sizes, strict=True)])
    freedom = size - len(counts)
    inflated = np.where(estimated > 0, freedom / (freedom - estimated), 1.0)
    design = np.concatenate(
        [
            (share[at] / n + lever[at]) * residual[at] * np.sqrt(n / (n - 1) * inflated)[:, None]
            for at, n in enumerate(counts)
        ],
        axis=1,
    ) * np.sqrt(1 - inclusion)
    ratings, judged = np.concatenate(y, 1), np.concatenate(f, 1)
    value = sum(share[at] * (level[at] + slope[at] * average[at]) for at in range(len(counts)))
    equal = np.abs(ratings - judged).max(1) <= 1e-9 * width
    varying = np.abs(np.concatenate(residual, 1)).max(1) > 1e-9 * width
    alike = np.ptp(ratings, axis=1) <= 1e-9 * width
    value = np.where(equal, population.judge.mean(), value)
    quantile, variance = stdtrit(freedom - estimated, 0.975), np.square(design).sum(1)
    effective = (1 / inclusion).sum() ** 2 / np.square(1 / inclusion).sum()
    inside = np.clip(value, low, high)
    unseen = PSEUDO_LABELS * (1 - inclusion.mean()) / effective**2 * ((high - inside) ** 2 + (inside - low) ** 2)
    reach = unseen_rate(effective, 0.95) * width
    with_variance = varying & ~equal
    exact = ~equal & ~varying & alike & population.yes_no & np.isin(ratings[:, 0], [low, high])
    half = quantile * np.sqrt(variance)
    found = []
    for one in (_score_interval(value, variance + unseen, quantile, low, high), (value - half, value + half)):
        ends = [np.where(with_variance, one[0], value - reach), np.where(with_variance, one[1], value + reach)]
        for at in np.flatnonzero(exact):
            limits = clopper_pearson((ratings[at, 0] - low) / width, effective, 0.95)
            ends[0][at], ends[1][at] = (low + limit * width for limit in limits)
        found.append((np.clip(ends[0], low, high), np.clip(ends[1], low, high)))
    shown = with_variance | equal | ~alike | exact
    warned = with_variance & (unseen > MAX_UNSEEN_SHARE * variance)
    mean = (ratings / inclusion).sum(1, keepdims=True) / (1 / inclusion).sum()
    spread = (np.square(ratings - mean) / inclusion).sum(1) / (1 / inclusion).sum() * size / (size - 1)
    ends = (high - inside) ** 2 + (inside - low) ** 2
    reached = np.where(with_variance, quantile * np.sqrt(variance + unseen), reach)
    some = slice(0, PRINTED)
    printed = _uniform_labels(reached[some], spread[some], ends[some], frame)
    usable = (with_variance | equal)[some] & (spread[some] > 0)
    effective_labels = np.where(usable, printed, np.nan)
    return Draws(np.concatenate(taken, 1), inside, found[0], found[1], shown, warned, effective_labels)


def _uniform_labels(half: Array, spread: Array, ends: Array, size: int) -> Array:
    """As the product's :func:`uniform_labels`, for many draws at once."""
    low, high = np.full(len(half), MIN_UNIFORM_LABELS), np.full(len(half), float(size))
    for _ in range(40):
        labels = (low + high) / 2
        unseen = PSEUDO_LABELS / labels**2 * (1 - labels / size) * ends
        reach = stdtrit(np.maximum(1, labels - 1), 0.975) * np.sqrt(spread * (1 / labels - 1 / size) + unseen)
        low, high = np.where(reach > half, labels, low), np.where(reach > half, high, labels)
    return (low + high) / 2


def _choose(random: np.random.Generator, draws: int, frame: int, size: int) -> Array:
    """Simple random samples without replacement, one a row."""
    keys = random.random((draws, frame), dtype=np.float32)
    return np.argpartition(keys, size - 1, axis=1)[:, :size]


def _score_interval(value: Array, variance: Array, quantile: Array, low: float, high: float) -> tuple[Array, Array]:
    error, known = np.minimum(np.sqrt(variance), (high - low) / 2), np.clip(value, low, high)
    inner = np.clip(known, low + error, high - error)
    ratio = quantile**2 * variance / ((high - inner) * (inner - low))
    half = np.sqrt(ratio * (high - known) * (known - low) + (ratio * (high - low) / 2) ** 2) / (1 + ratio)
    middle = (known + ratio * (low + high) / 2) / (1 + ratio)
    reach = quantile * np.sqrt(variance)
    return np.minimum(value - reach, middle - half), np.maximum(value + reach, middle + half)


def simulate(population: Population, design: str, size: int, draws: int) -> Cell:
    """One cell."""
    found = draws_of(population, *strata(population, design, size), draws, np.random.default_rng(size))
    truth, on, frame = population.expert.mean(), found.shown, len(population.expert)
    covers = [
        ((low - 1e-12 <= truth) & (truth <= high + 1e-12))[on].mean() for low, high in (found.ends, found.student)
    ]
    widths = [(high - low)[on].mean() for low, high in (found.ends, found.student)]
    error = np.square(found.value - truth)[on].mean() / population.expert.var(ddof=1)
    worth = 1 / (error + 1 / frame)
    printed = np.nanmean(found.effective) / worth if np.isfinite(found.effective).any() else float("nan")
    return Cell(*covers, widths[0] / widths[1], worth, printed, found.warned[on].mean(), on.mean())


def prove(all_of: Sequence[Population], draws: int) -> float:
    """The largest difference between arrays and product over ``draws`` draws in turn, as a share of the scale."""
    worst = 0.0
    for at in range(draws):
        population = all_of[at * 7 % len(all_of)]
        stratum, counts = strata(population, DESIGNS[at % 2], SIZES[at // 2 % 3])
        found = draws_of(population, stratum, counts, 1, np.random.default_rng(at))
        outcome = _product(population, stratum, counts, set(found.taken[0].tolist()))
        if isinstance(outcome, Estimate) is not bool(found.shown[0]):
            raise AssertionError(f"withheld in one of both: {outcome}")
        if isinstance(outcome, Estimate):
            ends = (found.value[0], min(found.ends[0][0], found.value[0]), max(found.ends[1][0], found.value[0]))
            both = zip(ends, (outcome.value, outcome.low, outcome.high), strict=True)
            worst = max(worst, *(abs(one - other) / (population.high - population.low) for one, other in both))
            assert (EstimateWarning.UNSEEN_ANSWERS in outcome.warnings) is bool(found.warned[0])
            if np.isfinite(found.effective[0]):
                assert abs(found.effective[0] / outcome.effective_labels - 1) < 1e-4
    assert worst < 1e-9, worst
    return worst


def _product(population: Population, stratum: Array, counts: list[int], taken: set[int]) -> object:
    sizes = np.bincount(stratum)
    answers = [
        FrameAnswer(
            at,
            float(population.judge[at]),
            float(population.expert[at]) if at in taken else None,
            ReviewState.RATED if at in taken else ReviewState.NOT_SAMPLED,
            float(counts[of] / sizes[of]),
            str(of),
        )
        for at, of in enumerate(stratum)
    ]
    return corrected_component(
        Component("x", frame_of(answers), population.low, population.high, yes_no=population.yes_no)
    )


def _rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--only", default="", metavar="SCALE", help="one scale, or: synthetic")
    options = parser.parse_args()
    folder = os.environ.get("CONCORD_TEST_DATA")
    if not folder:
        raise SystemExit("CONCORD_TEST_DATA names no folder of sample data")
    started = time.process_time()
    every = [one for one in populations(Path(folder)) if options.only in {"", one.scale}] or [_skewed()]
    print(f"{PROOFS} draws through the product itself: largest difference {prove(every, PROOFS):.1g} of the scale\n")
    print("| scale | judge | design | labels | coverage | t | width | worth | printed | warned | shown |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    cells: dict[tuple[str, str, int], list[Cell]] = {}
    for population in every:
        for design in DESIGNS:
            for size in SIZES:
                if size >= len(population.judge):
                    continue
                cell = simulate(population, design, size, options.draws)
                cells.setdefault((population.scale, design, size), []).append(cell)
                print(
                    f"| {population.scale} | {population.name} | {design} | {size} | {cell.coverage:.3f} "
                    f"| {cell.student:.3f} | {cell.width:.2f} | {cell.worth:.0f} | {cell.printed:.2f} "
                    f"| {cell.warned:.2f} | {cell.shown:.3f}{' !' if cell.short(options.draws) else ''} |",
                    flush=True,
                )
    _summary(cells, options.draws)
    _printed(cells)
    print(f"\n{time.process_time() - started:.0f} s of one processor")


def _printed(cells: dict[tuple[str, str, int], list[Cell]]) -> None:
    """Effective labels as the product gives them over the true ones: mean over all judges, and the farthest."""
    print("\n| design | labels | printed over true | least | largest |\n|---|---|---|---|---|")
    worst = 0.0
    for design in DESIGNS:
        for size in SIZES:
            ratios = [one.printed for (_, *key), of in cells.items() if key == [design, size] for one in of]
            if ratios := [ratio for ratio in ratios if np.isfinite(ratio)]:
                mean = float(np.mean(ratios))
                worst = max(worst, abs(mean - 1))
                print(f"| {design} | {size} | {mean:.2f} | {min(ratios):.2f} | {max(ratios):.2f} |")
    reached = "met" if worst <= MOST_OFF else "missed"
    print(f"\neffective labels are off by at most {100 * worst:.0f}% on average; goal {100 * MOST_OFF:.0f}%: {reached}")


def _summary(cells: dict[tuple[str, str, int], list[Cell]], draws: int) -> None:
    print("\n| scale | design | labels | cells | mean | least | t: mean | t: least | width | below 92% |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (scale, design, size), of in cells.items():
        covers, student = [one.coverage for one in of], [one.student for one in of]
        print(
            f"| {scale} | {design} | {size} | {len(of)} | {np.mean(covers):.3f} | {min(covers):.3f} "
            f"| {np.mean(student):.3f} | {min(student):.3f} | {np.mean([one.width for one in of]):.2f} "
            f"| {sum(one.short(draws) for one in of)} |"
        )
    for half in (True, False):
        of = [one for (scale, _, _), found in cells.items() if (scale in CHOSEN_ON) is half for one in found]
        if not of:
            continue
        bad = [one.warned for one in of if one.student < LEAST]
        good = [one.warned for one in of if one.student >= 0.94]
        short = sum(one.short(draws) for one in of)
        print(
            f"\n{'chosen on' if half else 'held back'}: {len(of)} cells, mean coverage "
            f"{np.mean([one.coverage for one in of]):.4f} (t {np.mean([one.student for one in of]):.4f}), least "
            f"{min(one.coverage for one in of):.3f} (t {min(one.student for one in of):.3f}), 99% limit below 92% in "
            f"{short}; warned in {np.mean(bad) if bad else 0:.3f} of the draws of {len(bad)} cells that t covers below "
            f"92%, and in {np.mean(good) if good else 0:.3f} of those of {len(good)} that it covers at 94% or more"
        )


if __name__ == "__main__":
    main()
