"""How often do corrected intervals cover the truth? Draws many samples from fully labelled public data sets.

    CONCORD_TEST_DATA=... python -m tools.simulations.correction [--draws 1000] [--only openqa]

One draw after the other through the product itself: draws by uncertainty, and intervals for questions like these.

Every answer of openqa_nq301 and llmjudge_dl23 has a human label, so the true mean is known. Prints one Markdown row per
judge, design and size, and the mean coverage at the end. A skewed synthetic scale is shown too, outside the means."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from review.statistics.correction.corrected import corrected_component
from review.statistics.correction.frame import Component, ReviewState
from review.statistics.correction.outcome import CorrectionOutcome, Estimate, Target
from review.statistics.sampling.draw import draw
from review.statistics.sampling.member import DrawnAnswer, DrawParams, Member
from tests.review.statistics.correction.frames import FrameAnswer, frame_of

SIZES = (25, 50, 100, 200)
MOST_OFF = 0.15
DESIGNS = ("uncertainty",)  # the others: tools/simulations/coverage.py
LLM_JUDGES = ("Olz-gpt4o", "RMITIR-llama70B", "willia-umbrela1", "TREMA-4prompts", "h2oloo-fewself")


@dataclass(frozen=True, slots=True)
class Population:
    """A judge and the truth: aligned values, groups, the jury's spread, and the ends of the scale."""

    name: str
    judge: list[float | None]
    expert: list[float]
    group: list[str]
    spread: list[float]
    low: float
    high: float

    @property
    def truth(self) -> float:
        return float(np.mean(self.expert))


@dataclass(frozen=True, slots=True)
class CorrectionCell:
    """Coverage of one judge, design and size. ``shift`` is the bias over the mean half-width. ``printed`` is the mean
    of the product's effective labels (NaN without any) over those of a uniform draw with equal error. ``withheld``
    is the share of samples without a figure, which the other fields leave out."""

    coverage: float
    shift: float
    half_width: float
    effective_labels: float
    printed: float
    withheld: float


def populations(folder: Path, only: str) -> Iterator[Population]:
    """Yield all judges; a jury's spread is the standard deviation over all judges of the data set."""
    if only in {"", "openqa"}:
        items = _rows(folder / "openqa_nq301/items.jsonl")
        for judge in ("gpt-4", "text-davinci-003", "bem"):
            yield Population(
                f"openqa {judge}",
                [item["judges"][judge]["verdict"] for item in items],
                [item["human"]["acceptable"] for item in items],
                [item["question_id"] for item in items],
                [_deviation([judgement["verdict"] for judgement in item["judges"].values()]) for item in items],
                0.0,
                1.0,
            )
    if only in {"", "skewed"}:
        yield skewed_population()
    if only in {"", "llmjudge"}:
        items = _rows(folder / "llmjudge_dl23/judgements.jsonl")
        for judge in LLM_JUDGES:
            yield Population(
                f"llmjudge {judge}",
                [value if (value := item["judges"][judge]) in {0, 1, 2, 3} else None for item in items],
                [item["human"] for item in items],
                [item["query_id"] for item in items],
                [_deviation(list(item["judges"].values())) for item in items],
                0.0,
                3.0,
            )


def skewed_population() -> Population:
    """1,000 synthetic answers on 1..5, of which the experts give 95% a 5; the judge misses half of the others."""
    random = np.random.default_rng(0)
    expert = random.choice([5, 4, 1], 1000, p=[0.95, 0.03, 0.02]).astype(float)
    judge = np.where(random.random(1000) < 0.5, expert, 5.0)
    spread = np.abs(random.normal(0, 0.3, 1000)) + (judge < 5)
    keys = [str(number) for number in range(1000)]
    return Population("synthetic skewed", judge.tolist(), expert.tolist(), keys, spread.tolist(), 1.0, 5.0)


def simulate(population: Population, design: str, size: int, draws: int) -> CorrectionCell:
    """Draw ``draws`` times and correct each time (target: this run)."""
    members = [Member(index, "", value, value is None) for index, value in enumerate(population.judge)]
    params = DrawParams(spread=dict(enumerate(population.spread)))
    outcomes = [_outcome(population, draw(members, design, size, seed, params)) for seed in range(draws)]
    estimates = [estimate for estimate in outcomes if isinstance(estimate, Estimate)]
    halves = [(estimate.high - estimate.low) / 2 for estimate in estimates]
    labels = [
        (estimate.effective_labels, estimate.value - population.truth)
        for estimate in estimates
        if estimate.effective_labels
    ]
    effective, error = float("nan"), 0.0
    if len(labels) > 0.9 * draws:  # else those that are shown are unusual draws
        effective = float(np.mean([label for label, _ in labels]))
        error = float(
            np.square([estimate_error for _, estimate_error in labels]).mean() / np.var(population.expert, ddof=1)
        )
    return CorrectionCell(
        float(np.mean([estimate.low <= population.truth <= estimate.high for estimate in estimates])),
        float(np.mean([estimate.value for estimate in estimates]) - population.truth) / float(np.mean(halves)),
        float(np.mean(halves)),
        effective,
        effective * (error + 1.0 / len(members)),
        1.0 - len(estimates) / draws,
    )


