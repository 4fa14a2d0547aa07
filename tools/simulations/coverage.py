"""Do intervals for this run cover at 25 to 200 labels? Computes all draws of a cell at once, as arrays.

    CONCORD_TEST_DATA=... python -m tools.simulations.coverage [--draws 4000] [--only summeval]

The first ``PROOFS`` draws go through the product's own :func:`corrected` as well: the arrays must give equal figures.
Then one row a cell (scale, judge, design, labels), and means by scale. ``t`` is the coverage of Student's interval
without the variance of unseen answers, ``width`` the interval's width over Student's, ``worth`` the labels of a uniform
draw with equal root mean square error, ``printed`` the product's effective labels (mean of some draws) over that,
``warned`` the share of draws with ``unseen_answers``."""

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
from tools.simulations.correction import skewed_population

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
class CoverageCell:
    """Results of the draws of a population, design and size; ``shown`` is the share that gave a figure."""

    coverage: float
    student: float
    width: float
    worth: float
    printed: float
    warned: float
    shown: float

    def is_below_least(self, draws: int) -> bool:
        """Return whether the 99% upper limit of the coverage lies below 92%."""
        return self.coverage + BEYOND_99 * (self.coverage * (1 - self.coverage) / draws) ** 0.5 < LEAST


def populations(folder: Path) -> Iterator[Population]:
    """Yield all judges of all data sets with expert labels. SummEval has no judges: each expert is compared with the
    mean of the others, and two judges are synthetic: one with 40% of an expert's values exchanged, one harsher by
    about a level."""
    rows = _rows(folder / "openqa_nq301/items.jsonl")
    truth = [row["human"]["acceptable"] for row in rows]
    for name in ("gpt-4", "text-davinci-003", "bem"):
        yield _scored_population("openqa", name, [row["judges"][name]["verdict"] for row in rows], truth, (0, 1))
    yield _scored_population(
        "openqa", "bem, probability", [row["judges"]["bem"]["prob"] for row in rows], truth, (0, 1)
    )
    rows, random = _rows(folder / "summeval_human/items.jsonl"), np.random.default_rng(0)
    for scale in ("coherence", "consistency", "fluency", "relevance"):
        experts = np.array([row["human"][scale] for row in rows], float)
        for number in range(3):
            yield Population(scale, f"expert {number}", experts[:, number], np.delete(experts, number, 1).mean(1), 1, 5)
        first_expert = experts[:, 0]
        noisy = np.where(random.random(len(first_expert)) < 0.4, random.permutation(first_expert), first_expert)
        harsh = np.clip(np.round(first_expert - np.abs(random.normal(0, 1.2, len(first_expert)))), 1, 5)
        yield Population(scale, "made up, noisy", noisy, experts[:, 1:].mean(1), 1, 5)
        yield Population(scale, "made up, harsh", harsh, experts.mean(1), 1, 5)
        yield Population(scale, "made up, harsh, one expert", harsh, experts[:, 1], 1, 5)
    rows = _rows(folder / "ragchecker_meta/pairs.jsonl")
    for scale in ("correctness", "completeness", "overall"):
        scores_by_side = [[row["judge"]["ragchecker"][side][scale] for row in rows] for side in "ab"]
        preference = 2 * (np.array(scores_by_side[1], float) - np.array(scores_by_side[0], float))
        expert = np.array([np.mean(row["human"][scale]) for row in rows])
        yield Population(scale, "ragchecker", preference, expert, -2, 2)
    rows = _rows(folder / "llmjudge_dl23/judgements.jsonl")
    for name in sorted(rows[0]["judges"]):
        yield _scored_population(
            "llmjudge", name, [row["judges"][name] for row in rows], [row["human"] for row in rows], (0, 3)
        )


def _synthetic_population() -> Population:
    """Return synthetic answers of which 95% get a 5, with a judge that misses half of the others; left out of all
    means."""
    synthetic = skewed_population()
    return Population(
        "synthetic", "skewed", np.array(synthetic.judge), np.array(synthetic.expert), synthetic.low, synthetic.high
    )


