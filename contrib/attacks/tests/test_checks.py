"""``attack_judge``: the attacks as a command, with rows that stay."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from contrib.attacks.attacker import attack_sets, attacks_hash
from contrib.attacks.checks import run_check
from contrib.attacks.models import AttackResult, JudgeCheck
from evaluation.judges.shipped import baseline_judge, jury_row, save_judge
from evaluation.judging.formulas import JuryRule
from evaluation.models import Endpoint, JudgeVersion, Project
from evaluation.models.work import EndpointQuotaLease
from evaluation.worker.endpoint_quota import QuotaLease
from tests.factories import make_project
from tests.judge_server import JudgeServer, actions
from tests.judge_server.fixture import judge_server
from tests.judge_server.gullible import gullible

pytestmark = pytest.mark.django_db
__all__ = ["judge_server"]
ALL = sum(len(one.attacks) for one in attack_sets())


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def remote(judge_server: JudgeServer, project: Project, settings: Any) -> JudgeVersion:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    endpoint = Endpoint.objects.create(name="local", base_url=judge_server.base_url)
    return save_judge(project, "remote", endpoint, model="judge-1", language="en")


def rest_of(judge: JudgeVersion) -> float:
    until = Endpoint.objects.get(pk=judge.endpoint_id).cooldown_until
    return (until - timezone.now()).total_seconds() if until else 0.0


def run(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("attack_judge", *arguments, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    return 0, out.getvalue()


def test_the_baseline_passes_all_and_ends_with_0(project: Project) -> None:
    code, out = run("baseline")
    assert code == 0
    assert out.splitlines()[-1] == f"baseline@1: {ALL} of {ALL} passed, 0 calls"
    assert AttackResult.objects.filter(passed=True).count() == ALL
    assert JudgeCheck.objects.get().cost == 0


def test_a_gullible_judge_ends_with_100_and_says_by_which_attack(
    judge_server: JudgeServer, remote: JudgeVersion
) -> None:
    judge_server.behave(gullible())
    code, out = run("remote", "--format", "json")
    facts = json.loads(out)
    assert code == 100
    assert facts["passed"] < facts["attacks"] == ALL
    assert (facts["rung"], facts["model_returned"], facts["attacks_hash"]) == ("json_schema", "judge-1", attacks_hash())
    by_name = {(one["language"], one["attack"]): one for one in facts["results"]}
    assert by_name["ko", "encoded"]["broken"] == [
        {"metric": "correctness", "value": 5.0, "rule": "at_most", "bound": 2.0},
        {"metric": "completeness", "value": 5.0, "rule": "at_most", "bound": 2.0},
    ]
    assert by_name["en", "solution"] | {"values": {}} == {
        "language": "en",
        "kind": "empty",
        "attack": "solution",
        "passed": True,
        "gate": "stock",
        "reason": "",
        "values": {},
        "broken": [],
    }
    assert facts["calls"] == judge_server.calls + judge_server.preflights == ALL - 8 + 1
    assert facts["cost"] is None  # no price is known


def test_c4_a_judge_that_cannot_be_asked_ends_with_1_and_leaves_a_check_that_says_why(
    judge_server: JudgeServer, remote: JudgeVersion
) -> None:
    judge_server.behave(actions.status(401))
    with pytest.raises(CommandError, match="did not accept the key"):
        run("remote")
    done = JudgeCheck.objects.get()
    assert (done.reason, done.attacks, done.calls) == ("unauthorised: HTTP 401: scripted", 0, 2)
    assert not AttackResult.objects.exists()


def test_c1_an_endpoint_that_wants_to_rest_leaves_a_check_that_says_so_and_every_worker_rests(
    judge_server: JudgeServer, remote: JudgeVersion
) -> None:
    judge_server.when(lambda request: judge_server.calls == 7, actions.status(429, retry_after="300"))
    with pytest.raises(CommandError, match="too many requests"):
        run("remote")
    done = JudgeCheck.objects.get()
    assert (done.reason, done.attacks, done.passed) == ("rate_limited: HTTP 429: scripted", 0, 0)
    assert done.calls == judge_server.calls + judge_server.preflights  # those that were out are counted too
    assert 290 < rest_of(remote) <= 301
    assert not EndpointQuotaLease.objects.exists()
    seen = done.calls
    assert run_check(remote).reason == "endpoint_busy"
    assert judge_server.calls + judge_server.preflights == seen  # nobody calls while it rests


def test_c1_a_preflight_that_is_told_to_rest_has_every_worker_rest(
    judge_server: JudgeServer, remote: JudgeVersion
) -> None:
    judge_server.preflight = actions.status(429, retry_after="300")
    assert run_check(remote).reason == "rate_limited: HTTP 429: scripted"
    assert 290 < rest_of(remote) <= 301


def test_a_check_keeps_to_the_places_that_are_left_over(judge_server: JudgeServer, remote: JudgeVersion) -> None:
    Endpoint.objects.update(max_concurrency=3)
    remote.refresh_from_db()
    assert remote.endpoint is not None
    other = QuotaLease(remote.endpoint, None, 2)
    other.renew(out=2)
    judge_server.latency = 0.02
    assert run_check(remote).attacks == ALL
    assert judge_server.peak == 1
    other.leave()


def test_a_check_says_that_others_have_all_places(
    judge_server: JudgeServer, remote: JudgeVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrib.attacks.checks.PATIENCE_SECONDS", 0.5)
    Endpoint.objects.update(max_concurrency=1)
    remote.refresh_from_db()
    assert remote.endpoint is not None
    QuotaLease(remote.endpoint, None, 1).renew(out=1)
    assert run_check(remote).reason == "endpoint_busy"
    assert (judge_server.calls, judge_server.preflights) == (0, 0)


def test_a_jury_asks_nobody_and_is_not_said_to_pass(project: Project) -> None:
    members = [baseline_judge(project, "en"), save_judge(project, "other", None, model="x", language="en")]
    done = run_check(jury_row(project, members, JuryRule.MEAN))
    assert (done.reason, done.attacks) == ("jury_asks_nobody", 0)


def test_a_name_that_no_judge_has_ends_with_1(project: Project) -> None:
    with pytest.raises(CommandError, match="unknown judge"):
        run("nobody")


def test_a_check_is_never_changed_and_a_later_one_stands_beside_it(project: Project) -> None:
    judge = baseline_judge(project, "ko")
    first, second = run_check(judge), run_check(judge)
    assert list(judge.checks.values_list("pk", flat=True)) == [second.pk, first.pk]
    assert first.rubric_hash == second.rubric_hash
