"""``criteria/``, and API runs with chosen metrics, criteria and embeddings."""

from __future__ import annotations

import pytest

from evaluation.core.roles import Role
from evaluation.criteria.services import draft_version
from evaluation.models import Endpoint, Run
from tests.evaluation.criteria.written import drafted, in_force, spec
from tests.evaluation.rest.clients import Caller, evaluator, viewer
from tests.factories import make_answer_set, make_project

pytestmark = pytest.mark.django_db


def test_criteria_are_listed_newest_first_with_their_active_version() -> None:
    project = make_project()
    first = in_force(project, name="tone")
    edited = draft_version(project, spec(direction="lower"), by=None)
    rows = viewer(project).get("criteria/").json()["results"]
    assert [(row["id"], row["name"], row["version"], row["active"]) for row in rows] == [
        (edited.pk, "tone", 2, False),
        (first.pk, "tone", 1, True),
    ]
    assert rows[1]["spec"]["en"]["levels"][0]["text"] == "Rude"
    assert rows[0]["project"] == project.pk


def test_criteria_are_read_only() -> None:
    project = make_project()
    version = drafted(project)
    caller = evaluator(project)
    assert caller.get(f"criteria/{version.pk}/").json()["active"] is False
    assert caller.post("criteria/", {"name": "x"}).status_code == 405


def test_criteria_of_another_project_are_not_visible() -> None:
    version = in_force(make_project())
    caller = viewer(make_project())
    assert caller.get("criteria/").json()["results"] == []
    assert caller.get(f"criteria/{version.pk}/").status_code == 404
    reviewer = Caller(Role.REVIEWER, version.criterion.project)
    assert reviewer.get("criteria/").json()["results"] == []


def test_criteria_are_found_by_name() -> None:
    project = make_project()
    in_force(project, name="tone")
    in_force(project, name="brevity")
    rows = viewer(project).get("criteria/", name="brevity").json()["results"]
    assert [row["name"] for row in rows] == ["brevity"]


def test_run_adds_metrics_and_criteria_to_those_of_the_profile() -> None:
    answers = make_answer_set()
    in_force(answers.project, name="tone")
    body = {"answer_set": answers.pk, "profile": "graphrag", "metrics": ["dont_know", "tone"]}
    response = evaluator(answers.project).post("runs/", body)
    assert response.status_code == 202
    run = Run.objects.get(pk=response.json()["id"])
    assert "dont_know" in run.config["rules"]
    assert "criterion:tone" in {judge.rubric_version.family for judge in run.judges.all()}


def test_unknown_metric_or_embedding_endpoint_is_refused() -> None:
    answers = make_answer_set()
    caller = evaluator(answers.project)
    response = caller.post("runs/", {"answer_set": answers.pk, "metrics": ["dont_knw"]})
    assert response.status_code == 400
    assert "dont_know" in response.content.decode()
    body = {"answer_set": answers.pk, "metrics": ["semantic_similarity"], "embeddings": "none such"}
    assert caller.post("runs/", body).status_code == 400
    assert not Run.objects.exists()


def test_inactive_criterion_is_refused() -> None:
    answers = make_answer_set()
    drafted(answers.project, name="tone")
    response = evaluator(answers.project).post("runs/", {"answer_set": answers.pk, "metrics": ["tone"]})
    assert (response.status_code, response.json()["code"]) == (409, "criterion_not_active")


def test_embeddings_of_a_run_are_chosen_over_the_api() -> None:
    answers = make_answer_set()
    endpoint = Endpoint.objects.create(name="vectors", base_url="https://llm.example/v1", embedding_model="m")
    caller = evaluator(answers.project)
    embeddings = {}
    for name in (endpoint.name, "none"):
        body = {"answer_set": answers.pk, "judge": None, "metrics": ["semantic_similarity"], "embeddings": name}
        embeddings[name] = Run.objects.get(pk=caller.post("runs/", body).json()["id"]).config["embedding"]
    assert embeddings[endpoint.name]["endpoint"] == endpoint.pk
    assert embeddings["none"] is None