def _scored_population(scale: str, name: str, judge: Sequence, expert: Sequence, ends: tuple[int, int]) -> Population:
    """The answers with a judge's value on the scale; the others have strata of their own and are left out here."""
    indexes = [indexes for indexes, value in enumerate(judge) if value is not None and ends[0] <= value <= ends[1]]
    values = (np.array([rater_values[index] for index in indexes], float) for rater_values in (judge, expert))
    return Population(scale, name, *values, *ends, yes_no=ends == (0, 1))


def strata(population: Population, design: str, size: int) -> tuple[Array, list[int]]:
    """The stratum of each answer and the labels of each stratum, as the product draws them."""
    answer_count = len(population.judge)
    if design == "uniform":
        return np.zeros(answer_count, int), [size]
    stratum_by_index = stratify(
        [Member(index, "", float(value)) for index, value in enumerate(population.judge)], 0.08, size // 2
    )
    counts = allocate(Counter(sorted(stratum_by_index.values())), size, 2)
    names = sorted(counts)
    return np.array([names.index(stratum_by_index[index]) for index in range(answer_count)]), [
        counts[name] for name in names
    ]


@dataclass(frozen=True, slots=True)
class DrawResults:
    """Aligned by draw: the answers taken, the figure, its interval, Student's, whether it is shown and warned."""

    sampled: Array
    value: Array
    ends: tuple[Array, Array]
    student: tuple[Array, Array]
    shown: Array
    warned: Array
    effective: Array  # of the first draws, NaN where the ratings are constant or nothing is shown


