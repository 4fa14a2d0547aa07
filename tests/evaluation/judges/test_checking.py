"""``check_judge``: the attacks as a command, with rows that stay."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from evaluation.accounts.models import Project
from evaluation.judges.checking import check
from evaluation.judges.models import AttackResult, Endpoint, JudgeCheck, JudgeVersion
from evaluation.judging.attacks.spec import attack_sets, attacks_hash
from evaluation.shipping import baseline_judge, save_judge
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


def run(*arguments: str) -> tuple[int, str]:
    out = StringIO()
    try:
        call_command("check_judge", *arguments, stdout=out)
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
    assert (done.reason, done.attacks, done.calls) == ("unauthorised", 0, 1)
    assert not AttackResult.objects.exists()


def test_a_name_that_no_judge_has_ends_with_1(project: Project) -> None:
    with pytest.raises(CommandError, match="unknown judge"):
        run("nobody")


def test_a_check_is_never_changed_and_a_later_one_stands_beside_it(project: Project) -> None:
    judge = baseline_judge(project, "ko")
    first, second = check(judge), check(judge)
    assert list(judge.checks.values_list("pk", flat=True)) == [second.pk, first.pk]
    assert first.rubric_hash == second.rubric_hash
