"""List filters and cursor pages; unknown parameters are refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from rest_framework.serializers import ListField

from evaluation.rest.endpoints import StrictSerializer
from evaluation.rest.fields import id_field
from tests.evaluation.rest.clients import Caller, viewer
from tests.factories import make_answer_set, make_draft_run, make_project, make_question_set, make_scored_run

pytestmark = pytest.mark.django_db

LISTS = ["question-sets/", "systems/", "answer-sets/", "judges/", "rubrics/", "profiles/", "runs/"]
TRICKS = [
    "password=x",
    "created_by__password=x",
    "endpoint__key_env=x",
    "project__grants__user=1",
    "_connector=OR",
    "name__contains=x",
    "id__in=1,2",
    "ordering=created_by__password",
    "order_by=x",
    "search=x",
    "format=xml",
    "page=2",
]


@pytest.fixture
def caller() -> Caller:
    return viewer(make_scored_run(make_answer_set()).project)


def test_undeclared_parameters_are_400(caller: Caller) -> None:
    accepted = []
    for path, trick in product(LISTS, TRICKS):
        response = caller.client.get(f"/api/v1/{path}?{trick}")
        if (response.status_code, list(response.json()["errors"])) != (400, [trick.partition("=")[0]]):
            accepted.append(f"{path}?{trick}: {response.status_code} {response.json()}")
    assert accepted == []


@pytest.mark.parametrize("path", ["runs/1/", "question-sets/1/"])
def test_details_accept_no_parameters(caller: Caller, path: str) -> None:
    assert caller.get(path, expand="results__scores").status_code == 400


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("runs/", "project=abc"),
        ("runs/", "project=-1"),
        ("runs/", "project=1.5"),
        ("runs/", "project=1e400"),
        ("runs/", "project=99999999999999999999"),
        ("runs/", "status=finished"),
        ("runs/", "system=a%00b"),
        ("runs/", "page_size=0"),
        ("runs/", "page_size=501"),
        ("runs/", "page_size=ten"),
        ("runs/", "page_size=%D9%A3"),
        ("runs/", "cursor=cD1hYmM="),  # p=abc
        ("runs/", "cursor=cD0lMDA="),  # p=%00
    ],
)
def test_invalid_values_are_400(caller: Caller, path: str, query: str) -> None:
    assert caller.client.get(f"/api/v1/{path}?{query}").status_code == 400


def ids(response: Any) -> list[int]:
    assert response.status_code == 200, response.content
    return [row["id"] for row in response.json()["results"]]


def test_runs_are_filtered_by_each_parameter() -> None:
    project = make_project()
    question_set = make_question_set(project)
    draft_run = make_draft_run(make_answer_set(question_set, system="vector"))
    scored_run = make_scored_run(make_answer_set(question_set, system="graph"))
    caller = viewer(project)
    assert ids(caller.get("runs/")) == [scored_run.pk, draft_run.pk]
    assert ids(caller.get("runs/", status="draft")) == [draft_run.pk]
    assert ids(caller.get("runs/", system="graph")) == [scored_run.pk]
    assert ids(caller.get("runs/", answer_set=draft_run.answer_set_id)) == [draft_run.pk]
    assert ids(caller.get("runs/", question_set=question_set.pk, project=project.pk)) == [scored_run.pk, draft_run.pk]
    assert ids(caller.get("runs/", profile=scored_run.profile_version.name)) == [scored_run.pk]
    assert ids(caller.get("runs/", project=project.pk + 1000)) == []
    assert ids(caller.get("answer-sets/", system="vector")) == [draft_run.answer_set_id]
    assert ids(caller.get("systems/", name="vector")) == [draft_run.answer_set.system_version.system_id]


def test_pages_cover_every_row_once_in_both_directions() -> None:
    project = make_project()
    created_ids = [make_question_set(project).pk for _ in range(5)]
    caller = viewer(project)
    page = caller.get("question-sets/", page_size=2).json()
    listed_ids, previous = [row["id"] for row in page["results"]], page
    while page["next"]:
        previous, page = page, caller.client.get(page["next"]).json()
        listed_ids += [row["id"] for row in page["results"]]
    assert listed_ids == created_ids[::-1]
    previous_page = caller.client.get(page["previous"]).json()
    assert previous_page["results"] == previous["results"]


@pytest.mark.parametrize("path", ["runs", "nothing/", "runs/-1/", "runs/abc/answers/", "../admin/"])
def test_unknown_addresses_return_json(caller: Caller, path: str) -> None:
    for response in (caller.get(path), caller.post(path)):
        assert response.status_code == 404
        assert "Addresses end with a slash" in response.json()["detail"]


@pytest.mark.parametrize("value", [5.0, True, "5.0", "٥", " 5"])
def test_ids_in_bodies_are_integers(caller: Caller, value: object) -> None:
    class Body(StrictSerializer):
        ids = ListField(child=id_field())

    response = caller.post("runs/", {"answer_set": value})
    assert (response.status_code, response.json()["errors"]) == (400, {"answer_set": ["A valid integer is required."]})
    body = Body(data={"ids": [1, value]})
    assert not body.is_valid()
    assert body.errors == {"ids": ["A valid integer is required."]}
    assert Body(data={"ids": [1, "2"]}).is_valid()
