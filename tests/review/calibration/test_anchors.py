"""Anchors: who is judged again and when, what a move of the judge is taken for, and what becomes of licences."""

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
    PROOFS,
    active_proofs,
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
from tests.jobs import catch_rings, work
from tests.review.calibration.labelled import Scripted
from tests.review.calibration.place import Place, scripted

pytestmark = pytest.mark.django_db


class Moving(Scripted):
    """The judge of these tests, who can be made to give a level less from some day on."""

    def __init__(self, less: int = 0) -> None:
        super().__init__()
        self.less = less

    async def call(self, request: Any) -> JudgeReply:
        reply = await super().call(request)
        if not self.less:
            return reply
        said = json.loads(reply.raw)
        for one in said.values():
            one["score"] = max(1, one["score"] - self.less)
        return JudgeReply(Outcome.OK, raw=json.dumps(said))


@pytest.fixture(scope="module")
def prepared_place(module_db: None) -> Place:
    """A version that was accepted and is in force, with a judge that can move."""
    place = Place()
    place.script = Moving()
    with scripted(place):
        place.accept(place.drafted("SKILLED"))
    place.script.calls.clear()
    return place


@pytest.fixture
def proof(place: Place) -> HoldoutTestResult:
    return PROOFS.get()


def sweep() -> None:
    begin_due_checks()
    jobs.enqueue_due()


def moving(place: Place) -> Moving:
    assert isinstance(place.script, Moving)
    return place.script


def back(place: Place) -> None:
    """The shipped version is in force again."""
    first = RubricVersion.objects.get(family="answer_quality", language="en", version=1)
    activate(first, place.judge, by=None, reason="for the test")


def test_the_reference_is_what_both_versions_gave_in_the_hold_out_test(place: Place, proof: HoldoutTestResult) -> None:
    check = proof.checks.get()
    held = set(GoldItem.objects.filter(split="hold_out").values_list("answer", flat=True))
    judged = set(check.verdicts.values_list("answer", flat=True))
    assert judged < held
    assert len(judged) == 100  # of 120
    assert (check.number, check.step, check.model, check.shifts.count()) == (0, 0, "model-1", 0)
    versions = check.verdicts.values_list("rubric_version__version", flat=True).distinct()
    assert set(versions) == {proof.test.candidate.version, 1}
    assert set(check.verdicts.values_list("metric__name", flat=True)) == {"correctness"}  # what is labelled
    assert place.script.calls == []
    assert store_reference(proof) == check


def test_checks_judge_the_same_anchors_every_time(place: Place, proof: HoldoutTestResult) -> None:
    checks = [proof.checks.get(), run_check(proof, by=None), run_check(proof, by=None)]
    chosen = [set(one.verdicts.values_list("answer", flat=True)) for one in checks]
    assert chosen[0] == chosen[1] == chosen[2]
    assert len(place.script.calls) == 100 * 2


def test_a_judge_that_stays_has_not_moved(place: Place, proof: HoldoutTestResult) -> None:
    check = run_check(proof, by=None)
    shift = check.shifts.get()
    assert (check.number, check.step, shift.answers, shift.change, shift.moved) == (1, 1, 100, 0.0, False)


def test_one_that_moved_loses_the_licence_for_runs_from_then_on(place: Place, proof: HoldoutTestResult) -> None:
    before = prepare_run(place.run.answer_set, profile_row(place.run.project, "graphrag"), judge=place.judge)
    moving(place).less = 1
    shift = run_check(proof, by=None).shifts.get()
    assert shift.moved
    assert -1.0 < shift.change < -0.7  # who gave 1 gives 1
    assert shift.low is not None
    assert shift.high is not None
    assert shift.low < shift.change < shift.high < 0
    after = prepare_run(place.run.answer_set, profile_row(place.run.project, "graphrag"), judge=place.judge)
    said = {run.pk: next(one for one in run_approvals(run) if one.metric == "correctness") for run in (before, after)}
    assert said[before.pk].lapses == ()
    (lapse,) = said[after.pk].lapses
    assert lapse.code == "licence_drift"
    assert lapse.params["change"] == f"{shift.change:+.2f}"


