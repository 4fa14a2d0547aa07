"""Judge page: the result of every attack."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from contrib.attacks.checks import run_check
from contrib.attacks.models import AttackResult, JudgeCheck
from evaluation.core.roles import Role
from evaluation.judges.shipped import baseline_judge, save_judge
from evaluation.models import Endpoint, JudgeVersion, Preflight
from tests.factories import make_answer_set, make_project, make_question_set, make_scored_run, make_user
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server
from tests.judge_server.gullible import gullible
from tests.pages.markup import compact

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]


def page_of(judge: JudgeVersion) -> str:
    client = Client()
    client.force_login(make_user(Role.EVALUATOR, judge.project, language="en"))
    return client.get(reverse("judge", args=[judge.pk]), headers={"accept-language": "en"}).content.decode()


@pytest.fixture
def remote(judge_server: JudgeServer, settings: Any) -> JudgeVersion:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    endpoint = Endpoint.objects.create(name="local", base_url=judge_server.base_url)
    return save_judge(make_project(), "remote", endpoint, model="judge-1", language="en")


def test_unchecked_judge_shows_the_command() -> None:
    assert "manage.py attack_judge baseline" in compact(page_of(baseline_judge(make_project(), "en")))


def test_passing_judge_shows_every_attack() -> None:
    judge = baseline_judge(make_project(), "en")
    check = run_check(judge)
    page = page_of(judge)
    assert "passes every attack" in page
    assert page.count("<code>en/") == page.count("<code>ko/") == check.attacks / 2
    assert "decided by rule, not sent" in page


def test_gullible_judge_shows_the_broken_bounds(judge_server: JudgeServer, remote: JudgeVersion) -> None:
    judge_server.behave(gullible())
    check = run_check(remote)
    page = page_of(remote)
    assert "fails some attacks" in page
    assert f"{check.passed} of {check.attacks} passed" in page
    assert "correctness at most 2, completeness at most 2" in page


def test_failed_check_shows_its_reason(judge_server: JudgeServer, remote: JudgeVersion) -> None:
    judge_server.behave(actions.status(401))
    run_check(remote)
    assert "The endpoint did not accept the key." in page_of(remote)


def test_check_of_another_model_is_marked(judge_server: JudgeServer, remote: JudgeVersion) -> None:
    judge_server.behave(gullible())
    run_check(remote)
    assert "now answers under this name" not in page_of(remote)
    run = make_scored_run(make_answer_set(make_question_set(remote.project)), judge=remote)
    pinned = {"judge_version": remote, "outcome": "ok", "response_format": "tool", "judge_hash": "0" * 64}
    Preflight.objects.create(run=run, model_returned="judge-2", **pinned)
    assert "The check tested judge-1, but judge-2 now answers under this name. Check the judge again." in page_of(
        remote
    )


def test_changed_attacks_are_marked() -> None:
    judge = baseline_judge(make_project(), "en")
    old_check = JudgeCheck.objects.create(
        judge_version=judge, rubric_hash="0" * 64, attacks_hash="0" * 64, attacks=1, passed=1
    )
    AttackResult.objects.create(check_of=old_check, attack="gone", kind="canary", language="en", passed=True)
    assert "The attacks have changed since" in page_of(judge)
