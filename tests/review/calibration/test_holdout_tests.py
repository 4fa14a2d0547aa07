"""Looks that are asked for and taken by workers: over REST, in turns, by one worker at a time; what they license."""

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
from tests.jobs import catch_rings, work
from tests.review.builders import metric, run_over, score
from tests.review.calibration.place import Place

pytestmark = pytest.mark.django_db


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The looks for which workers were woken."""
    return catch_rings(monkeypatch)


def asked(place: Place, version: Any) -> dict[str, Any]:
    return {"gold_set": place.gold.pk, "judge": place.judge.pk, "rubric": version.pk}


def test_a_lead_asks_by_rest_a_worker_looks_and_the_word_is_all_that_is_told(place: Place, rung: list[int]) -> None:
    version = place.drafted("SKILLED")
    callers = {role: Caller(role, place.run.project) for role in Role}
    for role in set(Role) - {Role.LEAD, Role.ADMIN}:
        assert callers[role].post("calibrations/", asked(place, version)).status_code == 403
    stranger = Caller(Role.LEAD, make_project())
    assert stranger.post("calibrations/", asked(place, version)).status_code == 404
    assert not HoldoutTest.objects.exists()
    told = callers[Role.LEAD].post("calibrations/", asked(place, version))
    assert (told.status_code, told.json()["outcome"], rung) == (202, None, [HoldoutTest.objects.get().pk])
    work(advance_holdout_test, rung[0])
    seen = callers[Role.VIEWER].get(f"calibrations/{rung[0]}/").json()
    assert (seen["outcome"], seen["waits_for"]) == ("accepted", "")
    event = HoldoutTestResult.objects.get().event
    assert event is not None
    assert event.created_by == callers[Role.LEAD].user
    assert callers[Role.LEAD].post("calibrations/", asked(place, version)).status_code == 409  # in force


def test_what_is_not_of_the_project_is_named(place: Place, rung: list[int]) -> None:
    lead = Caller(Role.LEAD, place.run.project)
    version = place.drafted("SKILLED")
    for name in ("judge", "rubric"):
        told = lead.post("calibrations/", asked(place, version) | {name: 10**6})
        assert (told.status_code, list(told.json()["errors"])) == (400, [name])
    assert lead.post("calibrations/", asked(place, version) | {"claim": "worse"}).status_code == 400


def test_time_runs_out_and_the_next_turn_goes_on(
    place: Place, rung: list[int], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = request_holdout_test(place.gold, place.judge, place.drafted("SKILLED"), by=None)
    settings.CONCORD_TASK_SECONDS = 0
    work(advance_holdout_test, look.pk)
    assert (SealedVerdict.objects.count(), rung) == (0, [look.pk, look.pk])
    asks = [0]

    def more(lease: Lease) -> bool:
        asks[0] += 1
        return asks[0] % 5 != 0

    monkeypatch.setattr(Lease, "more", more)
    turns = 0
    while not HoldoutTestResult.objects.exists():
        turns += 1
        work(advance_holdout_test, look.pk)
        assert turns < 100
    assert turns > 2
    assert len(place.script.calls) == 240  # 120 answers by two versions, none twice
    assert HoldoutTestResult.objects.get().outcome == "accepted"


def test_one_worker_at_a_time_and_a_lapsed_turn_is_taken_again(place: Place, rung: list[int]) -> None:
    version = place.drafted("SKILLED")
    look = request_holdout_test(place.gold, place.judge, version, by=None)
    hour = timedelta(hours=1)
    Job.objects.update(state="working", token="0" * 32, until=timezone.now() + hour)
    rung.clear()
    work(advance_holdout_test, look.pk)
    enqueue_due()
    with pytest.raises(DomainError, match="look_in_hands"):
        place.accept(version)
    assert (place.script.calls, rung) == ([], [])
    Job.objects.update(until=timezone.now() - hour)
    enqueue_due()
    assert rung == [look.pk]
    work(advance_holdout_test, look.pk)
    enqueue_due()
    assert (HoldoutTestResult.objects.get().outcome, rung) == ("accepted", [look.pk])


def test_a_look_that_cannot_go_on_says_why_and_waits_for_a_person(
    place: Place, rung: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    version, speak = place.drafted("SKILLED"), place.script.call

    async def call(request: Any) -> JudgeReply:
        return JudgeReply(Outcome.BLOCKED)

    monkeypatch.setattr(place.script, "call", call)
    look = request_holdout_test(place.gold, place.judge, version, by=None)
    work(advance_holdout_test, look.pk)
    rung.clear()
    enqueue_due()
    assert (Job.objects.get().problem, rung) == (str(Outcome.BLOCKED), [])
    monkeypatch.setattr(place.script, "call", speak)
    assert request_holdout_test(place.gold, place.judge, version, by=None) == look
    assert rung == [look.pk]
    work(advance_holdout_test, look.pk)
    assert HoldoutTestResult.objects.get().outcome == "accepted"


def test_an_acceptance_licenses_each_metric_with_its_proof(place: Place) -> None:
    place.accept(place.drafted("SKILLED"))
    (one,) = PromptApproval.objects.select_related("metric", "result__test")
    assert (one.metric.name, one.question_set) == ("correctness", place.run.answer_set.question_set.name)
    assert (one.answers, one.groups, one.seen, one.model) == (120, 120, 0, "model-1")
    assert one.categories == ["dates", "tables"]


def test_a_model_that_changed_between_turns_stands_in_the_licence_with_the_other(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = holdout_tests.open_holdout_test(
        place.gold, place.judge, place.drafted("SKILLED"), by=None, claim=Claim.BETTER
    )
    advance_holdout_test.add(look.pk)
    Job.objects.update(notes={"model": "model-0"})
    work(advance_holdout_test, look.pk)
    assert PromptApproval.objects.get().model == "model-0, model-1"


def test_the_forecast_by_rest_is_of_validation(place: Place) -> None:
    version = place.drafted("SKILLED")
    at = f"gold-sets/{place.gold.pk}/forecast/?judge={place.judge.pk}&rubric={version.pk}"
    evaluator = Caller(Role.EVALUATOR, place.run.project)
    assert evaluator.get(at).json() == []
    row = metric("correctness")
    runs = {version: place.run, place.slot.active: run_over(place.run.answer_set, judged=False)}
    for number, item in enumerate(place.gold.items.filter(split="validation").select_related("answer")):
        for (rubric, run), value in zip(runs.items(), (item.label, min(5, item.label + number % 3)), strict=True):
            score(run, item.answer, row, value, judge_version=place.judge, rubric_version=rubric)
    (ahead,) = evaluator.get(at).json()
    assert (ahead["metric"], ahead["validation"], ahead["hold_out_groups"]) == ("correctness", 72, 120)
    assert Caller(Role.VIEWER, place.run.project).get(at).status_code == 403


def test_an_evaluator_offers_a_draft_and_a_lead_puts_it_in_force(place: Place) -> None:
    version = place.drafted("SKILLED")
    assert Caller(Role.VIEWER, place.run.project).post(f"rubrics/{version.pk}/propose/", {}).status_code == 403
    evaluator = Caller(Role.EVALUATOR, place.run.project)
    assert evaluator.post(f"rubrics/{version.pk}/propose/", {"judge": place.judge.pk}).status_code == 200
    assert place.slot.status_of(version) == VersionStatus.CANDIDATE
    body = {"judge": place.judge.pk, "reason": "we trust it"}
    assert evaluator.post(f"rubrics/{version.pk}/activate/", body).status_code == 403
    assert Caller(Role.LEAD, place.run.project).post(f"rubrics/{version.pk}/activate/", body).status_code == 200
    assert place.slot.active == version
