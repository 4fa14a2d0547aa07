"""docs/retrieval-truth.md shows the table of the simulation, and the names of gates and reasons."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from review.reports.gate import GateScore
from review.reports.retrieval import UNRATED
from review.statistics.retrieval_truth import estimates
from review.statistics.retrieval_truth.pool import RetrievalMetric
from tools.simulations.retrieval_truth import (
    CASES,
    JUDGES,
    MAX_WIDTH_RATIO,
    compare,
    known_labels,
    load_labelled,
    simulate,
    simulate_few_known,
)

PAGE = Path(__file__).parents[2] / "docs/retrieval-truth.md"
TITLES = {RetrievalMetric.PRECISION: "precision", RetrievalMetric.RECALL: "recall", RetrievalMetric.NDCG: "nDCG"}
DATA = os.environ.get("CONCORD_TEST_DATA", "")


@pytest.mark.endurance
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
@pytest.mark.parametrize("case", CASES)
def test_simulation_table_is_up_to_date(case: str) -> None:
    data = load_labelled(Path(DATA))
    uniform = simulate(data, case, None, 200, 201, 0)
    comparisons = [compare(simulate(data, case, judge, 200, 201, 1), uniform) for judge in JUDGES]
    page = PAGE.read_text(encoding="utf-8")
    for metric, rows in zip(RetrievalMetric, zip(*comparisons, strict=True), strict=True):
        least = " | ".join(f"{min(row[name] for row in rows):.3f}" for name in ("mean", "least"))
        widest = " | ".join(f"{max(row[name] for row in rows):.2f}" for name in ("width", "largest width"))
        assert f"| {case} | {TITLES[metric]} | {least} | {widest} |" in page


@pytest.mark.endurance
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
def test_recall_error_with_medium_judge_is_up_to_date() -> None:
    data = load_labelled(Path(DATA))
    uniform, guided = simulate(data, "shallow", None, 200, 201, 0), simulate(data, "shallow", JUDGES[1], 200, 201, 1)
    row = compare(guided, uniform)[list(RetrievalMetric).index(RetrievalMetric.RECALL)]
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"at most {row['largest width']:.2f} times as wide" in page
    assert f"at most {row['largest error']:.2f} times as large" in page


@pytest.mark.endurance
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
@pytest.mark.parametrize("case", CASES)
def test_table_of_few_known_passages_is_up_to_date(case: str) -> None:
    data, page = load_labelled(Path(DATA)), PAGE.read_text(encoding="utf-8")
    results = [simulate_few_known(data, case, judge, 200, 1) for judge in JUDGES]
    for index, metric in enumerate(RetrievalMetric):
        covered = [result.covered[:, index].mean(0) for result in results]
        least = f"{min(result.mean() for result in covered):.3f} | {min(result.min() for result in covered):.3f}"
        width = max(result.width[:, index].mean() for result in results)
        assert f"| {case} | {TITLES[metric]} | {least} | {width:.2f} |" in page


@pytest.mark.endurance
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
def test_smaller_miss_allowance_lowers_coverage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "UNSEEN_SHARE", 0.5)
    data, least = load_labelled(Path(DATA)), []
    for case in CASES:
        uniform = simulate(data, case, None, 200, 201, 0)
        for judge in JUDGES:
            least += [row["least"] for row in compare(simulate(data, case, judge, 200, 201, 1), uniform)]
    assert f"the worst cell covers {min(least):.2f}" in PAGE.read_text(encoding="utf-8")


@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
def test_page_describes_the_simulation() -> None:
    data, random, page = load_labelled(Path(DATA)), np.random.default_rng(1), PAGE.read_text(encoding="utf-8")
    missing_counts = [(~known_labels("shallow", data.ranks, random)).sum() for _ in range(200)]
    assert f"about {round(np.mean(missing_counts), -1):.0f} of {len(data.question):,} passages have no label" in page


def test_page_names_gates_and_reasons() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in (*(gate_score for gate_score in GateScore if gate_score.is_metric), UNRATED):
        assert f"`{name}`" in page or f"`--gate-on {name}`" in page


@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
@pytest.mark.parametrize("case", ["40%", "systems out"])
def test_small_simulation_keeps_promised_limits(case: str) -> None:
    data = load_labelled(Path(DATA))
    uniform, guided = (simulate(data, case, judge, 30, 201, 5) for judge in (None, JUDGES[0]))
    for metric, row in zip(RetrievalMetric, compare(guided, uniform), strict=True):
        assert row["mean"] >= 0.94
        assert row["largest width"] <= (1.0 if metric is RetrievalMetric.RECALL else MAX_WIDTH_RATIO)
