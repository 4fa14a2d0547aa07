"""Lists: explicit filters, cursor pages; anything else in the address is refused (A8)."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

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
def someone() -> Caller:
    return viewer(make_scored_run(make_answer_set()).project)


def test_parameters_nobody_declared_are_400(someone: Caller) -> None:
    """A8."""
    taken = []
    for path, trick in product(LISTS, TRICKS):
        response = someone.client.get(f"/api/v1/{path}?{trick}")
        if (response.status_code, list(response.json()["errors"])) != (400, [trick.partition("=")[0]]):
            taken.append(f"{path}?{trick}: {response.status_code} {response.json()}")
    assert taken == []


@pytest.mark.parametrize("path", ["runs/1/", "question-sets/1/"])
def test_details_take_no_parameters_at_all(someone: Caller, path: str) -> None:
    assert someone.get(path, expand="results__scores").status_code == 400


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
def test_values_that_make_no_sense_are_400(someone: Caller, path: str, query: str) -> None:
    assert someone.client.get(f"/api/v1/{path}?{query}").status_code == 400


def ids(response: Any) -> list[int]:
    assert response.status_code == 200, response.content
    return [row["id"] for row in response.json()["results"]]


def test_runs_are_found_by_each_of_their_filters() -> None:
    project = make_project()
    asked = make_question_set(project)
    one = make_draft_run(make_answer_set(asked, system="vector"))
    two = make_scored_run(make_answer_set(asked, system="graph"))
    someone = viewer(project)
    assert ids(someone.get("runs/")) == [two.pk, one.pk]
    assert ids(someone.get("runs/", status="draft")) == [one.pk]
    assert ids(someone.get("runs/", system="graph")) == [two.pk]
    assert ids(someone.get("runs/", answer_set=one.answer_set_id)) == [one.pk]
    assert ids(someone.get("runs/", question_set=asked.pk, project=project.pk)) == [two.pk, one.pk]
    assert ids(someone.get("runs/", profile=two.profile_version.name)) == [two.pk]
    assert ids(someone.get("runs/", project=project.pk + 1000)) == []
    assert ids(someone.get("answer-sets/", system="vector")) == [one.answer_set_id]
    assert ids(someone.get("systems/", name="vector")) == [one.answer_set.system_version.system_id]


def test_pages_lead_through_everything_once_forth_and_back() -> None:
    project = make_project()
    made = [make_question_set(project).pk for _ in range(5)]
    someone = viewer(project)
    page = someone.get("question-sets/", page_size=2).json()
    seen, previous = [row["id"] for row in page["results"]], page
    while page["next"]:
        previous, page = page, someone.client.get(page["next"]).json()
        seen += [row["id"] for row in page["results"]]
    assert seen == made[::-1]
    back = someone.client.get(page["previous"]).json()
    assert back["results"] == previous["results"]


@pytest.mark.parametrize("path", ["", "runs", "nothing/", "runs/-1/", "runs/abc/answers/", "../admin/"])
def test_addresses_that_do_not_exist_answer_in_json(someone: Caller, path: str) -> None:
    for response in (someone.get(path), someone.post(path)):
        assert response.status_code == 404
        assert "Addresses end with a slash" in response.json()["detail"]
