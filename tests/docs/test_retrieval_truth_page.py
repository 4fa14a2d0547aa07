"""The table of docs/retrieval-truth.md is what the simulation prints."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from review.statistics.retrieval_truth.pool import Metric
from tests.simulations.retrieval_truth import JUDGES, compare, labelled, simulate

PAGE = Path(__file__).parents[2] / "docs/retrieval-truth.md"
TITLES = {Metric.PRECISION: "precision", Metric.RECALL: "recall", Metric.NDCG: "nDCG"}
DATA = os.environ.get("CONCORD_TEST_DATA", "")


@pytest.mark.endurance
@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
@pytest.mark.parametrize("case", ["40%", "systems out", "shallow"])
def test_the_table_of_the_simulation(case: str) -> None:
    data = labelled(Path(DATA))
    alone = simulate(data, case, None, 200, 201, 0)
    found = [compare(simulate(data, case, judge, 200, 201, 1), alone) for judge in JUDGES]
    page = PAGE.read_text(encoding="utf-8")
    for metric, rows in zip(Metric, zip(*found, strict=True), strict=True):
        least = " | ".join(f"{min(row[name] for row in rows):.3f}" for name in ("mean", "least"))
        widest = " | ".join(f"{max(row[name] for row in rows):.2f}" for name in ("width", "largest width"))
        assert f"| {case} | {TITLES[metric]} | {least} | {widest} |" in page


@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
@pytest.mark.parametrize("case", ["40%", "systems out"])
def test_a_few_repairs_keep_the_promises(case: str) -> None:
    data = labelled(Path(DATA))
    alone, ours = (simulate(data, case, judge, 30, 201, 5) for judge in (None, JUDGES[0]))
    for metric, row in zip(Metric, compare(ours, alone), strict=True):
        assert row["mean"] >= 0.94
        assert row["largest width"] <= (1.0 if metric is Metric.RECALL else 0.7)