def simulate_clusters(population: Population, size: int, draws: int) -> float:
    """Coverage for questions like these: groups are drawn with replacement, then a uniform sample of their answers."""
    by_group: dict[str, list[int]] = {}
    for index, group in enumerate(population.group):
        by_group.setdefault(group, []).append(index)
    groups, random, hits = list(by_group.values()), np.random.default_rng(0), 0
    for seed in range(draws):
        drawn_groups = random.integers(0, len(groups), len(groups))
        index_and_group = [
            (index, f"{draw_number}") for draw_number, group in enumerate(drawn_groups) for index in groups[group]
        ]
        resampled = Population(
            population.name,
            [population.judge[index] for index, _ in index_and_group],
            [population.expert[index] for index, _ in index_and_group],
            [group for _, group in index_and_group],
            [],
            population.low,
            population.high,
        )
        members = [Member(index, "", value, value is None) for index, value in enumerate(resampled.judge)]
        outcome = _outcome(resampled, draw(members, "uniform", size, seed), Target.QUESTIONS_LIKE_THESE)
        hits += isinstance(outcome, Estimate) and outcome.low <= population.truth <= outcome.high
    return hits / draws


def _outcome(
    population: Population, drawn_answers: list[DrawnAnswer], target: Target = Target.THIS_RUN
) -> CorrectionOutcome:
    answers = [
        FrameAnswer(
            drawn_answer.key,
            population.judge[drawn_answer.key],
            float(population.expert[drawn_answer.key]) if drawn_answer.sampled else None,
            ReviewState.RATED if drawn_answer.sampled else ReviewState.NOT_SAMPLED,
            drawn_answer.probability,
            drawn_answer.stratum,
            population.group[drawn_answer.key],
        )
        for drawn_answer in drawn_answers
    ]
    yes_no = population.high - population.low == 1.0
    return corrected_component(
        Component("x", frame_of(answers), population.low, population.high, yes_no=yes_no), target
    )


def _deviation(values: list[float | None]) -> float:
    present = [value for value in values if value is not None]
    return float(np.std(present)) if present else 0.0


def _rows(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--only", choices=["", "openqa", "llmjudge", "skewed"], default="")
    options = parser.parse_args()
    folder = os.environ.get("CONCORD_TEST_DATA")
    if not folder:
        raise SystemExit("CONCORD_TEST_DATA names no folder of sample data")
    coverages: list[float] = []
    printed: dict[int, list[float]] = {}
    clusters: dict[str, list[float]] = {}
    print(
        "| judge | design | labels | coverage | bias / half-width | half-width | worth labels | over true | withheld |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for population in populations(Path(folder), options.only):
        for design in DESIGNS:
            for size in SIZES:
                results = simulate(population, design, size, options.draws)
                if not population.name.startswith("synthetic"):
                    coverages.append(results.coverage)
                    printed.setdefault(size, []).append(results.printed)
                print(
                    f"| {population.name} | {design} | {size} | {results.coverage:.3f} | {results.shift:+.3f} "
                    f"| {results.half_width:.4f} | {results.effective_labels:.0f} | {results.printed:.2f} "
                    f"| {results.withheld:.3f} |",
                    flush=True,
                )
        clustered = simulate_clusters(population, 100, options.draws)
        clusters.setdefault(population.name.partition(" ")[0], []).append(clustered)
        print(f"| {population.name} | uniform, questions like these | 100 | {clustered:.3f} | | | | | |", flush=True)
    if coverages:
        print(f"\nthis run: mean coverage {np.mean(coverages):.4f}, least {min(coverages):.3f}")
    mean_ratios = {
        size: float(np.nanmean(cell_values)) for size, cell_values in printed.items() if np.isfinite(cell_values).any()
    }
    if mean_ratios:
        worst = max(abs(ratio - 1) for ratio in mean_ratios.values())
        reached = "met" if worst <= MOST_OFF else "missed"
        summary = ", ".join(f"{ratio:.2f} at {size} labels" for size, ratio in mean_ratios.items())
        print(f"effective labels by uncertainty over true: {summary}; goal within {100 * MOST_OFF:.0f}%: {reached}")
    for name, cell_values in clusters.items():
        print(f"questions like these, {name}: mean coverage {np.mean(cell_values):.4f}")


if __name__ == "__main__":
    main()
