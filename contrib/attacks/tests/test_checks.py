"""``attack_judge``: attacks as a command, with stored results."""

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
ALL = sum(len(attack_set.attacks) for attack_set in attack_sets())


@pytest.fixture
def project() -> Project:
    return make_project()


@pytest.fixture
def remote(judge_server: JudgeServer, project: Project, settings: Any) -> JudgeVersion:
    settings.CONCORD_JUDGE_ORIGINS = [judge_server.origin]
    endpoint = Endpoint.objects.create(name="local", base_url=judge_server.base_url)
    return save_judge(project, "remote", endpoint, model="judge-1", language="en")


def cooldown_seconds(judge: JudgeVersion) -> float:
    until = Endpoint.objects.get(pk=judge.endpoint_id).cooldown_until
    return (until - timezone.now()).total_seconds() if until else 0.0


def run(*arguments: str) -> tuple[int, str]:
    output = StringIO()
    try:
        call_command("attack_judge", *arguments, stdout=output)
    except SystemExit as end:
        return int(end.code or 0), output.getvalue()
    return 0, output.getvalue()


def test_baseline_passes_all_and_exits_with_0(project: Project) -> None:
    code, output = run("baseline")
    assert code == 0
    assert output.splitlines()[-1] == f"baseline@1: {ALL} of {ALL} passed, 0 calls"
    assert AttackResult.objects.filter(passed=True).count() == ALL
    assert JudgeCheck.objects.get().cost == 0


def test_gullible_judge_exits_with_100_and_names_the_attacks(judge_server: JudgeServer, remote: JudgeVersion) -> None:
    judge_server.behave(gullible())
    code, output = run("remote", "--format", "json")
    facts = json.loads(output)
    assert code == 100
    assert facts["passed"] < facts["attacks"] == ALL
    assert (facts["response_format"], facts["model_returned"], facts["attacks_hash"]) == (
        "json_schema",
        "judge-1",
        attacks_hash(),
    )
    by_name = {(row["language"], row["attack"]): row for row in facts["results"]}
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


def test_unreachable_judge_exits_with_1_and_stores_the_reason(judge_server: JudgeServer, remote: JudgeVersion) -> None:
    judge_server.behave(actions.status(401))
    with pytest.raises(CommandError, match="did not accept the key"):
        run("remote")
    check = JudgeCheck.objects.get()
    assert (check.reason, check.attacks, check.calls) == ("unauthorised: HTTP 401: scripted", 0, 2)
    assert not AttackResult.objects.exists()


def test_rate_limited_endpoint_ends_the_check_and_pauses_every_worker(
    judge_server: JudgeServer, remote: JudgeVersion
) -> None:
    judge_server.when(lambda request: judge_server.calls == 7, actions.status(429, retry_after="300"))
    with pytest.raises(CommandError, match="too many requests"):
        run("remote")
    check = JudgeCheck.objects.get()
    assert (check.reason, check.attacks, check.passed) == ("rate_limited: HTTP 429: scripted", 0, 0)
    assert check.calls == judge_server.calls + judge_server.preflights  # those that were out are counted too
    assert 290 < cooldown_seconds(remote) <= 301
    assert not EndpointQuotaLease.objects.exists()
    calls_before = check.calls
    assert run_check(remote).reason == "endpoint_busy"
    assert judge_server.calls + judge_server.preflights == calls_before  # nobody calls while it rests


def test_rate_limited_preflight_pauses_every_worker(judge_server: JudgeServer, remote: JudgeVersion) -> None:
    judge_server.preflight = actions.status(429, retry_after="300")
    assert run_check(remote).reason == "rate_limited: HTTP 429: scripted"
    assert 290 < cooldown_seconds(remote) <= 301


def test_check_uses_the_remaining_endpoint_quota(judge_server: JudgeServer, remote: JudgeVersion) -> None:
    Endpoint.objects.update(max_concurrency=3)
    remote.refresh_from_db()
    assert remote.endpoint is not None
    other_lease = QuotaLease(remote.endpoint, None, 2)
    other_lease.renew(out=2)
    judge_server.latency = 0.02
    assert run_check(remote).attacks == ALL
    assert judge_server.peak == 1
    other_lease.leave()


def test_check_reports_that_others_hold_the_quota(
    judge_server: JudgeServer, remote: JudgeVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrib.attacks.checks.MAX_SLOT_WAIT_SECONDS", 0.5)
    Endpoint.objects.update(max_concurrency=1)
    remote.refresh_from_db()
    assert remote.endpoint is not None
    QuotaLease(remote.endpoint, None, 1).renew(out=1)
    assert run_check(remote).reason == "endpoint_busy"
    assert (judge_server.calls, judge_server.preflights) == (0, 0)


def test_jury_has_no_calls_and_is_not_marked_as_passing(project: Project) -> None:
    members = [baseline_judge(project, "en"), save_judge(project, "other", None, model="x", language="en")]
    check = run_check(jury_row(project, members, JuryRule.MEAN))
    assert (check.reason, check.attacks) == ("jury_asks_nobody", 0)


def test_unknown_judge_exits_with_1(project: Project) -> None:
    with pytest.raises(CommandError, match="unknown judge"):
        run("nobody")


def test_checks_are_never_changed_and_later_ones_are_added(project: Project) -> None:
    judge = baseline_judge(project, "ko")
    first, second = run_check(judge), run_check(judge)
    assert list(judge.checks.values_list("pk", flat=True)) == [second.pk, first.pk]
    assert first.rubric_hash == second.rubric_hash
