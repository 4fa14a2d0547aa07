"""``criteria/``, and runs over the API with metrics, criteria and embeddings of one's choice."""

from __future__ import annotations

import pytest

from evaluation.core.roles import Role
from evaluation.criteria.services import draft
from evaluation.models import Endpoint, Run
from tests.evaluation.criteria.written import drafted, in_force, spec
from tests.evaluation.rest.clients import Caller, evaluator, viewer
from tests.factories import make_answer_set, make_project

pytestmark = pytest.mark.django_db


def test_criteria_are_listed_newest_first_with_the_version_in_force() -> None:
    project = make_project()
    first = in_force(project, name="tone")
    edited = draft(project, spec(direction="lower"), by=None)
    found = viewer(project).get("criteria/").json()["results"]
    assert [(one["id"], one["name"], one["version"], one["active"]) for one in found] == [
        (edited.pk, "tone", 2, False),
        (first.pk, "tone", 1, True),
    ]
    assert found[1]["spec"]["en"]["levels"][0]["text"] == "Rude"
    assert found[0]["project"] == project.pk


def test_one_criterion_is_read_and_nothing_can_be_written() -> None:
    project = make_project()
    version = drafted(project)
    caller = evaluator(project)
    assert caller.get(f"criteria/{version.pk}/").json()["active"] is False
    assert caller.post("criteria/", {"name": "x"}).status_code == 405


def test_criteria_of_another_project_do_not_exist_for_one() -> None:
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
    found = viewer(project).get("criteria/", name="brevity").json()["results"]
    assert [one["name"] for one in found] == ["brevity"]


def test_a_run_computes_metrics_and_criteria_beside_the_profiles() -> None:
    answers = make_answer_set()
    in_force(answers.project, name="tone")
    body = {"answer_set": answers.pk, "profile": "graphrag", "metrics": ["dont_know", "tone"]}
    made = evaluator(answers.project).post("runs/", body)
    assert made.status_code == 202
    run = Run.objects.get(pk=made.json()["id"])
    assert "dont_know" in run.config["rules"]
    assert "criterion:tone" in {judge.rubric_version.family for judge in run.judges.all()}


def test_a_metric_or_an_embedding_endpoint_that_there_is_not_makes_no_run() -> None:
    answers = make_answer_set()
    caller = evaluator(answers.project)
    refused = caller.post("runs/", {"answer_set": answers.pk, "metrics": ["dont_knw"]})
    assert refused.status_code == 400
    assert "dont_know" in refused.content.decode()
    body = {"answer_set": answers.pk, "metrics": ["semantic_similarity"], "embeddings": "none such"}
    assert caller.post("runs/", body).status_code == 400
    assert not Run.objects.exists()


def test_a_criterion_that_is_no_longer_in_force_is_refused() -> None:
    answers = make_answer_set()
    drafted(answers.project, name="tone")
    refused = evaluator(answers.project).post("runs/", {"answer_set": answers.pk, "metrics": ["tone"]})
    assert (refused.status_code, refused.json()["code"]) == (409, "criterion_not_active")


def test_the_embeddings_of_a_run_are_chosen_over_the_api() -> None:
    answers = make_answer_set()
    endpoint = Endpoint.objects.create(name="vectors", base_url="https://llm.example/v1", embedding_model="m")
    caller = evaluator(answers.project)
    chosen = {}
    for name in (endpoint.name, "none"):
        body = {"answer_set": answers.pk, "judge": None, "metrics": ["semantic_similarity"], "embeddings": name}
        chosen[name] = Run.objects.get(pk=caller.post("runs/", body).json()["id"]).config["embedding"]
    assert chosen[endpoint.name]["endpoint"] == endpoint.pk
    assert chosen["none"] is None
