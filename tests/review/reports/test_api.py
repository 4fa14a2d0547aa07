"""Report figures over REST: permissions, formats, and recorded exposures."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from pytest_django import DjangoAssertNumQueries

from evaluation.core.roles import Role
from evaluation.models import Run
from review.models import Exposure, Rating
from tests.factories import make_user
from tests.review.builders import (
    answer_rows,
    answers_to,
    draw_into,
    imported_rating,
    metric,
    queue_for,
    run_over,
    score_all,
)
from tests.review.clients import Caller

pytestmark = pytest.mark.django_db
PATHS = ("report/", "agreement/?resamples=0")
ROW = {"question_id": "q1", "metric": "correctness", "value": 4, "rater": "human", "author": "e1"}


@pytest.fixture
def run() -> Run:
    scored_run = run_over(answers_to(["a", "a", "b"]))
    score_all(scored_run, {"correctness": [5, 4, 3], "faithfulness": [5, 5, 4]})
    return scored_run


def caller(run: Run, role: Role | None) -> Caller:
    return Caller(make_user(role, run.project))


def body(response: Any) -> Any:
    content = b"".join(response.streaming_content) if response.streaming else response.content
    return json.loads(content)


@pytest.mark.parametrize(
    ("role", "status"),
    [(Role.VIEWER, 200), (Role.EVALUATOR, 200), (Role.LEAD, 200), (Role.ADMIN, 200), (Role.REVIEWER, 403), (None, 404)],
)
def test_viewers_read_figures_and_others_may_not(run: Run, role: Role | None, status: int) -> None:
    client = caller(run, role)
    for path in PATHS:
        assert client.get(f"runs/{run.pk}/{path}").status_code == status
    assert client.get(f"runs/compare/?runs={run.pk}").status_code == status


@pytest.mark.parametrize(
    ("role", "status"),
    [(Role.EVALUATOR, 201), (Role.LEAD, 201), (Role.VIEWER, 403), (Role.REVIEWER, 403), (None, 404)],
)
def test_ratings_are_imported_by_evaluators_and_leads_only(run: Run, role: Role | None, status: int) -> None:
    response = caller(run, role).client.post(
        f"/api/v1/ratings/?run={run.pk}", json.dumps(ROW) + "\n", content_type="application/x-ndjson"
    )
    assert response.status_code == status, response.content
    assert Rating.objects.exists() == (status == 201)


def test_anonymous_request_gets_no_figures(run: Run) -> None:
    stranger = caller(run, None)
    stranger.client.force_authenticate(None)
    for path in PATHS:
        assert stranger.get(f"runs/{run.pk}/{path}").status_code == 401


@pytest.mark.parametrize(
    ("query", "content_type"),
    [("", "application/json"), ("?format=csv", "text/csv; charset=utf-8"), ("?format=jsonl", "application/x-ndjson")],
)
def test_report_is_returned_in_the_requested_format(run: Run, query: str, content_type: str) -> None:
    response = caller(run, Role.VIEWER).get(f"runs/{run.pk}/report/{query}")
    assert response.status_code == 200
    assert response["Content-Type"] == content_type
    assert f"run-{run.pk}." in response["Content-Disposition"]


def test_report_and_agreement_equal_the_command_output(run: Run) -> None:
    for answer in answer_rows(run):
        imported_rating(answer, metric("correctness"), "e1", 4)
    viewer = caller(run, Role.VIEWER)
    report = body(viewer.get(f"runs/{run.pk}/report/"))
    assert report["evaluation"]["llm_judge"]["avg_correctness"] == 4.0
    agreement = body(viewer.get(f"runs/{run.pk}/agreement/?resamples=50&seed=1&by=category"))
    judge_figures = agreement["judges"]["judge@1"]["correctness"]
    assert (judge_figures["n"], judge_figures["exact"]) == (3, pytest.approx(1 / 3))
    assert set(judge_figures["by_category"]) == {"a", "b"}
    assert "exact" in judge_figures["intervals"]
    assert agreement["experts"]["correctness"]["ratings"] == 3


@pytest.mark.parametrize(
    "path",
    [
        "report/?format=pages",
        "report/?colour=red",
        "agreement/?resamples=-1",
        "agreement/?resamples=99999",
        "agreement/?by=weather",
        "agreement/?seed=x",
    ],
)
def test_unknown_parameters_are_refused(run: Run, path: str) -> None:
    assert caller(run, Role.VIEWER).get(f"runs/{run.pk}/{path}").status_code == 400


@pytest.mark.parametrize("runs", ["", "a", "1,,2", "1;2", ",".join(map(str, range(1, 60)))])
def test_a_comparison_needs_a_list_of_runs(run: Run, runs: str) -> None:
    assert caller(run, Role.VIEWER).get(f"runs/compare/?runs={runs}").status_code == 400


def test_comparison_with_a_run_of_another_project_is_not_found(run: Run) -> None:
    other_run = run_over(answers_to(["a"]))
    viewer = caller(run, Role.VIEWER)
    assert viewer.get(f"runs/compare/?runs={run.pk},{other_run.pk}").status_code == 404
    comparison = body(viewer.get(f"runs/compare/?runs={run.pk}"))
    assert [row["run"]["id"] for row in comparison["runs"]] == [run.pk]


def test_report_export_records_exposure_once(run: Run) -> None:
    lead, idle = caller(run, Role.LEAD), caller(run, Role.VIEWER)
    queue = queue_for(run, [metric("correctness")], [lead.user])
    draw_into(queue, run, [("all", 1.0, True)] * 3)
    for client in (lead, idle):
        assert client.get(f"runs/{run.pk}/agreement/?resamples=0").status_code == 200
    assert not Exposure.objects.exists()  # figures over all answers tell of none
    for client in (lead, idle, lead):
        body(client.get(f"runs/{run.pk}/report/"))
    exposures = Exposure.objects.order_by("pk").values_list("user", "scope", "object_id")
    assert list(exposures) == [(reader.user.pk, "run", run.pk) for reader in (lead, idle)]


def test_uploaded_file_imports_and_reports_its_rows(run: Run) -> None:
    header, valid_row, invalid_row = (
        b"question_id,metric,value,rater,author\n",
        b"q1,tone,1,human,e1\n",
        b"q9,tone,1,human,e1\n",
    )
    lead = caller(run, Role.LEAD)
    fields = {"run": run.pk, "define": "tone=bool; other=1..5", "sampled": "all"}

    def upload(content: bytes) -> Any:
        file = SimpleUploadedFile("tone.csv", content)
        return lead.client.post("/api/v1/ratings/", fields | {"file": file}, format="multipart")

    rejection = upload(header + valid_row + invalid_row)
    assert rejection.status_code == 400
    (problem,) = rejection.json()["problems"]
    assert (problem["code"], problem["line"], problem["file"]) == ("question_unanswered", 3, "tone.csv")

    header, valid_row, invalid_row = (
        b"question_id,metric,value,rater,author\n",
        b"q1,tone,1,human,e1\n",
        b"q9,tone,1,human,e1\n",
    )
    lead = caller(run, Role.LEAD)
    fields = {"run": run.pk, "define": "tone=bool; other=1..5", "sampled": "all"}

    def upload(content: bytes) -> Any:
        file = SimpleUploadedFile("tone.csv", content)
        return lead.client.post("/api/v1/ratings/", fields | {"file": file}, format="multipart")

    rejection = upload(header + valid_row + invalid_row)
    assert rejection.status_code == 400
    (problem,) = rejection.json()["problems"]
    assert (problem["code"], problem["line"], problem["file"]) == ("question_unanswered", 3, "tone.csv")

    response = upload(header + valid_row)
    assert (response.status_code, response.json()["human"], response.json()["defined"]) == (201, 1, ["other", "tone"])
    repeated = upload(header + valid_row)
    assert (repeated.status_code, repeated.json()["unchanged"]) == (200, 1)


def test_agreement_is_computed_once_for_the_same_inputs(
    run: Run, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    imported_rating(answer_rows(run)[0], metric("correctness"), "e1", 4)
    viewer = caller(run, Role.VIEWER)
    path = f"runs/{run.pk}/agreement/?resamples=20"
    first = viewer.get(path).json()
    with django_assert_max_num_queries(11):  # the run, the role, seven fingerprints
        assert viewer.get(path).json() == first
    imported_rating(answer_rows(run)[1], metric("correctness"), "e1", 4)
    assert viewer.get(path).json()["judges"]["judge@1"]["correctness"]["n"] == 2
