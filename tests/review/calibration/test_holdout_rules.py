"""A look at a hold-out: what it answers, what it pins and counts, how it goes on, and that nothing else gets out."""

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
from tests.review.calibration.labelled import FAMILY, Scripted
from tests.review.calibration.place import Place

pytestmark = pytest.mark.django_db


def test_a_better_version_is_accepted_put_in_force_and_counted(place: Place) -> None:
    version = place.drafted("SKILLED")
    told = place.accept(version)
    assert (told.number, told.outcome, told.looks) == (1, "accepted", 1)
    assert told.left == pytest.approx(0.025)
    assert place.slot.active == version
    event = HoldoutTestResult.objects.get().event
    assert event is not None
    assert (event.ground, event.verb) == ("accepted", "activated")
    # 120 hold-out answers, judged once by each of the two versions, three metrics a reply
    assert len(place.script.calls) == 240


def test_an_equal_one_is_not_and_later_looks_spend_what_is_left(place: Place) -> None:
    told = place.accept(place.drafted("LIKE IT"))
    assert (told.outcome, told.looks) == ("not_accepted", 1)
    again = place.accept(place.drafted("LIKE IT too"))
    assert (again.number, again.looks) == (2, 2)
    assert again.left == pytest.approx(0.05 / 3)
    assert place.slot.active.version == 1
    assert list(HoldoutTest.objects.values_list("number", "step")) == [(1, 1), (2, 2)]


def test_a_version_that_knows_the_examples_by_heart_is_not_accepted(place: Place) -> None:
    known = GoldItem.objects.exclude(split="hold_out").values_list("answer__text", flat=True)
    assert place.accept(place.drafted("MEMORY\n" + "\n".join(known))).outcome == "not_accepted"


class UpsideDown(Scripted):
    """Reads the scale upside down, and by *MIDDLE* gives every answer 3: nearer to the labels, and worth nothing."""

    async def call(self, request: Any) -> JudgeReply:
        worth = int(request.answer.text[-2])
        level = 3 if "MIDDLE" in request.rubric.instruction else 6 - worth
        return JudgeReply(
            Outcome.OK, raw=json.dumps({name: {"reason": "r", "score": level} for name in request.judge_request.names})
        )


def test_a_version_that_is_nearer_but_tells_less_is_not_accepted_with_that_reason(place: Place) -> None:
    place.script = UpsideDown()
    version = place.drafted("MIDDLE")
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command(
            "test_prompt", f"answer_quality@{version.version}", "--judge", "judge", "--gold", "gold", stdout=out
        )
    assert ended.value.code == 100
    assert out.getvalue().splitlines()[0] == "not accepted: the residual variance is larger"
    assert HoldoutTestResult.objects.get().outcome == "larger_residual_variance"
    assert place.slot.active.version == 1

    caller = Caller(Role.LEAD, place.run.project)
    assert caller.get(f"calibrations/{HoldoutTest.objects.get().pk}/").json()["outcome"] == "larger_residual_variance"
    client = Client()
    client.force_login(caller.user)
    page = client.get(reverse("calibration", args=[place.gold.pk])).content.decode()
    assert "not accepted: the residual variance is larger" in page


def test_no_worse_is_enough_where_that_is_the_claim(place: Place) -> None:
    assert place.accept(place.drafted("LIKE IT"), claim=Claim.NOT_WORSE).outcome in {"accepted", "not_accepted"}
    skilled = place.drafted("SKILLED")
    assert place.accept(skilled, claim=Claim.NOT_WORSE).outcome == "accepted"


def test_verdicts_that_are_missing_refuse_without_spending(place: Place) -> None:
    told = place.accept(place.drafted("SILENT"))
    assert (told.outcome, told.looks, told.left) == ("refused", 0, 0.05)
    assert place.accept(place.drafted("SKILLED")).outcome == "accepted"
    assert list(HoldoutTest.objects.values_list("number", "step")) == [(1, 1), (2, 1)]


def test_a_missing_verdict_costs_the_candidate_the_width_and_the_others_nothing(place: Place) -> None:
    item = place.gold.items.select_related("metric").first()
    assert item is not None
    none: holdout_rules.Verdicts = {item.answer_id: {"correctness": None}}
    one, missing = holdout_rules.compare_losses([item], none, none, none, item.metric)
    # the scale is 1 to 5: (5 - 1)^2
    assert (one.candidate.tolist(), one.active.tolist(), one.best.tolist(), missing) == ([16.0], [0.0], [0.0], 1)


