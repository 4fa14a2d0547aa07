"""Hold-out tests run by workers: REST requests, job leases, retries and the resulting approvals."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.judging.calls import JudgeReply
from evaluation.models import Job, VersionStatus
from evaluation.network.outcomes import Outcome
from evaluation.worker.jobs import Lease, enqueue_due
from review.calibration import holdout_tests
from review.calibration.holdout_tests import advance_holdout_test, request_holdout_test
from review.models import HoldoutTest, HoldoutTestResult, PromptApproval, SealedVerdict
from review.statistics.acceptance import Claim
from tests.evaluation.rest.clients import Caller
from tests.factories import make_project
from tests.jobs import record_wakeups, work_on_job
from tests.review.builders import metric, run_over, score
from tests.review.calibration.place import CalibrationSetup

pytestmark = pytest.mark.django_db


@pytest.fixture
def enqueued(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Ids of the hold-out tests for which a task was enqueued."""
    return record_wakeups(monkeypatch)


def request_body(place: CalibrationSetup, version: Any) -> dict[str, Any]:
    return {"gold_set": place.gold.pk, "judge": place.judge.pk, "rubric": version.pk}


def test_lead_requests_a_test_by_rest_and_only_the_outcome_is_shown(
    place: CalibrationSetup, enqueued: list[int]
) -> None:
    version = place.create_draft("SKILLED")
    callers = {role: Caller(role, place.run.project) for role in Role}
    for role in set(Role) - {Role.LEAD, Role.ADMIN}:
        assert callers[role].post("calibrations/", request_body(place, version)).status_code == 403
    outsider = Caller(Role.LEAD, make_project())
    assert outsider.post("calibrations/", request_body(place, version)).status_code == 404
    assert not HoldoutTest.objects.exists()
    response = callers[Role.LEAD].post("calibrations/", request_body(place, version))
    assert (response.status_code, response.json()["outcome"], enqueued) == (202, None, [HoldoutTest.objects.get().pk])
    work_on_job(advance_holdout_test, enqueued[0])
    shown_test = callers[Role.VIEWER].get(f"calibrations/{enqueued[0]}/").json()
    assert (shown_test["outcome"], shown_test["waits_for"]) == ("accepted", "")
    event = HoldoutTestResult.objects.get().event
    assert event is not None
    assert event.created_by == callers[Role.LEAD].user
    assert callers[Role.LEAD].post("calibrations/", request_body(place, version)).status_code == 409  # in force


def test_objects_outside_the_project_are_named_as_errors(place: CalibrationSetup, enqueued: list[int]) -> None:
    lead = Caller(Role.LEAD, place.run.project)
    version = place.create_draft("SKILLED")
    for name in ("judge", "rubric"):
        response = lead.post("calibrations/", request_body(place, version) | {name: 10**6})
        assert (response.status_code, list(response.json()["errors"])) == (400, [name])
    assert lead.post("calibrations/", request_body(place, version) | {"claim": "worse"}).status_code == 400