def simulate_draws(
    population: Population, stratum: Array, counts: list[int], draws: int, random: np.random.Generator
) -> DrawResults:
    """Many draws and their figures: ``docs/correction.md`` for simple strata that all responded."""
    frame, low, high = len(stratum), population.low, population.high
    width, size, multiple_strata = high - low, sum(counts), len(counts) > 1
    members = [np.flatnonzero(stratum == index) for index in range(len(counts))]
    sampled = [own[choose_samples(random, draws, len(own), n)] for own, n in zip(members, counts, strict=True)]
    sizes, share = np.array([len(own) for own in members]), np.array([len(own) / frame for own in members])
    y, f = [population.expert[index] for index in sampled], [population.judge[index] for index in sampled]
    average = [population.judge[own].mean() for own in members]
    importance = [N**2 * (1 - n / N) / n for N, n in zip(sizes, counts, strict=True)]
    weighted_deviation = [
        a / (n - 1) * (array - array.mean(1, keepdims=True)) for a, n, array in zip(importance, counts, f, strict=True)
    ]
    slope_groups = (
        [[index] for index in range(len(counts))]
        if multiple_strata and min(counts) >= MIN_OWN_SLOPE_LABELS
        else [range(len(counts))]
    )
    slope, slope_leverage, estimated = (
        [np.zeros(draws)] * len(counts),
        [np.zeros((draws, n)) for n in counts],
        np.zeros(draws),
    )
    if len(slope_groups) > 1 or size - len(counts) - 1 >= MIN_FREEDOM:
        for pooled_strata in slope_groups:
            spread = sum((weighted_deviation[index] * f[index]).sum(1) for index in pooled_strata)
            is_estimable = spread > 1e-12 * sum(importance[index] for index in pooled_strata) * width**2
            inverse_spread = np.where(is_estimable, 1 / np.where(is_estimable, spread, 1), 0.0)
            shift = sum(share[index] * (average[index] - f[index].mean(1)) for index in pooled_strata)
            for index in pooled_strata:
                slope[index] = inverse_spread * sum(
                    (weighted_deviation[pooled_index] * y[pooled_index]).sum(1) for pooled_index in pooled_strata
                )
                slope_leverage[index] = weighted_deviation[index] * (inverse_spread * shift)[:, None]
            estimated += is_estimable
    error = [y[index] - slope[index][:, None] * f[index] for index in range(len(counts))]
    level = [array.mean(1) for array in error]
    residual = [array - mean[:, None] for array, mean in zip(error, level, strict=True)]
    inclusion = np.concatenate([np.full(n, n / N) for n, N in zip(counts, sizes, strict=True)])
    freedom = size - len(counts)
    inflated = np.where(estimated > 0, freedom / (freedom - estimated), 1.0)
    design = np.concatenate(
        [
            (share[index] / n + slope_leverage[index]) * residual[index] * np.sqrt(n / (n - 1) * inflated)[:, None]
            for index, n in enumerate(counts)
        ],
        axis=1,
    ) * np.sqrt(1 - inclusion)
    ratings, judge_values = np.concatenate(y, 1), np.concatenate(f, 1)
    value = sum(share[index] * (level[index] + slope[index] * average[index]) for index in range(len(counts)))
    equal = np.abs(ratings - judge_values).max(1) <= 1e-9 * width
    varying = np.abs(np.concatenate(residual, 1)).max(1) > 1e-9 * width
    constant_ratings = np.ptp(ratings, axis=1) <= 1e-9 * width
    value = np.where(equal, population.judge.mean(), value)
    quantile, variance = stdtrit(freedom - estimated, 0.975), np.square(design).sum(1)
    effective = (1 / inclusion).sum() ** 2 / np.square(1 / inclusion).sum()
    clipped = np.clip(value, low, high)
    unseen = PSEUDO_LABELS * (1 - inclusion.mean()) / effective**2 * ((high - clipped) ** 2 + (clipped - low) ** 2)
    unseen_half_width = unseen_rate(effective, 0.95) * width
    with_variance = varying & ~equal
    exact = ~equal & ~varying & constant_ratings & population.yes_no & np.isin(ratings[:, 0], [low, high])
    half = quantile * np.sqrt(variance)
    intervals = []
    for array in (_score_interval(value, variance + unseen, quantile, low, high), (value - half, value + half)):
        ends = [
            np.where(with_variance, array[0], value - unseen_half_width),
            np.where(with_variance, array[1], value + unseen_half_width),
        ]
        for index in np.flatnonzero(exact):
            limits = clopper_pearson((ratings[index, 0] - low) / width, effective, 0.95)
            ends[0][index], ends[1][index] = (low + limit * width for limit in limits)
        intervals.append((np.clip(ends[0], low, high), np.clip(ends[1], low, high)))
    shown = with_variance | equal | ~constant_ratings | exact
    warned = with_variance & (unseen > MAX_UNSEEN_SHARE * variance)
    mean = (ratings / inclusion).sum(1, keepdims=True) / (1 / inclusion).sum()
    spread = (np.square(ratings - mean) / inclusion).sum(1) / (1 / inclusion).sum() * size / (size - 1)
    ends = (high - clipped) ** 2 + (clipped - low) ** 2
    reached = np.where(with_variance, quantile * np.sqrt(variance + unseen), unseen_half_width)
    printed_draws = slice(0, PRINTED)
    printed = _uniform_labels(reached[printed_draws], spread[printed_draws], ends[printed_draws], frame)
    usable = (with_variance | equal)[printed_draws] & (spread[printed_draws] > 0)
    effective_labels = np.where(usable, printed, np.nan)
    return DrawResults(np.concatenate(sampled, 1), clipped, intervals[0], intervals[1], shown, warned, effective_labels)


def _uniform_labels(half: Array, spread: Array, ends: Array, size: int) -> Array:
    """Compute the product's ``uniform_labels`` for many draws at once."""
    low, high = np.full(len(half), MIN_UNIFORM_LABELS), np.full(len(half), float(size))
    for _ in range(40):
        labels = (low + high) / 2
        unseen = PSEUDO_LABELS / labels**2 * (1 - labels / size) * ends
        half_width = stdtrit(np.maximum(1, labels - 1), 0.975) * np.sqrt(spread * (1 / labels - 1 / size) + unseen)
        low, high = np.where(half_width > half, labels, low), np.where(half_width > half, high, labels)
    return (low + high) / 2


def choose_samples(random: np.random.Generator, draws: int, answer_count: int, size: int) -> Array:
    """Simple random samples without replacement, one a row."""
    keys = random.random((draws, answer_count), dtype=np.float32)
    return np.argpartition(keys, size - 1, axis=1)[:, :size]


