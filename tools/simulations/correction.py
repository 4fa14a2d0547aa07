"""How often do corrected intervals cover the truth? Draws many samples from fully labelled public data sets.

    CONCORD_TEST_DATA=... python -m tools.simulations.correction [--draws 1000] [--only openqa]

One draw after the other through the product itself: draws by uncertainty, and intervals for questions like these.

Every answer of openqa_nq301 and llmjudge_dl23 has a human label, so the mean the correction aims at is known. Prints
one Markdown row per judge, design and size, and the mean coverage at the end. A skewed synthetic scale is shown beside
them, whatever it gives.
"""

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
class Cell:
    """Coverage of one judge, design and size; ``shift`` is the bias over the mean half-width, ``printed`` the effective
    labels that the product gives (mean; NaN where it gives none) over those of a uniform draw that errs as much,
    ``withheld`` the share of samples that gave no figure (they are in none of the others)."""

    coverage: float
    shift: float
    half_width: float
    effective_labels: float
    printed: float
    withheld: float


def populations(folder: Path, only: str) -> Iterator[Population]:
    """All judges; a jury's spread is the standard deviation over all judges of the data set."""
    if only in {"", "openqa"}:
        items = _rows(folder / "openqa_nq301/items.jsonl")
        for judge in ("gpt-4", "text-davinci-003", "bem"):
            yield Population(
                f"openqa {judge}",
                [item["judges"][judge]["verdict"] for item in items],
                [item["human"]["acceptable"] for item in items],
                [item["question_id"] for item in items],
                [_deviation([one["verdict"] for one in item["judges"].values()]) for item in items],
                0.0,
                1.0,
            )
    if only in {"", "skewed"}:
        yield skewed()
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


def skewed() -> Population:
    """1,000 synthetic answers on 1..5, of which the experts give 95% a 5; the judge misses half of the others."""
    random = np.random.default_rng(0)
    expert = random.choice([5, 4, 1], 1000, p=[0.95, 0.03, 0.02]).astype(float)
    judge = np.where(random.random(1000) < 0.5, expert, 5.0)
    spread = np.abs(random.normal(0, 0.3, 1000)) + (judge < 5)
    keys = [str(at) for at in range(1000)]
    return Population("synthetic skewed", judge.tolist(), expert.tolist(), keys, spread.tolist(), 1.0, 5.0)


def simulate(population: Population, design: str, size: int, draws: int) -> Cell:
    """Draw ``draws`` times and correct each time (target: this run)."""
    members = [Member(at, "", value, value is None) for at, value in enumerate(population.judge)]
    params = DrawParams(spread=dict(enumerate(population.spread)))
    outcomes = [_outcome(population, draw(members, design, size, seed, params)) for seed in range(draws)]
    found = [one for one in outcomes if isinstance(one, Estimate)]
    halves = [(one.high - one.low) / 2 for one in found]
    labels = [(one.effective_labels, one.value - population.truth) for one in found if one.effective_labels]
    effective, error = float("nan"), 0.0
    if len(labels) > 0.9 * draws:  # else those that are shown are unusual draws
        effective = float(np.mean([label for label, _ in labels]))
        error = float(np.square([apart for _, apart in labels]).mean() / np.var(population.expert, ddof=1))
    return Cell(
        float(np.mean([one.low <= population.truth <= one.high for one in found])),
        float(np.mean([one.value for one in found]) - population.truth) / float(np.mean(halves)),
        float(np.mean(halves)),
        effective,
        effective * (error + 1.0 / len(members)),
        1.0 - len(found) / draws,
    )


def simulate_clusters(population: Population, size: int, draws: int) -> float:
    """Coverage for questions like these: groups are drawn with replacement, then a uniform sample of their answers."""
    by_group: dict[str, list[int]] = {}
    for at, group in enumerate(population.group):
        by_group.setdefault(group, []).append(at)
    groups, random, hits = list(by_group.values()), np.random.default_rng(0), 0
    for seed in range(draws):
        picked = random.integers(0, len(groups), len(groups))
        places = [(at, f"{turn}") for turn, group in enumerate(picked) for at in groups[group]]
        again = Population(
            population.name,
            [population.judge[at] for at, _ in places],
            [population.expert[at] for at, _ in places],
            [group for _, group in places],
            [],
            population.low,
            population.high,
        )
        members = [Member(at, "", value, value is None) for at, value in enumerate(again.judge)]
        found = _outcome(again, draw(members, "uniform", size, seed), Target.QUESTIONS_LIKE_THESE)
        hits += isinstance(found, Estimate) and found.low <= population.truth <= found.high
    return hits / draws


def _outcome(population: Population, drawn: list[DrawnAnswer], target: Target = Target.THIS_RUN) -> CorrectionOutcome:
    answers = [
        FrameAnswer(
            one.key,
            population.judge[one.key],
            float(population.expert[one.key]) if one.sampled else None,
            ReviewState.RATED if one.sampled else ReviewState.NOT_SAMPLED,
            one.probability,
            one.stratum,
            population.group[one.key],
        )
        for one in drawn
    ]
    yes_no = population.high - population.low == 1.0
    return corrected_component(
        Component("x", frame_of(answers), population.low, population.high, yes_no=yes_no), target
    )


def _deviation(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return float(np.std(known)) if known else 0.0


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
                cell = simulate(population, design, size, options.draws)
                if not population.name.startswith("synthetic"):
                    coverages.append(cell.coverage)
                    printed.setdefault(size, []).append(cell.printed)
                print(
                    f"| {population.name} | {design} | {size} | {cell.coverage:.3f} | {cell.shift:+.3f} "
                    f"| {cell.half_width:.4f} | {cell.effective_labels:.0f} | {cell.printed:.2f} "
                    f"| {cell.withheld:.3f} |",
                    flush=True,
                )
        clustered = simulate_clusters(population, 100, options.draws)
        clusters.setdefault(population.name.partition(" ")[0], []).append(clustered)
        print(f"| {population.name} | uniform, questions like these | 100 | {clustered:.3f} | | | | | |", flush=True)
    if coverages:
        print(f"\nthis run: mean coverage {np.mean(coverages):.4f}, least {min(coverages):.3f}")
    means = {size: float(np.nanmean(found)) for size, found in printed.items() if np.isfinite(found).any()}
    if means:
        worst = max(abs(mean - 1) for mean in means.values())
        reached = "met" if worst <= MOST_OFF else "missed"
        shown = ", ".join(f"{mean:.2f} at {size} labels" for size, mean in means.items())
        print(f"effective labels by uncertainty over true: {shown}; goal within {100 * MOST_OFF:.0f}%: {reached}")
    for name, found in clusters.items():
        print(f"questions like these, {name}: mean coverage {np.mean(found):.4f}")


if __name__ == "__main__":
    main()
