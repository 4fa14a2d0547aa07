"""Anchor checks: schedule, detected judge drift and its effect on approvals."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.criteria.rubrics import activate
from evaluation.judges.shipped import profile_row
from evaluation.judging.calls import JudgeReply
from evaluation.models import Job, RubricVersion
from evaluation.network.outcomes import Outcome
from evaluation.runs.creation import prepare_run
from evaluation.worker import jobs
from review.calibration import anchors
from review.calibration.anchors import (
    PASSED_RESULTS,
    active_passed_results,
    begin_check,
    begin_due_checks,
    check_anchors,
    run_check,
    store_reference,
)
from review.calibration.approvals import run_approvals
from review.models import AnchorCheck, AnchorVerdict, GoldItem, HoldoutTestResult
from review.statistics.acceptance import verdict_shift
from tests.evaluation.rest.clients import Caller
from tests.factories import make_user
from tests.jobs import record_wakeups, work_on_job
from tests.review.calibration.labelled import ScriptedJudge
from tests.review.calibration.place import CalibrationSetup, scripted_judge

pytestmark = pytest.mark.django_db


class DriftingJudge(ScriptedJudge):
    """A scripted judge that can start to give lower scores."""

    def __init__(self, reduction: int = 0) -> None:
        super().__init__()
        self.reduction = reduction

    async def call(self, request: Any) -> JudgeReply:
        reply = await super().call(request)
        if not self.reduction:
            return reply
        values = json.loads(reply.raw)
        for value in values.values():
            value["score"] = max(1, value["score"] - self.reduction)
        return JudgeReply(Outcome.OK, raw=json.dumps(values))


@pytest.fixture(scope="module")
def prepared_place(module_db: None) -> CalibrationSetup:
    """An accepted, active version with a judge that can drift."""
    place = CalibrationSetup()
    place.script = DriftingJudge()
    with scripted_judge(place):
        place.test_version(place.create_draft("SKILLED"))
    place.script.calls.clear()
    return place


@pytest.fixture
def passed_result(place: CalibrationSetup) -> HoldoutTestResult:
    return PASSED_RESULTS.get()


def enqueue_due_checks() -> None:
    begin_due_checks()
    jobs.enqueue_due()


def drifting_judge(place: CalibrationSetup) -> DriftingJudge:
    assert isinstance(place.script, DriftingJudge)
    return place.script


def activate_shipped_version(place: CalibrationSetup) -> None:
    first = RubricVersion.objects.get(family="answer_quality", language="en", version=1)
    activate(first, place.judge, by=None, reason="for the test")


def test_reference_holds_both_versions_verdicts_of_the_holdout_test(
    place: CalibrationSetup, passed_result: HoldoutTestResult
) -> None:
    check = passed_result.checks.get()
    holdout_answers = set(GoldItem.objects.filter(split="hold_out").values_list("answer", flat=True))
    judged_answers = set(check.verdicts.values_list("answer", flat=True))
    assert judged_answers < holdout_answers
    assert len(judged_answers) == 100  # of 120
    assert (check.number, check.step, check.model, check.shifts.count()) == (0, 0, "model-1", 0)
    versions = check.verdicts.values_list("rubric_version__version", flat=True).distinct()
    assert set(versions) == {passed_result.test.candidate.version, 1}
    assert set(check.verdicts.values_list("metric__name", flat=True)) == {"correctness"}  # what is labelled
    assert place.script.calls == []
    assert store_reference(passed_result) == check


def test_checks_judge_the_same_anchors_each_time(place: CalibrationSetup, passed_result: HoldoutTestResult) -> None:
    checks = [passed_result.checks.get(), run_check(passed_result, by=None), run_check(passed_result, by=None)]
    chosen = [set(check.verdicts.values_list("answer", flat=True)) for check in checks]
    assert chosen[0] == chosen[1] == chosen[2]
    assert len(place.script.calls) == 100 * 2


def test_stable_judge_has_not_moved(place: CalibrationSetup, passed_result: HoldoutTestResult) -> None:
    check = run_check(passed_result, by=None)
    shift = check.shifts.get()
    assert (check.number, check.step, shift.answers, shift.change, shift.moved) == (1, 1, 100, 0.0, False)


def test_judge_drift_makes_approvals_of_later_runs_stale(
    place: CalibrationSetup, passed_result: HoldoutTestResult
) -> None:
    run_before = prepare_run(place.run.answer_set, profile_row(place.run.project, "graphrag"), judge=place.judge)
    drifting_judge(place).reduction = 1
    shift = run_check(passed_result, by=None).shifts.get()
    assert shift.moved
    assert -1.0 < shift.change < -0.7  # who gave 1 gives 1
    assert shift.low is not None
    assert shift.high is not None
    assert shift.low < shift.change < shift.high < 0
    run_after = prepare_run(place.run.answer_set, profile_row(place.run.project, "graphrag"), judge=place.judge)
    approvals = {
        run.pk: next(approval for approval in run_approvals(run) if approval.metric == "correctness")
        for run in (run_before, run_after)
    }
    assert approvals[run_before.pk].lapses == ()
    (lapse,) = approvals[run_after.pk].lapses
    assert lapse.code == "approval_drift"
    assert lapse.params["change"] == f"{shift.change:+.2f}"


def test_shift_is_tested_two_sided_at_the_level_of_its_step() -> None:
    # differences 1, 1, 0, 0: mean 0.5, variance (4/3) * sum((0.25 * 0.5)^2 * 4) = 1/12, t = 0.5 / 0.288675 = 1.7321,
    # three degrees of freedom: two-sided p = 0.1817; the 95% interval reaches 3.1824 * 0.288675 = 0.9187 far
    shift = verdict_shift([1, 1, 1, 1], [2, 2, 1, 1], "abcd", 1, 1)
    assert (shift.change, shift.n, shift.groups, shift.moved) == (0.5, 4, 4, False)
    assert shift.low == pytest.approx(0.5 - 0.9187, abs=1e-4)
    assert shift.high == pytest.approx(0.5 + 0.9187, abs=1e-4)
    numbers = np.linspace(-1.1, 2.0, 80)  # mean 0.45, t about 4.5
    groups = list(range(80))
    p_moves = [verdict_shift([0.0] * 80, list(numbers), groups, step, 1).moved for step in (1, 2, 3, 5, 10, 300)]
    assert p_moves == sorted(p_moves, reverse=True)
    assert p_moves[0] is True
    assert p_moves[-1] is False
    assert verdict_shift([0.0] * 80, list(-numbers), groups, 1, 1).moved
    assert not verdict_shift([0.0] * 80, list(numbers), groups, 1, 40_000).moved  # shared by many metrics
    uniform_shift = verdict_shift([2.0] * 30, [1.0] * 30, range(30), 1, 1)
    assert (uniform_shift.low, uniform_shift.high, uniform_shift.moved) == (
        None,
        None,
        True,
    )  # all moved alike: nothing varies


@pytest.mark.slow
def test_steps_count_a_years_checks_of_all_proofs_of_the_judge(
    place: CalibrationSetup, passed_result: HoldoutTestResult
) -> None:
    assert [run_check(passed_result, by=None).step for _ in range(3)] == [1, 2, 3]
    place.test_version(place.create_draft("SKILLED too SKILLED"), claim="not_worse")
    newest_passed_result = PASSED_RESULTS.order_by("-pk")[0]
    assert newest_passed_result.pk != passed_result.pk
    assert [run_check(newest_passed_result, by=None).step for _ in range(2)] == [4, 5]
    AnchorCheck.objects.update(created_at=timezone.now() - timedelta(days=366))
    assert run_check(newest_passed_result, by=None).step == 1


def test_only_active_and_recent_proofs_are_watched(place: CalibrationSetup, passed_result: HoldoutTestResult) -> None:
    assert active_passed_results() == [passed_result]
    activate_shipped_version(place)
    assert active_passed_results() == []
    with pytest.raises(DomainError, match="anchors_not_in_force"):
        begin_check(passed_result, by=None)


def test_workers_begin_checks_when_due(
    place: CalibrationSetup, passed_result: HoldoutTestResult, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    enqueued = record_wakeups(monkeypatch)
    settings.CONCORD_DRIFT_CHECK_DAYS = 0
    enqueue_due_checks()
    assert (enqueued, AnchorCheck.objects.count()) == ([], 1)  # the reference
    settings.CONCORD_DRIFT_CHECK_DAYS = 30
    enqueue_due_checks()
    assert enqueued == []  # nothing is due
    ago = timezone.now() - timedelta(days=31)
    AnchorCheck.objects.update(created_at=ago)
    enqueue_due_checks()
    enqueue_due_checks()
    check = AnchorCheck.objects.get(number=1)
    assert enqueued == [check.pk, check.pk]
    work_on_job(check_anchors, check.pk)
    enqueued.clear()
    enqueue_due_checks()
    assert enqueued == []
    AnchorCheck.objects.update(created_at=ago)
    enqueue_due_checks()
    assert AnchorCheck.objects.count() == 3
    settings.CONCORD_APPROVAL_DAYS = -1  # an approval that holds for nobody is not monitored
    AnchorCheck.objects.update(created_at=ago, ended_at=ago)
    enqueue_due_checks()
    assert AnchorCheck.objects.count() == 3


def test_interrupted_check_resumes_without_repeating_calls(
    place: CalibrationSetup, passed_result: HoldoutTestResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = drifting_judge(place)
    original_call = judge.call

    async def call(request: Any) -> JudgeReply:
        return JudgeReply(Outcome.BLOCKED) if len(judge.calls) >= 50 else await original_call(request)

    monkeypatch.setattr(judge, "call", call)
    check = begin_check(passed_result, by=None)
    work_on_job(check_anchors, check.pk)
    check.refresh_from_db()
    assert (Job.objects.get(kind="anchor_check").problem, check.ended_at) == (str(Outcome.BLOCKED), None)
    stored_count = AnchorVerdict.objects.filter(check_of=check).count()
    monkeypatch.setattr(judge, "call", original_call)
    judge.calls.clear()
    assert run_check(passed_result, by=None).ended_at is not None
    assert (len(judge.calls), AnchorCheck.objects.count()) == (100 - stored_count, 2)


def test_too_few_verdicts_give_no_shift(
    place: CalibrationSetup, passed_result: HoldoutTestResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_check(passed_result, by=None)
    monkeypatch.setattr(anchors, "MIN_ANCHORS", 101)
    assert run_check(passed_result, by=None).shifts.count() == 0


def test_too_few_anchors_are_refused(
    place: CalibrationSetup, passed_result: HoldoutTestResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchors, "MIN_ANCHORS", 101)
    with pytest.raises(DomainError, match="anchors_too_few"):
        begin_check(passed_result, by=None)
    AnchorCheck.objects.update(created_at=timezone.now() - timedelta(days=31))
    enqueue_due_checks()
    assert AnchorCheck.objects.count() == 1


def test_command_reports_drift(place: CalibrationSetup, passed_result: HoldoutTestResult) -> None:
    def run_command(*options: str) -> str:
        out = StringIO()
        call_command("gold_set", "check", "gold", *options, stdout=out)
        return out.getvalue()

    assert "no" in run_command()
    drifting_judge(place).reduction = 1
    checks = json.loads(run_command("--format", "json"))
    assert (checks[0]["number"], checks[0]["shifts"][0]["moved"]) == (2, True)
    assert "yes" in run_command()
    activate_shipped_version(place)
    with pytest.raises(CommandError, match="is active"):
        run_command()


def test_page_rest_and_card_show_checks(
    place: CalibrationSetup, passed_result: HoldoutTestResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "enqueue_task", lambda _, pk, **_more: jobs.work_on(pk))
    lead = Client()
    lead.force_login(make_user(Role.LEAD, place.run.project))
    url = reverse("calibration", args=[place.gold.pk])
    params = {"judge": place.judge.pk, "family": "answer_quality", "rubric": passed_result.test.candidate_id}
    assert "Not known yet" in lead.get(url, params).content.decode()
    check_url = reverse("calibration-check", args=[place.gold.pk])
    assert "reference" in lead.get(url, params).content.decode()
    assert lead.post(check_url, params).status_code == 302
    assert "No significant change" in lead.get(url, params).content.decode()
    drifting_judge(place).reduction = 1
    caller = Caller(Role.LEAD, place.run.project)
    response = caller.post(f"calibrations/{passed_result.test_id}/check/", {})
    assert response.status_code == 202, response.content
    checks = caller.get(f"calibrations/{passed_result.test_id}/checks/").json()["results"]
    assert [row["number"] for row in checks] == [0, 1, 2]
    assert checks[2]["shifts"][0]["moved"] is True
    assert "Yes. It now scores the same answers differently" in lead.get(url, params).content.decode()
    out = StringIO()
    call_command("judge_card", "judge", stdout=out)
    assert "check 0 of " in out.getvalue()
    assert "(moved)" in out.getvalue()


def test_drift_before_the_first_check_is_detected(place: CalibrationSetup, passed_result: HoldoutTestResult) -> None:
    """The judge moves right after acceptance, before the first check."""
    drifting_judge(place).reduction = 1
    shift = run_check(passed_result, by=None).shifts.get()
    assert (shift.check_of.number, shift.moved) == (1, True)