def test_a_look_that_was_interrupted_goes_on_and_asks_nothing_twice(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    version, judge = place.drafted("SKILLED"), place.script
    speak = judge.call

    async def call(request: Any) -> JudgeReply:
        return JudgeReply(Outcome.BLOCKED) if len(judge.calls) >= 50 else await speak(request)

    monkeypatch.setattr(judge, "call", call)
    with pytest.raises(DomainError, match="judge_away"):
        place.accept(version)
    kept = SealedVerdict.objects.count()
    assert 50 - adhoc.CONCURRENT_CALLS <= kept <= 50
    with pytest.raises(DomainError, match="look_open"):
        place.accept(place.drafted("LIKE IT"))
    monkeypatch.setattr(judge, "call", speak)
    judge.calls.clear()
    assert place.accept(version).outcome == "accepted"
    assert (len(judge.calls), HoldoutTest.objects.count()) == (240 - kept, 1)
    assert place.slot.active == version


def test_what_makes_no_sense_is_refused_before_it_counts(place: Place) -> None:
    version = place.drafted("SKILLED")
    with pytest.raises(DomainError, match="rubric_active"):
        place.accept(place.slot.active)
    with pytest.raises(DomainError, match="look_repeats"):
        place.accept(version, repeat=0)
    with pytest.raises(DomainError, match="gold_other_metrics"):
        place.accept(version, since=2)
    claims = draft(place.run.project, accepting_of("claims"), by=None)
    with pytest.raises(DomainError, match="gold_other_metrics"):
        place.accept(claims)
    held = place.gold.items.filter(split="hold_out").first()
    assert held is not None
    score(place.run, held.answer, metric("correctness"), 3, judge_version=place.judge, rubric_version=version)
    with pytest.raises(DomainError, match="hold_out_seen"):
        place.accept(version)
    assert not HoldoutTest.objects.exists()


def accepting_of(family: str) -> Any:
    from evaluation.judging.rubric import shipped_rubric

    return shipped_rubric(family, "en").model_copy(update={"instruction": "SKILLED"})


def test_a_hold_out_that_is_too_small_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Place(40)
    with pytest.raises(DomainError, match="hold_out_too_small") as refused:
        small.accept(small.drafted("SKILLED"))
    assert refused.value.params == {"groups": 10, "answers": 80}


def test_a_changed_rating_of_the_hold_out_ends_it(place: Place) -> None:
    from evaluation.storage import append_only

    held = place.gold.items.filter(split="hold_out").first()
    assert held is not None
    with append_only.suspended():
        Rating.objects.filter(pk=held.ratings[0][0]).update(value=0.5)
    with pytest.raises(DomainError, match="gold_changed"):
        place.accept(place.drafted("SKILLED"))


def test_a_draft_in_a_run_judges_all_but_the_hold_out(place: Place) -> None:
    version = place.drafted("SKILLED")
    profile = profile_row(place.run.project, "graphrag")
    run = prepare_run(
        place.run.answer_set, profile, RunSpec(rubrics=[f"{FAMILY}@{version.version}"]), judge=place.judge
    )
    assert run.judges.get(rubric_version=version).standing == VersionStatus.DRAFT
    judged = {
        unit.answer_id
        for unit in planned_units(run)
        if unit.run_judge is not None and unit.run_judge.rubric_version == version
    }
    held = set(place.gold.items.filter(split="hold_out").values_list("answer_id", flat=True))
    assert judged == {answer.pk for answer in answer_rows(place.run)} - held


def test_what_a_look_could_tell_comes_from_validation_alone(place: Place) -> None:
    version = place.drafted("SKILLED")
    assert forecast_holdout_test(place.gold, place.judge, version) == ()
    row = metric("correctness")
    runs = {version: place.run, place.slot.active: run_over(place.run.answer_set, judged=False)}
    for number, item in enumerate(place.gold.items.filter(split="validation").select_related("answer")):
        for (rubric, run), value in zip(runs.items(), (item.label, min(5, item.label + number % 3)), strict=True):
            score(run, item.answer, row, value, judge_version=place.judge, rubric_version=rubric)
    (ahead,) = forecast_holdout_test(place.gold, place.judge, version)
    assert (ahead.metric, ahead.validation, ahead.hold_out_groups, ahead.step) == ("correctness", 72, 120, 1)
    assert ahead.forecast is not None
    assert 0.9 < ahead.forecast.power <= 1.0


def test_commands_say_accepted_or_not_and_what_is_left(place: Place) -> None:
    equal, better = place.drafted("LIKE IT"), place.drafted("SKILLED")
    out = StringIO()
    asked = ["--judge", "judge", "--gold", "gold"]
    with pytest.raises(SystemExit) as ended:
        call_command("test_prompt", f"{FAMILY}@{equal.version}", *asked, stdout=out)
    assert ended.value.code == 100
    assert out.getvalue().splitlines() == ["not accepted", "look 1; 1 looks taken, 0.0250 of 0.05 left"]
    out = StringIO()
    call_command("test_prompt", f"{FAMILY}@{better.version}", *asked, "--format", "json", stdout=out)
    assert json.loads(out.getvalue()) == {
        "number": 2,
        "outcome": "accepted",
        "looks": 2,
        "left": pytest.approx(0.05 / 3),
    }


def test_nobody_learns_a_sealed_verdict(place: Place) -> None:
    """By no table but the sealed one, by no page of the back office, by no address: only the word of the outcome."""
    version = place.drafted("LIKE IT")
    place.accept(version)
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
            said = caller.get(path)
            if said.status_code != 200:
                assert role is Role.REVIEWER
                continue
            text = json.dumps(said.json())
            assert not {"loss", "kappa", "mean", "p_value", "verdict", "reason"} & set(
                text.replace('"expert_loss"', "").replace('"', " ").replace(":", " ").split()
            )


@given(st.integers(0, 2**31), st.sampled_from(["", "v1", "1.", "1.AAAA"]))
def test_a_sealed_text_opens_for_its_own_look_alone(number: int, damaged: str) -> None:
    from evaluation.judges.secrets import seal, unseal

    text = seal('{"correctness": 3}', origin=f"look {number}", secret="a" * 50)
    assert unseal(text, origin=f"look {number}", secrets=["b" * 50, "a" * 50]) == '{"correctness": 3}'
    for wrong in (f"look {number + 1}", "https://example.org"):
        with pytest.raises(DomainError, match="key_unreadable"):
            unseal(text, origin=wrong, secrets=["a" * 50])
    with pytest.raises(DomainError, match="key_unreadable"):
        unseal(damaged, origin=f"look {number}", secrets=["a" * 50])


def test_the_best_version_ever_accepted_bounds_the_next(place: Place) -> None:
    skilled = place.drafted("SKILLED")
    assert place.accept(skilled).outcome == "accepted"
    activate(place.drafted("LIKE IT"), place.judge, by=None, reason="a lead wants it")
    place.script.calls.clear()
    told = place.accept(place.drafted("SKILLED again"))
    assert HoldoutTest.objects.get(number=2).best == skilled
    assert len(place.script.calls) == 3 * 120
    assert told.outcome == "accepted"


def other_judge(place: Place) -> JudgeVersion:
    """A cheaper judge behind the same endpoint."""
    return make_judge(place.run.project, "cheap", endpoint=place.judge.endpoint)


def test_a_cheaper_judge_is_measured_by_what_was_proved_of_the_other(place: Place) -> None:
    cheap = other_judge(place)
    shipped = place.slot.active
    with pytest.raises(DomainError, match="beside_not_proved"):
        place.look(cheap, shipped, claim=Claim.NOT_WORSE, reference_judge=place.judge)
    skilled = place.drafted("SKILLED")
    place.accept(skilled)
    place.script.calls.clear()
    # the cheaper judge by the shipped words is two levels off: far worse than the other by the accepted ones
    assert place.look(cheap, shipped, claim=Claim.NOT_WORSE, reference_judge=place.judge).outcome == "not_accepted"
    assert len(place.script.calls) == 120  # nothing is asked of the dearer one
    told = place.look(cheap, skilled, claim=Claim.NOT_WORSE, reference_judge=place.judge)
    assert (told.number, told.outcome, told.looks) == (3, "accepted", 3)
    assert version_statuses(rubric_scope(cheap, FAMILY)).active == skilled
    look = HoldoutTest.objects.get(number=3)
    assert (look.against, look.best) == (HoldoutTest.objects.get(number=1), skilled)
    assert PromptApproval.objects.filter(result__test__judge_version=cheap).exists()


def test_beside_another_judge_only_not_worse_can_be_shown(place: Place) -> None:
    cheap, skilled = other_judge(place), place.drafted("SKILLED")
    place.accept(skilled)
    with pytest.raises(DomainError, match="beside_not_better"):
        place.look(cheap, skilled, reference_judge=place.judge)
    with pytest.raises(DomainError, match="beside_not_better"):
        place.look(place.judge, place.drafted("LIKE IT"), claim=Claim.NOT_WORSE, reference_judge=place.judge)


def test_a_cheaper_judge_whose_verdicts_were_seen_cannot_be_looked_at(place: Place) -> None:
    cheap, shipped = other_judge(place), place.slot.active
    place.accept(place.drafted("SKILLED"))
    run = prepare_run(place.run.answer_set, profile_row(place.run.project, "graphrag"), judge=cheap)
    held = GoldItem.objects.filter(split="hold_out").first()
    assert held is not None
    score(run, held.answer, metric("correctness"), 4, judge_version=cheap, rubric_version=shipped)
    with pytest.raises(DomainError, match="hold_out_seen"):
        place.look(cheap, shipped, claim=Claim.NOT_WORSE, reference_judge=place.judge)


def test_what_is_in_force_proves_itself_anew_where_it_is_no_worse(place: Place) -> None:
    skilled = place.drafted("SKILLED")
    with pytest.raises(DomainError, match="rubric_active"):
        place.accept(place.slot.active, claim=Claim.NOT_WORSE)  # never proved
    place.accept(skilled)
    place.script.calls.clear()
    with pytest.raises(DomainError, match="rubric_active"):
        place.accept(skilled)
    told = place.accept(skilled, claim=Claim.NOT_WORSE)
    assert (told.outcome, told.looks, len(place.script.calls)) == ("accepted", 2, 120)
    assert PromptApproval.objects.count() == 2
    place.script.off = 1  # the model behind the name errs by a level now
    told = place.accept(skilled, claim=Claim.NOT_WORSE)
    assert (told.outcome, told.looks) == ("not_accepted", 3)
    assert place.slot.active == skilled  # it is not put out of force by that; only its licence grows old
