"""Permissions on each endpoint by role, for strangers and for anonymous callers; tokens reach only their project."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from evaluation.core.roles import Role
from evaluation.judges.shipped import baseline_judge, profile_row
from evaluation.models import Project, RubricVersion, Run
from tests.evaluation.datasets.sources import as_json, as_lines, question
from tests.evaluation.rest.clients import API, Caller, evaluator, token_for, viewer
from tests.factories import make_answer_set, make_project, make_scored_run, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    scored_run = make_scored_run(make_answer_set())
    baseline_judge(scored_run.project, "en")
    profile_row(scored_run.project, "graphrag")
    return scored_run


def rubric_id(run: Run) -> int:
    rubric_version = RubricVersion.objects.first()
    assert rubric_version is not None
    return rubric_version.pk


DETAILS: dict[str, Callable[[Run], int]] = {
    "question-sets": lambda run: run.answer_set.question_set_id,
    "systems": lambda run: run.answer_set.system_version.system_id,
    "answer-sets": lambda run: run.answer_set_id,
    "judges": lambda run: run.judges.get().judge_version_id,
    "rubrics": rubric_id,
    "profiles": lambda run: run.profile_version_id,
    "runs": lambda run: run.pk,
}
NESTED = {
    "question-sets/{}/questions": lambda run: run.answer_set.question_set_id,
    "runs/{}/answers": lambda run: run.pk,
}


@pytest.mark.parametrize("name", DETAILS)
def test_members_see_a_row_and_its_list_and_strangers_see_nothing(run: Run, name: str) -> None:
    path = f"{name}/{DETAILS[name](run)}/"
    for role in (Role.VIEWER, Role.EVALUATOR, Role.LEAD, Role.ADMIN):
        member = Caller(role, run.project)
        assert member.get(path).json()["id"] == DETAILS[name](run)
        assert DETAILS[name](run) in {row["id"] for row in member.get(f"{name}/").json()["results"]}
    stranger = Caller(None, run.project)
    assert stranger.get(path).status_code == 404
    assert stranger.get(f"{name}/").json()["results"] == []


@pytest.mark.parametrize("name", [*DETAILS, *NESTED])
def test_anonymous_request_gets_401(run: Run, name: str) -> None:
    address = f"{API}{name}/" if name in DETAILS else f"{API}{name.format(run.pk)}/"
    assert APIClient().get(address).status_code == 401


@pytest.mark.parametrize("name", DETAILS)
def test_reviewers_may_not_read_rows_that_would_unblind_them(run: Run, name: str) -> None:
    reviewer = Caller(Role.REVIEWER, run.project)
    assert reviewer.get(f"{name}/{DETAILS[name](run)}/").status_code in ({404} if name == "rubrics" else {403})
    assert reviewer.get(f"{name}/").json()["results"] == []


@pytest.mark.parametrize("path", NESTED)
def test_nested_lists_are_as_protected_as_their_parent(run: Run, path: str) -> None:
    address = path.format(NESTED[path](run)) + "/"
    codes = [Caller(role, run.project).get(address).status_code for role in (Role.VIEWER, Role.REVIEWER, None)]
    assert codes == [200, 403, 404]


@pytest.mark.parametrize("name", [*DETAILS, "runs/{}/answers"])
def test_unknown_and_oversized_ids_are_404(run: Run, name: str) -> None:
    member = viewer(run.project)
    for pk in (10**6, 2**63, 10**40):
        address = f"{name.format(pk)}/" if "{}" in name else f"{name}/{pk}/"
        assert member.get(address).status_code == 404


def write_statuses(caller: Caller, run: Run) -> list[int]:
    """Status codes of all requests that write."""
    question_set_id, answers = run.answer_set.question_set_id, as_lines([{"question_id": "q1", "answer": "x"}])
    return [
        caller.upload("question-sets/", as_json([question(1)]), project=run.project_id, name="new").status_code,
        caller.upload("answer-sets/", answers, "a.jsonl", question_set=question_set_id, system="s").status_code,
        caller.post("runs/", {"answer_set": run.answer_set_id, "judge": None}).status_code,
        *(caller.post(f"runs/{run.pk}/{verb}/").status_code for verb in ("pause", "resume", "cancel", "retry-failed")),
    ]


def test_only_evaluators_leads_and_admins_may_write(run: Run) -> None:
    """A complete run answers 409: the action is permitted but impossible."""
    for role in (Role.EVALUATOR, Role.LEAD, Role.ADMIN):
        question_set_status, answer_set_status, *run_statuses = write_statuses(Caller(role, run.project), run)
        assert {question_set_status, answer_set_status} <= {200, 201}
        assert run_statuses == [202, 409, 409, 409, 409]
    assert write_statuses(viewer(run.project), run) == [403] * 7
    assert write_statuses(Caller(Role.REVIEWER, run.project), run) == [403] * 7
    assert write_statuses(Caller(None, run.project), run) == [404] * 7


def test_a_read_token_reads_and_does_not_write(run: Run) -> None:
    reader = Caller(Role.ADMIN, run.project, scope="read")
    assert reader.get(f"runs/{run.pk}/").status_code == 200
    assert write_statuses(reader, run) == [403] * 7


def test_a_token_reaches_its_own_project_only(run: Run) -> None:
    other_project = make_project()
    user = make_user(Role.ADMIN, run.project)
    make_user(Role.ADMIN, other_project)
    caller = Caller(None, other_project, user=user)
    assert caller.get(f"runs/{run.pk}/").status_code == 404
    assert caller.get("runs/").json()["results"] == []
    assert write_statuses(caller, run) == [404] * 7


@pytest.mark.parametrize("token_state", ["expired", "revoked", "unknown", "inactive"])
def test_dead_tokens_are_401(run: Run, token_state: str) -> None:
    user = make_user(Role.ADMIN, run.project)
    now = timezone.now()
    fields = {"expired": {"expires_at": now - timedelta(seconds=1)}, "revoked": {"revoked_at": now}}.get(
        token_state, {}
    )
    text = token_for(user, run.project, **fields)
    if token_state == "inactive":
        user.is_active = False
        user.save()
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {'x' if token_state == 'unknown' else text}")
    assert client.get(f"{API}runs/").status_code == 401


def test_superuser_may_act_in_every_existing_project(run: Run) -> None:
    root = Caller(None, run.project, user=make_user(is_superuser=True))
    root.client.credentials()
    root.client.force_authenticate(root.user)
    assert root.get(f"runs/{run.pk}/").status_code == 200
    assert root.upload("question-sets/", as_json([question(1)]), project=10**6).status_code == 404


def test_runs_of_other_projects_are_not_listed() -> None:
    own_run, other_run = make_scored_run(make_answer_set()), make_scored_run(make_answer_set())
    listed = {row["id"] for row in evaluator(own_run.project).get("runs/").json()["results"]}
    assert listed == {own_run.pk}
    assert Project.objects.count() >= 2
    assert other_run.pk not in listed