def test_a_shift_is_tested_on_both_sides_at_the_level_of_its_step() -> None:
    # differences 1, 1, 0, 0: mean 0.5, variance (4/3) * sum((0.25 * 0.5)^2 * 4) = 1/12, t = 0.5 / 0.288675 = 1.7321,
    # three degrees of freedom: two-sided p = 0.1817; the 95% interval reaches 3.1824 * 0.288675 = 0.9187 far
    found = verdict_shift([1, 1, 1, 1], [2, 2, 1, 1], "abcd", 1, 1)
    assert (found.change, found.n, found.groups, found.moved) == (0.5, 4, 4, False)
    assert found.low == pytest.approx(0.5 - 0.9187, abs=1e-4)
    assert found.high == pytest.approx(0.5 + 0.9187, abs=1e-4)
    numbers = np.linspace(-1.1, 2.0, 80)  # mean 0.45, t about 4.5
    groups = list(range(80))
    p_moves = [verdict_shift([0.0] * 80, list(numbers), groups, step, 1).moved for step in (1, 2, 3, 5, 10, 300)]
    assert p_moves == sorted(p_moves, reverse=True)
    assert p_moves[0] is True
    assert p_moves[-1] is False
    assert verdict_shift([0.0] * 80, list(-numbers), groups, 1, 1).moved
    assert not verdict_shift([0.0] * 80, list(numbers), groups, 1, 40_000).moved  # shared by many metrics
    one = verdict_shift([2.0] * 30, [1.0] * 30, range(30), 1, 1)
    assert (one.low, one.high, one.moved) == (None, None, True)  # all moved alike: nothing varies


@pytest.mark.slow
def test_steps_count_the_checks_of_a_year_of_all_proofs_of_the_judge(place: Place, proof: HoldoutTestResult) -> None:
    assert [run_check(proof, by=None).step for _ in range(3)] == [1, 2, 3]
    place.accept(place.drafted("SKILLED too SKILLED"), claim="not_worse")
    newest = PROOFS.order_by("-pk")[0]
    assert newest.pk != proof.pk
    assert [run_check(newest, by=None).step for _ in range(2)] == [4, 5]
    AnchorCheck.objects.update(created_at=timezone.now() - timedelta(days=366))
    assert run_check(newest, by=None).step == 1


def test_only_what_is_in_force_and_not_too_old_is_watched(place: Place, proof: HoldoutTestResult) -> None:
    assert active_proofs() == [proof]
    back(place)
    assert active_proofs() == []
    with pytest.raises(DomainError, match="anchors_not_in_force"):
        begin_check(proof, by=None)


