"""Who gets what from each endpoint: member, reviewer, viewer, stranger, nobody; tokens reach their project only."""

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
    made = make_scored_run(make_answer_set())
    baseline_judge(made.project, "en")
    profile_row(made.project, "graphrag")
    return made


def rubric(run: Run) -> int:
    found = RubricVersion.objects.first()
    assert found is not None
    return found.pk


DETAILS: dict[str, Callable[[Run], int]] = {
    "question-sets": lambda run: run.answer_set.question_set_id,
    "systems": lambda run: run.answer_set.system_version.system_id,
    "answer-sets": lambda run: run.answer_set_id,
    "judges": lambda run: run.judges.get().judge_version_id,
    "rubrics": rubric,
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
def test_nobody_gets_401(run: Run, name: str) -> None:
    address = f"{API}{name}/" if name in DETAILS else f"{API}{name.format(run.pk)}/"
    assert APIClient().get(address).status_code == 401


@pytest.mark.parametrize("name", DETAILS)
def test_reviewers_may_not_look_at_what_would_unblind_them(run: Run, name: str) -> None:
    reviewer = Caller(Role.REVIEWER, run.project)
    assert reviewer.get(f"{name}/{DETAILS[name](run)}/").status_code in ({404} if name == "rubrics" else {403})
    assert reviewer.get(f"{name}/").json()["results"] == []


@pytest.mark.parametrize("path", NESTED)
def test_parts_are_as_protected_as_the_whole(run: Run, path: str) -> None:
    address = path.format(NESTED[path](run)) + "/"
    codes = [Caller(role, run.project).get(address).status_code for role in (Role.VIEWER, Role.REVIEWER, None)]
    assert codes == [200, 403, 404]


@pytest.mark.parametrize("name", [*DETAILS, "runs/{}/answers"])
def test_ids_that_do_not_exist_or_that_no_database_knows_are_404(run: Run, name: str) -> None:
    member = viewer(run.project)
    for pk in (10**6, 2**63, 10**40):
        address = f"{name.format(pk)}/" if "{}" in name else f"{name}/{pk}/"
        assert member.get(address).status_code == 404


def imports(caller: Caller, run: Run) -> list[int]:
    """The answers to everything that writes."""
    asked, answers = run.answer_set.question_set_id, as_lines([{"question_id": "q1", "answer": "x"}])
    return [
        caller.upload("question-sets/", as_json([question(1)]), project=run.project_id, name="new").status_code,
        caller.upload("answer-sets/", answers, "a.jsonl", question_set=asked, system="s").status_code,
        caller.post("runs/", {"answer_set": run.answer_set_id, "judge": None}).status_code,
        *(caller.post(f"runs/{run.pk}/{verb}/").status_code for verb in ("pause", "resume", "cancel", "retry-failed")),
    ]


def test_evaluators_leads_and_admins_write_and_others_do_not(run: Run) -> None:
    """409 is a run that is complete: allowed to ask, impossible to do."""
    for role in (Role.EVALUATOR, Role.LEAD, Role.ADMIN):
        first, second, *others = imports(Caller(role, run.project), run)
        assert {first, second} <= {200, 201}
        assert others == [202, 409, 409, 409, 409]
    assert imports(viewer(run.project), run) == [403] * 7
    assert imports(Caller(Role.REVIEWER, run.project), run) == [403] * 7
    assert imports(Caller(None, run.project), run) == [404] * 7


def test_a_read_token_reads_and_does_not_write(run: Run) -> None:
    reader = Caller(Role.ADMIN, run.project, scope="read")
    assert reader.get(f"runs/{run.pk}/").status_code == 200
    assert imports(reader, run) == [403] * 7


def test_a_token_reaches_its_own_project_only(run: Run) -> None:
    elsewhere = make_project()
    user = make_user(Role.ADMIN, run.project)
    make_user(Role.ADMIN, elsewhere)
    caller = Caller(None, elsewhere, user=user)
    assert caller.get(f"runs/{run.pk}/").status_code == 404
    assert caller.get("runs/").json()["results"] == []
    assert imports(caller, run) == [404] * 7


@pytest.mark.parametrize("how", ["expired", "revoked", "unknown", "inactive"])
def test_dead_tokens_are_401(run: Run, how: str) -> None:
    user = make_user(Role.ADMIN, run.project)
    now = timezone.now()
    fields = {"expired": {"expires_at": now - timedelta(seconds=1)}, "revoked": {"revoked_at": now}}.get(how, {})
    text = token_for(user, run.project, **fields)
    if how == "inactive":
        user.is_active = False
        user.save()
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {'x' if how == 'unknown' else text}")
    assert client.get(f"{API}runs/").status_code == 401


def test_a_superuser_is_an_administrator_everywhere_but_finds_no_project_that_is_not_there(run: Run) -> None:
    root = Caller(None, run.project, user=make_user(is_superuser=True))
    root.client.credentials()
    root.client.force_authenticate(root.user)
    assert root.get(f"runs/{run.pk}/").status_code == 200
    assert root.upload("question-sets/", as_json([question(1)]), project=10**6).status_code == 404


def test_two_projects_are_two_worlds() -> None:
    ours, theirs = make_scored_run(make_answer_set()), make_scored_run(make_answer_set())
    seen = {row["id"] for row in evaluator(ours.project).get("runs/").json()["results"]}
    assert seen == {ours.pk}
    assert Project.objects.count() >= 2
    assert theirs.pk not in seen
