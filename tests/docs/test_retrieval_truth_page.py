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
    NARROW,
    compare,
    known_after,
    labelled,
    simulate,
    simulate_few_known,
)

PAGE = Path(__file__).parents[2] / "docs/retrieval-truth.md"
TITLES = {RetrievalMetric.PRECISION: "precision", RetrievalMetric.RECALL: "recall", RetrievalMetric.NDCG: "nDCG"}
DATA = os.environ.get("CONCORD_TEST_DATA", "")


@pytest.mark.endurance
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
@pytest.mark.parametrize("case", CASES)
def test_the_table_of_the_simulation(case: str) -> None:
    data = labelled(Path(DATA))
    alone = simulate(data, case, None, 200, 201, 0)
    found = [compare(simulate(data, case, judge, 200, 201, 1), alone) for judge in JUDGES]
    page = PAGE.read_text(encoding="utf-8")
    for metric, rows in zip(RetrievalMetric, zip(*found, strict=True), strict=True):
        least = " | ".join(f"{min(row[name] for row in rows):.3f}" for name in ("mean", "least"))
        widest = " | ".join(f"{max(row[name] for row in rows):.2f}" for name in ("width", "largest width"))
        assert f"| {case} | {TITLES[metric]} | {least} | {widest} |" in page


@pytest.mark.endurance
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
def test_how_far_recall_errs_with_a_middling_judge() -> None:
    data = labelled(Path(DATA))
    alone, ours = simulate(data, "shallow", None, 200, 201, 0), simulate(data, "shallow", JUDGES[1], 200, 201, 1)
    row = compare(ours, alone)[list(RetrievalMetric).index(RetrievalMetric.RECALL)]
    page = PAGE.read_text(encoding="utf-8")
    assert f"as wide as by uniform draws ({row['largest width']:.2f} times at most)" in page
    assert f"root mean square {row['largest error']:.2f} of it at most" in page


@pytest.mark.endurance
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
@pytest.mark.parametrize("case", CASES)
def test_the_table_of_questions_with_few_known_relevant_passages(case: str) -> None:
    data, page = labelled(Path(DATA)), PAGE.read_text(encoding="utf-8")
    found = [simulate_few_known(data, case, judge, 200, 1) for judge in JUDGES]
    for at, metric in enumerate(RetrievalMetric):
        covered = [one.covered[:, at].mean(0) for one in found]
        least = f"{min(one.mean() for one in covered):.3f} | {min(one.min() for one in covered):.3f}"
        width = max(one.width[:, at].mean() for one in found)
        assert f"| {case} | {TITLES[metric]} | {least} | {width:.2f} |" in page


@pytest.mark.endurance
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
def test_a_smaller_allowance_covers_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "UNSEEN_SHARE", 0.5)
    data, least = labelled(Path(DATA)), []
    for case in CASES:
        alone = simulate(data, case, None, 200, 201, 0)
        for judge in JUDGES:
            least += [row["least"] for row in compare(simulate(data, case, judge, 200, 201, 1), alone)]
    assert f"which with half of what the\nguess expects fell to {min(least):.2f}" in PAGE.read_text(encoding="utf-8")


@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
def test_what_is_simulated_is_told() -> None:
    data, random, page = labelled(Path(DATA)), np.random.default_rng(1), PAGE.read_text(encoding="utf-8")
    missing = [(~known_after("shallow", data.ranks, random)).sum() for _ in range(200)]
    assert f"about {round(np.mean(missing), -1):.0f} of {len(data.question):,} passages have no label" in page


def test_gates_and_reasons_are_told_by_their_names() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in (*(on for on in GateScore if on.is_metric), UNRATED):
        assert f"`{name}`" in page or f"`--gate-on {name}`" in page


@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
@pytest.mark.parametrize("case", ["40%", "systems out"])
def test_a_few_repairs_keep_the_promises(case: str) -> None:
    data = labelled(Path(DATA))
    alone, ours = (simulate(data, case, judge, 30, 201, 5) for judge in (None, JUDGES[0]))
    for metric, row in zip(RetrievalMetric, compare(ours, alone), strict=True):
        assert row["mean"] >= 0.94
        assert row["largest width"] <= (1.0 if metric is RetrievalMetric.RECALL else NARROW)