def _score_interval(value: Array, variance: Array, quantile: Array, low: float, high: float) -> tuple[Array, Array]:
    error, clipped = np.minimum(np.sqrt(variance), (high - low) / 2), np.clip(value, low, high)
    inner = np.clip(clipped, low + error, high - error)
    ratio = quantile**2 * variance / ((high - inner) * (inner - low))
    half = np.sqrt(ratio * (high - clipped) * (clipped - low) + (ratio * (high - low) / 2) ** 2) / (1 + ratio)
    middle = (clipped + ratio * (low + high) / 2) / (1 + ratio)
    half_width = quantile * np.sqrt(variance)
    return np.minimum(value - half_width, middle - half), np.maximum(value + half_width, middle + half)


def simulate(population: Population, design: str, size: int, draws: int) -> CoverageCell:
    """Simulate one cell."""
    results = simulate_draws(population, *strata(population, design, size), draws, np.random.default_rng(size))
    truth, has_figure, answer_count = population.expert.mean(), results.shown, len(population.expert)
    covers = [
        ((low - 1e-12 <= truth) & (truth <= high + 1e-12))[has_figure].mean()
        for low, high in (results.ends, results.student)
    ]
    widths = [(high - low)[has_figure].mean() for low, high in (results.ends, results.student)]
    error = np.square(results.value - truth)[has_figure].mean() / population.expert.var(ddof=1)
    equivalent_labels = 1 / (error + 1 / answer_count)
    printed = (
        np.nanmean(results.effective) / equivalent_labels if np.isfinite(results.effective).any() else float("nan")
    )
    return CoverageCell(
        *covers, widths[0] / widths[1], equivalent_labels, printed, results.warned[has_figure].mean(), has_figure.mean()
    )