@pytest.mark.slow
def test_expired_time_budget_continues_in_the_next_job(
    place: CalibrationSetup, enqueued: list[int], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    holdout_test = request_holdout_test(place.gold, place.judge, place.create_draft("SKILLED"), by=None)
    settings.CONCORD_TASK_SECONDS = 0
    work_on_job(advance_holdout_test, holdout_test.pk)
    assert (SealedVerdict.objects.count(), enqueued) == (0, [holdout_test.pk, holdout_test.pk])
    call_count = [0]

    def may_continue(lease: Lease) -> bool:
        call_count[0] += 1
        return call_count[0] % 5 != 0

    monkeypatch.setattr(Lease, "may_continue", may_continue)
    job_count = 0
    while not HoldoutTestResult.objects.exists():
        job_count += 1
        work_on_job(advance_holdout_test, holdout_test.pk)
        assert job_count < 100
    assert job_count > 2
    assert len(place.script.calls) == 240  # 120 answers by two versions, none twice
    assert HoldoutTestResult.objects.get().outcome == "accepted"


def test_one_worker_holds_a_test_and_an_expired_lease_is_taken_over(
    place: CalibrationSetup, enqueued: list[int]
) -> None:
    version = place.create_draft("SKILLED")
    holdout_test = request_holdout_test(place.gold, place.judge, version, by=None)
    hour = timedelta(hours=1)
    Job.objects.update(state="working", token="0" * 32, until=timezone.now() + hour)
    enqueued.clear()
    work_on_job(advance_holdout_test, holdout_test.pk)
    enqueue_due()
    with pytest.raises(DomainError, match="look_in_hands"):
        place.test_version(version)
    assert (place.script.calls, enqueued) == ([], [])
    Job.objects.update(until=timezone.now() - hour)
    enqueue_due()
    assert enqueued == [holdout_test.pk]
    work_on_job(advance_holdout_test, holdout_test.pk)
    enqueue_due()
    assert (HoldoutTestResult.objects.get().outcome, enqueued) == ("accepted", [holdout_test.pk])


def test_blocked_test_reports_its_problem_and_waits_for_a_person(
    place: CalibrationSetup, enqueued: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    version, original_call = place.create_draft("SKILLED"), place.script.call

    async def call(request: Any) -> JudgeReply:
        return JudgeReply(Outcome.BLOCKED)

    monkeypatch.setattr(place.script, "call", call)
    holdout_test = request_holdout_test(place.gold, place.judge, version, by=None)
    work_on_job(advance_holdout_test, holdout_test.pk)
    enqueued.clear()
    enqueue_due()
    assert (Job.objects.get().problem, enqueued) == (str(Outcome.BLOCKED), [])
    monkeypatch.setattr(place.script, "call", original_call)
    assert request_holdout_test(place.gold, place.judge, version, by=None) == holdout_test
    assert enqueued == [holdout_test.pk]
    work_on_job(advance_holdout_test, holdout_test.pk)
    assert HoldoutTestResult.objects.get().outcome == "accepted"


def test_acceptance_creates_one_approval_per_metric_with_its_proof(place: CalibrationSetup) -> None:
    place.test_version(place.create_draft("SKILLED"))
    (approval,) = PromptApproval.objects.select_related("metric", "result__test")
    assert (approval.metric.name, approval.question_set) == ("correctness", place.run.answer_set.question_set.name)
    assert (approval.answers, approval.groups, approval.seen, approval.model) == (120, 120, 0, "model-1")
    assert approval.categories == ["dates", "tables"]


@pytest.mark.slow
def test_approval_lists_both_models_when_the_model_changed_between_jobs(
    place: CalibrationSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    holdout_test = holdout_tests.open_holdout_test(
        place.gold, place.judge, place.create_draft("SKILLED"), by=None, claim=Claim.BETTER
    )
    advance_holdout_test.add(holdout_test.pk)
    Job.objects.update(notes={"model": "model-0"})
    work_on_job(advance_holdout_test, holdout_test.pk)
    assert PromptApproval.objects.get().model == "model-0, model-1"


def test_rest_forecast_uses_validation_answers(place: CalibrationSetup) -> None:
    version = place.create_draft("SKILLED")
    url = f"gold-sets/{place.gold.pk}/forecast/?judge={place.judge.pk}&rubric={version.pk}"
    evaluator = Caller(Role.EVALUATOR, place.run.project)
    assert evaluator.get(url).json() == []
    row = metric("correctness")
    runs = {version: place.run, place.statuses.active: run_over(place.run.answer_set, judged=False)}
    for number, item in enumerate(place.gold.items.filter(split="validation").select_related("answer")):
        for (rubric, run), value in zip(runs.items(), (item.label, min(5, item.label + number % 3)), strict=True):
            score(run, item.answer, row, value, judge_version=place.judge, rubric_version=rubric)
    (forecast,) = evaluator.get(url).json()
    assert (forecast["metric"], forecast["validation"], forecast["hold_out_groups"]) == ("correctness", 72, 120)
    assert Caller(Role.VIEWER, place.run.project).get(url).status_code == 403


def test_evaluator_proposes_a_draft_and_lead_activates_it(place: CalibrationSetup) -> None:
    version = place.create_draft("SKILLED")
    assert Caller(Role.VIEWER, place.run.project).post(f"rubrics/{version.pk}/propose/", {}).status_code == 403
    evaluator = Caller(Role.EVALUATOR, place.run.project)
    assert evaluator.post(f"rubrics/{version.pk}/propose/", {"judge": place.judge.pk}).status_code == 200
    assert place.statuses.status_of(version) == VersionStatus.CANDIDATE
    body = {"judge": place.judge.pk, "reason": "we trust it"}
    assert evaluator.post(f"rubrics/{version.pk}/activate/", body).status_code == 403
    assert Caller(Role.LEAD, place.run.project).post(f"rubrics/{version.pk}/activate/", body).status_code == 200
    assert place.statuses.active == version
