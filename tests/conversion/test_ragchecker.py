"""RAGChecker's published preferences come out of an imported file of pairs."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from tests.conversion.ragchecker import DIMENSIONS, JUDGE, convert
from tests.factories import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
SIX_DIGITS = 1.01e-6


@pytest.fixture
def figures(sample_data: Path, tmp_path: Path) -> dict[str, Any]:
    project = make_project()
    file, folder = convert(sample_data / "ragchecker_meta", tmp_path), StringIO()
    call_command("import_pairs", str(file), name="ragchecker", project=project.name, stdout=folder)
    assert "140 new pairs, 840 preferences of people, 420 of judges (0 without a value)" in folder.getvalue()
    output = StringIO()
    call_command("pairs", "ragchecker", format="json", resamples=200, stdout=output)
    report: dict[str, Any] = json.loads(output.getvalue())
    return report


def test_agreement_of_annotators_and_judge_matches_published_values(figures: dict[str, Any], sample_data: Path) -> None:
    published = json.loads((sample_data / "reference_values.json").read_text())["ragchecker_meta"]["dimensions"]
    for dimension in DIMENSIONS:
        expected, computed = published[dimension], figures[dimension]
        among = computed["experts"]["agreement"]
        for name in ("nominal", "ordinal", "interval"):
            alpha = expected["inter_annotator"]["krippendorff_alpha"][name]["value"]
            assert among[f"krippendorff_alpha_{name}"] == pytest.approx(alpha, abs=SIX_DIGITS)
        kappa = expected["inter_annotator"]["kappa"]
        assert among["cohen_kappa"] == pytest.approx(kappa["unweighted"], abs=SIX_DIGITS)
        assert among["cohen_kappa_quadratic"] == pytest.approx(kappa["quadratic"], abs=SIX_DIGITS)
        judge = computed["judges"][JUDGE]["agreement"]
        mean_delta = expected["judge_delta_vs_human_mean"]
        assert judge["n"] == mean_delta["n"]
        for name in ("pearson", "spearman", "kendall_tau_b"):
            assert judge[name] == pytest.approx(mean_delta[name], abs=SIX_DIGITS)
        low, high = judge["intervals"]["pearson"]
        assert low < judge["pearson"] < high