def compare_with_product(tested: Sequence[Population], draws: int) -> float:
    """The largest difference between arrays and product over ``draws`` draws in turn, as a share of the scale."""
    worst = 0.0
    for number in range(draws):
        population = tested[number * 7 % len(tested)]
        stratum, counts = strata(population, DESIGNS[number % 2], SIZES[number // 2 % 3])
        results = simulate_draws(population, stratum, counts, 1, np.random.default_rng(number))
        outcome = product_outcome(population, stratum, counts, set(results.sampled[0].tolist()))
        if isinstance(outcome, Estimate) is not bool(results.shown[0]):
            raise AssertionError(f"withheld in one of both: {outcome}")
        if isinstance(outcome, Estimate):
            ends = (
                results.value[0],
                min(results.ends[0][0], results.value[0]),
                max(results.ends[1][0], results.value[0]),
            )
            end_pairs = zip(ends, (outcome.value, outcome.low, outcome.high), strict=True)
            worst = max(
                worst,
                *(
                    abs(array_value - product_value) / (population.high - population.low)
                    for array_value, product_value in end_pairs
                ),
            )
            assert (EstimateWarning.UNSEEN_ANSWERS in outcome.warnings) is bool(results.warned[0])
            if np.isfinite(results.effective[0]):
                assert abs(results.effective[0] / outcome.effective_labels - 1) < 1e-4
    assert worst < 1e-9, worst
    return worst


def product_outcome(population: Population, stratum: Array, counts: list[int], sampled: set[int]) -> object:
    sizes = np.bincount(stratum)
    answers = [
        FrameAnswer(
            index,
            float(population.judge[index]),
            float(population.expert[index]) if index in sampled else None,
            ReviewState.RATED if index in sampled else ReviewState.NOT_SAMPLED,
            float(counts[stratum_index] / sizes[stratum_index]),
            str(stratum_index),
        )
        for index, stratum_index in enumerate(stratum)
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
    start = time.process_time()
    tested = [candidate for candidate in populations(Path(folder)) if options.only in {"", candidate.scale}] or [
        _synthetic_population()
    ]
    print(
        f"{PROOFS} draws through the product itself: largest difference {compare_with_product(tested, PROOFS):.1g} of the scale\n"  # noqa: E501
    )
    print("| scale | judge | design | labels | coverage | t | width | worth | printed | warned | shown |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    cells: dict[tuple[str, str, int], list[CoverageCell]] = {}
    for population in tested:
        for design in DESIGNS:
            for size in SIZES:
                if size >= len(population.judge):
                    continue
                cell = simulate(population, design, size, options.draws)
                cells.setdefault((population.scale, design, size), []).append(cell)
                print(
                    f"| {population.scale} | {population.name} | {design} | {size} | {cell.coverage:.3f} "
                    f"| {cell.student:.3f} | {cell.width:.2f} | {cell.worth:.0f} | {cell.printed:.2f} "
                    f"| {cell.warned:.2f} | {cell.shown:.3f}{' !' if cell.is_below_least(options.draws) else ''} |",
                    flush=True,
                )
    print_summary(cells, options.draws)
    print_effective_labels(cells)
    print(f"\n{time.process_time() - start:.0f} s of one processor")


def print_effective_labels(cells: dict[tuple[str, str, int], list[CoverageCell]]) -> None:
    """Effective labels as the product gives them over the true ones: mean over all judges, and the farthest."""
    print("\n| design | labels | printed over true | least | largest |\n|---|---|---|---|---|")
    worst = 0.0
    for design in DESIGNS:
        for size in SIZES:
            ratios = [
                result.printed
                for (_, *key), group_cells in cells.items()
                if key == [design, size]
                for result in group_cells
            ]
            if ratios := [ratio for ratio in ratios if np.isfinite(ratio)]:
                mean = float(np.mean(ratios))
                worst = max(worst, abs(mean - 1))
                print(f"| {design} | {size} | {mean:.2f} | {min(ratios):.2f} | {max(ratios):.2f} |")
    reached = "met" if worst <= MOST_OFF else "missed"
    print(f"\neffective labels are off by at most {100 * worst:.0f}% on average; goal {100 * MOST_OFF:.0f}%: {reached}")


def print_summary(cells: dict[tuple[str, str, int], list[CoverageCell]], draws: int) -> None:
    print("\n| scale | design | labels | cells | mean | least | t: mean | t: least | width | below 92% |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (scale, design, size), group_cells in cells.items():
        covers, student = [result.coverage for result in group_cells], [result.student for result in group_cells]
        print(
            f"| {scale} | {design} | {size} | {len(group_cells)} | {np.mean(covers):.3f} | {min(covers):.3f} "
            f"| {np.mean(student):.3f} | {min(student):.3f} | {np.mean([result.width for result in group_cells]):.2f} "
            f"| {sum(result.is_below_least(draws) for result in group_cells)} |"
        )
    for chosen_half in (True, False):
        group_cells = [
            result
            for (scale, _, _), scale_results in cells.items()
            if (scale in CHOSEN_ON) is chosen_half
            for result in scale_results
        ]
        if not group_cells:
            continue
        low_coverage_warned = [result.warned for result in group_cells if result.student < LEAST]
        high_coverage_warned = [result.warned for result in group_cells if result.student >= 0.94]
        short_count = sum(result.is_below_least(draws) for result in group_cells)
        print(
            f"\n{'chosen on' if chosen_half else 'held back'}: {len(group_cells)} cells, mean coverage "
            f"{np.mean([result.coverage for result in group_cells]):.4f} (t {np.mean([result.student for result in group_cells]):.4f}), least "  # noqa: E501
            f"{min(result.coverage for result in group_cells):.3f} (t {min(result.student for result in group_cells):.3f}), 99% limit below 92% in "  # noqa: E501
            f"{short_count}; warned in {np.mean(low_coverage_warned) if low_coverage_warned else 0:.3f} of the draws of {len(low_coverage_warned)} cells that t covers below "  # noqa: E501
            f"92%, and in {np.mean(high_coverage_warned) if high_coverage_warned else 0:.3f} of those of {len(high_coverage_warned)} that it covers at 94% or more"  # noqa: E501
        )


if __name__ == "__main__":
    main()
