"""Embedding models in the report, on the run page and in the files."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import translation

from evaluation.models import Run, Score
from review.management.demo.loader import DATA_DIR
from review.reports.provenance_facts import provenance_facts
from tests.evaluation.judging.embedding.tiny import LAYERS, tiny_model
from tests.evaluation.scoring.embedded import make_endpoint
from tests.factories import make_project
from tests.installed import needs
from tests.judge_server import JudgeServer
from tests.judge_server.fixture import judge_server
from tests.review.builders import make_report

__all__ = ["judge_server"]
pytestmark = pytest.mark.django_db
IDS = ["single-01", "single-06", "two-hop-01"]


@pytest.fixture
def project(settings: Any) -> str:
    """A project with the demo's questions and the answers of one system."""
    settings.CONCORD_DISPATCHER = "local"
    new_project = make_project()
    common_options = {"project": new_project.name, "stdout": StringIO()}
    call_command("import_questions", str(DATA_DIR / "en" / "questions.yaml"), name="demo", **common_options)
    options = {"questions": "demo", "system": "demo-vector"}
    call_command("import_answers", str(DATA_DIR / "en" / "answers_vector.jsonl"), **options, **common_options)
    return new_project.name


def evaluate_run(project: str, path: Path, **options: Any) -> dict[str, Any]:
    arguments = {"questions": "demo", "system": "demo-vector", "ids": IDS, "profile": "ragas", "project": project}
    call_command("evaluate", output=[path], stdout=StringIO(), **arguments, **options)
    return dict(json.loads(path.read_text("utf-8")))


@needs("local_embeddings")
def test_ragas_with_an_endpoint_has_all_figures_and_names_the_model(
    project: str, judge_server: JudgeServer, settings: Any, tmp_path: Path
) -> None:
    endpoint = make_endpoint(judge_server, settings)
    settings.CONCORD_BERT_SCORE_MODEL = str(tiny_model(tmp_path / "tiny"))
    report = evaluate_run(project, tmp_path / "report.json")
    figures = report["by_profile"]["figures"]
    for name in ("semantic_similarity_percentage", "ragas_answer_relevance", "ragas_score"):
        assert 0 <= figures[name] <= 100
    assert report["overall"]["weight"] == pytest.approx(1.0)
    assert report["provenance"]["embeddings"] == {
        "model": "e5",
        "endpoint": endpoint.name,
        "sha256": "",
        "models_returned": ["e5"],
    }
    assert report["provenance"]["token_model"]["layer"] == LAYERS
    assert {tuple(judge_entry["models_returned"]) for judge_entry in report["provenance"]["judges"]} == {("baseline",)}
    run = Run.objects.get(pk=report["run"]["id"])
    with translation.override("en"):
        facts = {fact.term: (fact.text, fact.code) for fact in provenance_facts(make_report(run).provenance)}
    assert facts["Embeddings"] == (endpoint.name, "e5")
    assert facts["BERTScore"][0] == f"local model, layer {LAYERS}"


@pytest.mark.slow
def test_ragas_without_embeddings_names_missing_figures_and_reweights(project: str, tmp_path: Path) -> None:
    report = evaluate_run(project, tmp_path / "report.json")
    assert report["provenance"]["embeddings"] is None
    figures = report["by_profile"]["figures"]
    assert [figures[n] for n in ("semantic_similarity_percentage", "bert_score_f1", "ragas_answer_relevance")] == [
        None
    ] * 3
    scores = Score.objects.filter(run_id=report["run"]["id"], status="not_applicable")
    assert set(scores.values_list("metric__name", "reason")) >= {
        ("semantic_similarity", "no_embeddings"),
        ("answer_relevance", "no_embeddings"),
        ("bert_score_f1", "no_token_model"),
    }
    assert report["metrics"]["semantic_similarity"]["judge_only"]["withheld"]


def test_unknown_embedding_endpoint_is_refused_without_a_run(project: str, tmp_path: Path) -> None:
    before = Run.objects.count()
    with pytest.raises(CommandError, match="embedding endpoint") as error:
        evaluate_run(project, tmp_path / "report.json", embeddings="nowhere")
    assert error.value.returncode == 2
    assert Run.objects.count() == before
