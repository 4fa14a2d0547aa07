"""Hold-out tests: outcome, pinned versions, error budget, resuming and sealing."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.criteria.rubrics import activate, draft, rubric_scope, version_statuses
from evaluation.judges.shipped import profile_row
from evaluation.judging.calls import JudgeReply
from evaluation.models import Attempt, JudgeVersion, Reply, Score, VersionStatus
from evaluation.models.run_spec import RunSpec
from evaluation.network.outcomes import Outcome
from evaluation.runs.creation import prepare_run
from evaluation.scoring import adhoc
from evaluation.worker.lifecycle import planned_units
from review.calibration import holdout_rules
from review.calibration.holdout_rules import forecast_holdout_test
from review.models import GoldItem, HoldoutTest, HoldoutTestResult, PromptApproval, Rating, SealedVerdict
from review.statistics.acceptance import Claim
from tests.evaluation.rest.clients import Caller
from tests.factories import make_judge
from tests.review.builders import answer_rows, metric, run_over, score
from tests.review.calibration.labelled import FAMILY, ScriptedJudge
from tests.review.calibration.place import CalibrationSetup

pytestmark = pytest.mark.django_db


def test_better_version_is_accepted_activated_and_counted(place: CalibrationSetup) -> None:
    version = place.create_draft("SKILLED")
    summary = place.test_version(version)
    assert (summary.number, summary.outcome, summary.looks) == (1, "accepted", 1)
    assert summary.left == pytest.approx(0.025)
    assert place.statuses.active == version
    event = HoldoutTestResult.objects.get().event
    assert event is not None
    assert (event.ground, event.verb) == ("accepted", "activated")
    # 120 hold-out answers, judged once by each of the two versions, three metrics a reply
    assert len(place.script.calls) == 240


def test_equal_version_is_rejected_and_later_tests_use_the_remaining_error(place: CalibrationSetup) -> None:
    summary = place.test_version(place.create_draft("LIKE IT"))
    assert (summary.outcome, summary.looks) == ("not_accepted", 1)
    second_summary = place.test_version(place.create_draft("LIKE IT too"))
    assert (second_summary.number, second_summary.looks) == (2, 2)
    assert second_summary.left == pytest.approx(0.05 / 3)
    assert place.statuses.active.version == 1
    assert list(HoldoutTest.objects.values_list("number", "step")) == [(1, 1), (2, 2)]


def test_version_that_memorised_the_examples_is_rejected(place: CalibrationSetup) -> None:
    known_texts = GoldItem.objects.exclude(split="hold_out").values_list("answer__text", flat=True)
    assert place.test_version(place.create_draft("MEMORY\n" + "\n".join(known_texts))).outcome == "not_accepted"


class InvertedJudge(ScriptedJudge):
    """Reads the scale upside down; with *MIDDLE* it gives every answer 3, which is closer to the labels but useless."""

    async def call(self, request: Any) -> JudgeReply:
        worth = int(request.answer.text[-2])
        level = 3 if "MIDDLE" in request.rubric.instruction else 6 - worth
        return JudgeReply(
            Outcome.OK, raw=json.dumps({name: {"reason": "r", "score": level} for name in request.judge_request.names})
        )


def test_closer_version_with_less_information_is_rejected_with_that_reason(place: CalibrationSetup) -> None:
    place.script = InvertedJudge()
    version = place.create_draft("MIDDLE")
    out = StringIO()
    with pytest.raises(SystemExit) as exit_info:
        call_command(
            "test_prompt", f"answer_quality@{version.version}", "--judge", "judge", "--gold", "gold", stdout=out
        )
    assert exit_info.value.code == 100
    assert out.getvalue().splitlines()[0] == "not accepted: the residual variance is larger"
    assert HoldoutTestResult.objects.get().outcome == "larger_residual_variance"
    assert place.statuses.active.version == 1

    caller = Caller(Role.LEAD, place.run.project)
    assert caller.get(f"calibrations/{HoldoutTest.objects.get().pk}/").json()["outcome"] == "larger_residual_variance"
    client = Client()
    client.force_login(caller.user)
    page = client.get(reverse("calibration", args=[place.gold.pk])).content.decode()
    assert "not accepted: the residual variance is larger" in page


def test_not_worse_claim_accepts_a_version_that_is_no_worse(place: CalibrationSetup) -> None:
    assert place.test_version(place.create_draft("LIKE IT"), claim=Claim.NOT_WORSE).outcome in {
        "accepted",
        "not_accepted",
    }
    skilled_version = place.create_draft("SKILLED")
    assert place.test_version(skilled_version, claim=Claim.NOT_WORSE).outcome == "accepted"


def test_missing_verdicts_refuse_the_test_without_spending_error(place: CalibrationSetup) -> None:
    summary = place.test_version(place.create_draft("SILENT"))
    assert (summary.outcome, summary.looks, summary.left) == ("refused", 0, 0.05)
    assert place.test_version(place.create_draft("SKILLED")).outcome == "accepted"
    assert list(HoldoutTest.objects.values_list("number", "step")) == [(1, 1), (2, 1)]


def test_missing_verdict_costs_the_candidate_the_squared_scale_width(place: CalibrationSetup) -> None:
    item = place.gold.items.select_related("metric").first()
    assert item is not None
    none: holdout_rules.Verdicts = {item.answer_id: {"correctness": None}}
    losses, missing = holdout_rules.compare_losses([item], none, none, none, item.metric)
    # the scale is 1 to 5: (5 - 1)^2
    assert (losses.candidate.tolist(), losses.active.tolist(), losses.best.tolist(), missing) == (
        [16.0],
        [0.0],
        [0.0],
        1,
    )


def test_interrupted_holdout_test_resumes_without_repeating_calls(
    place: CalibrationSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    version, judge = place.create_draft("SKILLED"), place.script
    original_call = judge.call

    async def call(request: Any) -> JudgeReply:
        return JudgeReply(Outcome.BLOCKED) if len(judge.calls) >= 50 else await original_call(request)

    monkeypatch.setattr(judge, "call", call)
    with pytest.raises(DomainError, match="judge_away"):
        place.test_version(version)
    stored_count = SealedVerdict.objects.count()
    assert 50 - adhoc.CONCURRENT_CALLS <= stored_count <= 50
    with pytest.raises(DomainError, match="look_open"):
        place.test_version(place.create_draft("LIKE IT"))
    monkeypatch.setattr(judge, "call", original_call)
    judge.calls.clear()
    assert place.test_version(version).outcome == "accepted"
    assert (len(judge.calls), HoldoutTest.objects.count()) == (240 - stored_count, 1)
    assert place.statuses.active == version


def test_invalid_holdout_tests_are_refused_before_they_count(place: CalibrationSetup) -> None:
    version = place.create_draft("SKILLED")
    with pytest.raises(DomainError, match="rubric_active"):
        place.test_version(place.statuses.active)
    with pytest.raises(DomainError, match="look_repeats"):
        place.test_version(version, repeat=0)
    with pytest.raises(DomainError, match="gold_other_metrics"):
        place.test_version(version, since=2)
    claims = draft(place.run.project, skilled_rubric("claims"), by=None)
    with pytest.raises(DomainError, match="gold_other_metrics"):
        place.test_version(claims)
    holdout_item = place.gold.items.filter(split="hold_out").first()
    assert holdout_item is not None
    score(place.run, holdout_item.answer, metric("correctness"), 3, judge_version=place.judge, rubric_version=version)
    with pytest.raises(DomainError, match="hold_out_seen"):
        place.test_version(version)
    assert not HoldoutTest.objects.exists()


def skilled_rubric(family: str) -> Any:
    from evaluation.judging.rubric import shipped_rubric

    return shipped_rubric(family, "en").model_copy(update={"instruction": "SKILLED"})


def test_too_small_holdout_reports_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    small_setup = CalibrationSetup(40)
    with pytest.raises(DomainError, match="hold_out_too_small") as error_info:
        small_setup.test_version(small_setup.create_draft("SKILLED"))
    assert error_info.value.params == {"needed": 100, "needed_groups": 30, "answers": 20, "groups": 20}


def test_changed_holdout_rating_refuses_further_tests(place: CalibrationSetup) -> None:
    from evaluation.storage import append_only

    holdout_item = place.gold.items.filter(split="hold_out").first()
    assert holdout_item is not None
    with append_only.suspended():
        Rating.objects.filter(pk=holdout_item.ratings[0][0]).update(value=0.5)
    with pytest.raises(DomainError, match="gold_changed"):
        place.test_version(place.create_draft("SKILLED"))


def test_draft_in_a_run_judges_everything_except_the_holdout(place: CalibrationSetup) -> None:
    version = place.create_draft("SKILLED")
    profile = profile_row(place.run.project, "graphrag")
    run = prepare_run(
        place.run.answer_set, profile, RunSpec(rubrics=[f"{FAMILY}@{version.version}"]), judge=place.judge
    )
    assert run.judges.get(rubric_version=version).standing == VersionStatus.DRAFT
    judged_answers = {
        unit.answer_id
        for unit in planned_units(run)
        if unit.run_judge is not None and unit.run_judge.rubric_version == version
    }
    holdout_answers = set(place.gold.items.filter(split="hold_out").values_list("answer_id", flat=True))
    assert judged_answers == {answer.pk for answer in answer_rows(place.run)} - holdout_answers


def test_forecast_uses_validation_answers_only(place: CalibrationSetup) -> None:
    version = place.create_draft("SKILLED")
    assert forecast_holdout_test(place.gold, place.judge, version) == ()
    row = metric("correctness")
    runs = {version: place.run, place.statuses.active: run_over(place.run.answer_set, judged=False)}
    for number, item in enumerate(place.gold.items.filter(split="validation").select_related("answer")):
        for (rubric, run), value in zip(runs.items(), (item.label, min(5, item.label + number % 3)), strict=True):
            score(run, item.answer, row, value, judge_version=place.judge, rubric_version=rubric)
    (forecast,) = forecast_holdout_test(place.gold, place.judge, version)
    assert (forecast.metric, forecast.validation, forecast.hold_out_groups, forecast.step) == (
        "correctness",
        72,
        120,
        1,
    )
    assert forecast.forecast is not None
    assert 0.9 < forecast.forecast.power <= 1.0


def test_command_reports_outcome_and_remaining_error(place: CalibrationSetup) -> None:
    equal_version, better_version = place.create_draft("LIKE IT"), place.create_draft("SKILLED")
    out = StringIO()
    options = ["--judge", "judge", "--gold", "gold"]
    with pytest.raises(SystemExit) as exit_info:
        call_command("test_prompt", f"{FAMILY}@{equal_version.version}", *options, stdout=out)
    assert exit_info.value.code == 100
    assert out.getvalue().splitlines() == ["not accepted", "hold-out test 1 of 1; error budget left: 0.0250 of 0.05"]
    out = StringIO()
    call_command("test_prompt", f"{FAMILY}@{better_version.version}", *options, "--format", "json", stdout=out)
    assert json.loads(out.getvalue()) == {
        "number": 2,
        "outcome": "accepted",
        "looks": 2,
        "left": pytest.approx(0.05 / 3),
    }


def test_sealed_verdicts_are_never_revealed(place: CalibrationSetup) -> None:
    """Only the sealed table holds them. The admin and the REST API show no more than the outcome."""
    version = place.create_draft("LIKE IT")
    place.test_version(version)
    assert not Score.objects.filter(rubric_version=version).exists()
    assert not Attempt.objects.exists()
    assert not Reply.objects.exists()
    row = SealedVerdict.objects.filter(rubric_version=version).first()
    assert row is not None
    assert "correctness" not in row.sealed
    hidden = {GoldItem, SealedVerdict, HoldoutTestResult}
    assert not hidden & set(admin.site._registry)
    assert hidden <= set(apps.get_models())
    for role in Role:
        caller = Caller(role, place.run.project)
        for path in ("calibrations/", f"calibrations/{HoldoutTest.objects.get().pk}/", f"gold-sets/{place.gold.pk}/"):
            response = caller.get(path)
            if response.status_code != 200:
                assert role is Role.REVIEWER
                continue
            text = json.dumps(response.json())
            assert not {"loss", "kappa", "mean", "p_value", "verdict", "reason"} & set(
                text.replace('"expert_loss"', "").replace('"', " ").replace(":", " ").split()
            )


@given(st.integers(0, 2**31), st.sampled_from(["", "v1", "1.", "1.AAAA"]))
def test_sealed_text_opens_only_for_its_own_holdout_test(number: int, damaged: str) -> None:
    from evaluation.judges.secrets import seal, unseal

    text = seal('{"correctness": 3}', origin=f"look {number}", secret="a" * 50)
    assert unseal(text, origin=f"look {number}", secrets=["b" * 50, "a" * 50]) == '{"correctness": 3}'
    for wrong_origin in (f"look {number + 1}", "https://example.org"):
        with pytest.raises(DomainError, match="key_unreadable"):
            unseal(text, origin=wrong_origin, secrets=["a" * 50])
    with pytest.raises(DomainError, match="key_unreadable"):
        unseal(damaged, origin=f"look {number}", secrets=["a" * 50])


def test_next_version_is_compared_with_the_best_accepted_version(place: CalibrationSetup) -> None:
    skilled_version = place.create_draft("SKILLED")
    assert place.test_version(skilled_version).outcome == "accepted"
    activate(place.create_draft("LIKE IT"), place.judge, by=None, reason="a lead wants it")
    place.script.calls.clear()
    summary = place.test_version(place.create_draft("SKILLED again"))
    assert HoldoutTest.objects.get(number=2).best == skilled_version
    assert len(place.script.calls) == 3 * 120
    assert summary.outcome == "accepted"


def create_cheaper_judge(place: CalibrationSetup) -> JudgeVersion:
    return make_judge(place.run.project, "cheap", endpoint=place.judge.endpoint)


@pytest.mark.slow
def test_cheaper_judge_is_tested_against_a_proved_reference_judge(place: CalibrationSetup) -> None:
    cheap_judge = create_cheaper_judge(place)
    shipped = place.statuses.active
    with pytest.raises(DomainError, match="reference_not_approved"):
        place.test_judge(cheap_judge, shipped, claim=Claim.NOT_WORSE, reference_judge=place.judge)
    skilled_version = place.create_draft("SKILLED")
    place.test_version(skilled_version)
    place.script.calls.clear()
    # the cheaper judge by the shipped words is two levels off: far worse than the other by the accepted ones
    assert (
        place.test_judge(cheap_judge, shipped, claim=Claim.NOT_WORSE, reference_judge=place.judge).outcome
        == "not_accepted"
    )
    assert len(place.script.calls) == 120  # nothing is asked of the dearer one
    summary = place.test_judge(cheap_judge, skilled_version, claim=Claim.NOT_WORSE, reference_judge=place.judge)
    assert (summary.number, summary.outcome, summary.looks) == (3, "accepted", 3)
    assert version_statuses(rubric_scope(cheap_judge, FAMILY)).active == skilled_version
    holdout_test = HoldoutTest.objects.get(number=3)
    assert (holdout_test.against, holdout_test.best) == (HoldoutTest.objects.get(number=1), skilled_version)
    assert PromptApproval.objects.filter(result__test__judge_version=cheap_judge).exists()


@pytest.mark.slow
def test_reference_judge_allows_only_the_not_worse_claim(place: CalibrationSetup) -> None:
    cheap_judge, skilled_version = create_cheaper_judge(place), place.create_draft("SKILLED")
    place.test_version(skilled_version)
    with pytest.raises(DomainError, match="beside_not_better"):
        place.test_judge(cheap_judge, skilled_version, reference_judge=place.judge)
    with pytest.raises(DomainError, match="beside_not_better"):
        place.test_judge(place.judge, place.create_draft("LIKE IT"), claim=Claim.NOT_WORSE, reference_judge=place.judge)


@pytest.mark.slow
def test_cheaper_judge_with_seen_verdicts_cannot_be_tested(place: CalibrationSetup) -> None:
    cheap_judge, shipped = create_cheaper_judge(place), place.statuses.active
    place.test_version(place.create_draft("SKILLED"))
    run = prepare_run(place.run.answer_set, profile_row(place.run.project, "graphrag"), judge=cheap_judge)
    holdout_item = GoldItem.objects.filter(split="hold_out").first()
    assert holdout_item is not None
    score(run, holdout_item.answer, metric("correctness"), 4, judge_version=cheap_judge, rubric_version=shipped)
    with pytest.raises(DomainError, match="hold_out_seen"):
        place.test_judge(cheap_judge, shipped, claim=Claim.NOT_WORSE, reference_judge=place.judge)


@pytest.mark.slow
def test_active_version_renews_its_proof_when_it_is_no_worse(place: CalibrationSetup) -> None:
    skilled_version = place.create_draft("SKILLED")
    with pytest.raises(DomainError, match="rubric_active"):
        place.test_version(place.statuses.active, claim=Claim.NOT_WORSE)  # never proved
    place.test_version(skilled_version)
    place.script.calls.clear()
    with pytest.raises(DomainError, match="rubric_active"):
        place.test_version(skilled_version)
    summary = place.test_version(skilled_version, claim=Claim.NOT_WORSE)
    assert (summary.outcome, summary.looks, len(place.script.calls)) == ("accepted", 2, 120)
    assert PromptApproval.objects.count() == 2
    place.script.extra_error = 1  # the model behind the name errs by a level now
    summary = place.test_version(skilled_version, claim=Claim.NOT_WORSE)
    assert (summary.outcome, summary.looks) == ("not_accepted", 3)
    assert place.statuses.active == skilled_version  # it is not put out of force by that; only its approval grows old
