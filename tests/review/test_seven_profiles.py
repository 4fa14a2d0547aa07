"""Every shipped profile runs on the demo without a key, and its report has the field names of its source."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from evaluation.models import Run, Score
from evaluation.profiles.spec import shipped_profiles
from review.management.demo.loader import DATA_DIR
from tests.examples import first_fast
from tests.factories import make_project

pytestmark = pytest.mark.django_db
NAMES = tuple(profile.name for profile in shipped_profiles())
FIGURES = {
    "graphrag": "keyword_hit_rate keyword_coverage negative_detection_rate avg_correctness avg_faithfulness "
    "avg_completeness overall_score",
    "ragas": "ragas_faithfulness ragas_context_precision ragas_context_recall ragas_answer_relevance ragas_score "
    "factual_accuracy_percentage semantic_similarity_percentage bert_score_f1 "
    "correct_answers_count wrong_answers_count dont_know_answers_count",
    "generation": "precision_at_k recall_at_k hit_rate_at_k mrr mean_faithfulness mean_answer_relevancy",
    "regulation": "accuracy completeness citations context_relevance overall_score",
    "phases": "context_relevance completeness groundedness overall_score",
    "phases_normalised": "context_relevance completeness groundedness overall_score",
    "standard": "avg_correctness claim_support nugget_support context_recall avg_completeness overall_score",
}
ANSWER_FIELDS = {
    "graphrag": "keyword_hit_rate avg_correctness reasoning",
    "ragas": "ragas_score ragas_faithfulness semantic_similarity_percentage bert_score_f1 answer_class grade weights",
    "generation": "precision_at_k mean_faithfulness reasoning",
    "regulation": "accuracy completeness citations context_relevance reasoning issues strengths overall_score passed "
    "metric_scores metric_status weights",
    "phases": "context_relevance cited_chunks uncited_chunks completeness covered_nuggets missing_nuggets groundedness "
    "supported_claims unsupported_claims suggested_queries action_items urgency overall_score needs_improvement",
    "phases_normalised": "context_relevance cited_chunks uncited_chunks completeness covered_nuggets missing_nuggets "
    "groundedness supported_claims unsupported_claims suggested_queries action_items urgency overall_score "
    "needs_improvement",
    "standard": "avg_correctness claim_support supported_claims unsupported_claims weights overall_score",
}


@pytest.fixture(autouse=True)
def no_queue(settings: object) -> None:
    settings.CONCORD_DISPATCHER = "local"  # type: ignore[attr-defined]


@pytest.fixture
def project() -> str:
    """A project with the demo's questions and the answers of one system."""
    new_project = make_project()
    common_options = {"project": new_project.name, "stdout": StringIO()}
    call_command("import_questions", str(DATA_DIR / "en" / "questions.yaml"), name="demo", **common_options)
    options = {"questions": "demo", "system": "demo-vector"}
    call_command("import_answers", str(DATA_DIR / "en" / "answers_vector.jsonl"), **options, **common_options)
    return new_project.name


def evaluate_demo(project: str, profile: str, path: Path) -> dict[str, Any]:
    """The JSON report of an evaluation of the demo's first questions and its negative ones."""
    options = {"project": project, "profile": profile, "output": [path], "max_concurrency": 4}
    ids = ["single-01", "single-06", "two-hop-01", "agg-01", "neg-01", "neg-02"]
    call_command("evaluate", questions="demo", system="demo-vector", ids=ids, stdout=StringIO(), **options)
    report: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return report


@pytest.mark.parametrize("name", first_fast(NAMES, 3))
@pytest.mark.slow
def test_profile_runs_without_a_key_and_reports_its_source_names(project: str, name: str, tmp_path: Path) -> None:
    report = evaluate_demo(project, name, tmp_path / "report.json")
    run = Run.objects.get(pk=report["run"]["id"])
    assert run.state == Run.State.COMPLETED
    assert not Score.objects.filter(run=run, status="failed").exists()
    assert set(FIGURES[name].split()) <= set(report["by_profile"]["figures"])
    details = report["evaluation"]["details"]
    assert len(details) == 6
    for field in ANSWER_FIELDS[name].split():
        assert any(field in entry["source"] for entry in details), field


@pytest.mark.parametrize("name", first_fast(sorted(set(NAMES) - {"generation"}), 2))
def test_profile_with_parts_has_an_overall_score_between_0_and_1(project: str, name: str, tmp_path: Path) -> None:
    report = evaluate_demo(project, name, tmp_path / "report.json")
    overall = report["overall"]
    assert overall["label"] == "overall_score"
    assert 0 <= overall["judge_only"]["value"] <= 1


def test_evaluation_without_a_profile_uses_standard(project: str, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    options = {"project": project, "ids": ["single-01"], "output": [path], "stdout": StringIO()}
    call_command("evaluate", questions="demo", system="demo-vector", **options)
    assert json.loads(path.read_text("utf-8"))["run"]["profile"] == "standard v1"