def test_checks_begin_when_they_are_due_and_by_workers(
    place: Place, proof: HoldoutTestResult, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    rung = catch_rings(monkeypatch)
    settings.CONCORD_DRIFT_CHECK_DAYS = 0
    sweep()
    assert (rung, AnchorCheck.objects.count()) == ([], 1)  # the reference
    settings.CONCORD_DRIFT_CHECK_DAYS = 30
    sweep()
    assert rung == []  # nothing is due
    ago = timezone.now() - timedelta(days=31)
    AnchorCheck.objects.update(created_at=ago)
    sweep()
    sweep()
    check = AnchorCheck.objects.get(number=1)
    assert rung == [check.pk, check.pk]
    work(check_anchors, check.pk)
    rung.clear()
    sweep()
    assert rung == []
    AnchorCheck.objects.update(created_at=ago)
    sweep()
    assert AnchorCheck.objects.count() == 3
    settings.CONCORD_APPROVAL_DAYS = -1  # a proof that holds for nobody is not watched
    AnchorCheck.objects.update(created_at=ago, ended_at=ago)
    sweep()
    assert AnchorCheck.objects.count() == 3


def test_an_interrupted_check_goes_on_and_asks_nothing_twice(
    place: Place, proof: HoldoutTestResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = moving(place)
    speak = judge.call

    async def call(request: Any) -> JudgeReply:
        return JudgeReply(Outcome.BLOCKED) if len(judge.calls) >= 50 else await speak(request)

    monkeypatch.setattr(judge, "call", call)
    check = begin_check(proof, by=None)
    work(check_anchors, check.pk)
    check.refresh_from_db()
    assert (Job.objects.get(kind="anchor_check").problem, check.ended_at) == (str(Outcome.BLOCKED), None)
    kept = AnchorVerdict.objects.filter(check_of=check).count()
    monkeypatch.setattr(judge, "call", speak)
    judge.calls.clear()
    assert run_check(proof, by=None).ended_at is not None
    assert (len(judge.calls), AnchorCheck.objects.count()) == (100 - kept, 2)


def test_too_few_verdicts_tell_nothing(place: Place, proof: HoldoutTestResult, monkeypatch: pytest.MonkeyPatch) -> None:
    begin_check(proof, by=None)
    monkeypatch.setattr(anchors, "MIN_ANCHORS", 101)
    assert run_check(proof, by=None).shifts.count() == 0


def test_too_few_anchors_are_refused(place: Place, proof: HoldoutTestResult, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "MIN_ANCHORS", 101)
    with pytest.raises(DomainError, match="anchors_too_few"):
        begin_check(proof, by=None)
    AnchorCheck.objects.update(created_at=timezone.now() - timedelta(days=31))
    sweep()
    assert AnchorCheck.objects.count() == 1


def test_the_command_tells_what_moved(place: Place, proof: HoldoutTestResult) -> None:
    def said(*more: str) -> str:
        out = StringIO()
        call_command("gold_set", "check", "gold", *more, stdout=out)
        return out.getvalue()

    assert "no" in said()
    moving(place).less = 1
    told = json.loads(said("--format", "json"))
    assert (told[0]["number"], told[0]["shifts"][0]["moved"]) == (2, True)
    assert "yes" in said()
    back(place)
    with pytest.raises(CommandError, match="in force"):
        said()


def test_page_rest_and_card_tell_of_checks(
    place: Place, proof: HoldoutTestResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "enqueue_task", lambda _, pk, **_more: jobs.work_on(pk))
    lead = Client()
    lead.force_login(make_user(Role.LEAD, place.run.project))
    url = reverse("calibration", args=[place.gold.pk])
    about = {"judge": place.judge.pk, "family": "answer_quality", "rubric": proof.test.candidate_id}
    assert "Not known yet" in lead.get(url, about).content.decode()
    again = reverse("calibration-check", args=[place.gold.pk])
    assert "the reference" in lead.get(url, about).content.decode()
    assert lead.post(again, about).status_code == 302
    assert "No: it gives the same answers" in lead.get(url, about).content.decode()
    moving(place).less = 1
    caller = Caller(Role.LEAD, place.run.project)
    told = caller.post(f"calibrations/{proof.test_id}/check/", {})
    assert told.status_code == 202, told.content
    checks = caller.get(f"calibrations/{proof.test_id}/checks/").json()["results"]
    assert [one["number"] for one in checks] == [0, 1, 2]
    assert checks[2]["shifts"][0]["moved"] is True
    assert "Yes: since it was proved" in lead.get(url, about).content.decode()
    out = StringIO()
    call_command("judge_card", "judge", stdout=out)
    assert "check 0 of " in out.getvalue()
    assert "(moved)" in out.getvalue()


def test_a_judge_that_moved_before_the_first_check_is_noticed(place: Place, proof: HoldoutTestResult) -> None:
    """The judge moves right after it was accepted, before anything was judged for a check."""
    moving(place).less = 1
    shift = run_check(proof, by=None).shifts.get()
    assert (shift.check_of.number, shift.moved) == (1, True)
