"""A change of score between two runs, split into what the judge moved and what the system did."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from evaluation.core.roles import Role
from evaluation.judges.shipped import profile_row
from evaluation.judging.calls import ResponseFormat
from evaluation.models import Run
from evaluation.runs.creation import prepare_run
from evaluation.scoring import adhoc
from evaluation.scoring.adhoc import ProbedJudge
from review.calibration import judge_budget
from review.calibration.anchors import PROOFS, run_check
from review.calibration.drift import JudgeShift, judge_shifts
from review.comparisons.comparison import compare, comparison_json
from tests.factories import make_user
from tests.review.builders import answer_rows, metric, score
from tests.review.calibration.labelled import worth
from tests.review.calibration.place import Place

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Place:
    found = Place()
    monkeypatch.setattr(adhoc, "client_of", lambda _: found.script)
    monkeypatch.setattr(
        judge_budget, "find_response_format", lambda _: ProbedJudge(ResponseFormat.JSON_SCHEMA, "model-1")
    )
    return found


def judged(place: Place, *, skilled: bool, better: int) -> Run:
    """A run in which the judge says what it says by its version, of a system that is worth so much more."""
    run = prepare_run(place.run.answer_set, profile_row(place.run.project, "graphrag"), judge=place.judge)
    rubric = run.judges.get(rubric_version__family="answer_quality").rubric_version
    for number, answer in enumerate(answer_rows(place.run)[:60]):
        right = min(5, worth(number) + better)
        level = right if skilled else max(1, min(5, right + (2 if number % 2 else -2)))
        score(run, answer, metric("correctness"), level, judge_version=place.judge, rubric_version=rubric)
    Run.objects.filter(pk=run.pk).update(state=Run.State.COMPLETED)
    return Run.objects.get(pk=run.pk)


def test_what_is_left_adds_up_and_half_widths_by_their_squares() -> None:
    # 0.5 - 0.2 = 0.3; half widths 0.3 and 0.4 make 0.5
    left = JudgeShift(0.2, -0.2, 0.6, 72).system_change(0.5, 0.2, 0.8)
    assert (left.change, left.low, left.high, left.answers) == pytest.approx((0.3, -0.2, 0.8, 72))
    sure = JudgeShift(0.2, None, None, 72).system_change(0.5, 0.4, 0.6)
    assert (sure.change, sure.low, sure.high) == pytest.approx((0.3, 0.2, 0.4))
    assert JudgeShift(0.2, None, None, 72).system_change(0.5, None, None) == JudgeShift(0.3, None, None, 72)


def test_a_new_version_that_judges_otherwise_is_told_apart_from_the_system(place: Place) -> None:
    before = judged(place, skilled=False, better=0)
    place.accept(place.drafted("SKILLED"))
    after = judged(place, skilled=True, better=0)
    found = judge_shifts(after, before)[metric("correctness").pk]
    assert found.answers == 100
    assert found.low is not None
    assert found.high is not None
    assert found.low < found.change < found.high
    (one,) = compare([before, after]).differences
    correctness = next(each for each in one.metrics if each.name == "correctness")
    assert correctness.judge_shift == found
    assert correctness.paired is not None
    assert correctness.system_shift is not None
    assert correctness.system_shift.change == pytest.approx(correctness.paired.value - found.change)
    told = comparison_json(compare([before, after]))["differences"][0]["metrics"]
    assert told["correctness"]["judge_moved"]["answers"] == 100
    assert set(told["correctness"]["system_moved"]) == {"change", "low", "high", "answers"}
    lead = Client()
    lead.force_login(make_user(Role.LEAD, place.run.project))
    page = lead.get(reverse("run-compare"), {"runs": [before.pk, after.pk]}).content.decode()
    assert "the judge moved, as 100 anchors tell" in page


@pytest.mark.slow
def test_runs_of_one_version_at_the_time_of_one_check_are_not_split(place: Place) -> None:
    place.accept(place.drafted("SKILLED"))
    one = judged(place, skilled=True, better=0)
    other = judged(place, skilled=True, better=1)
    assert judge_shifts(other, one) == {}  # the reference is the only check
    run_check(PROOFS.get(), by=None)
    newest = judged(place, skilled=True, better=1)
    assert judge_shifts(newest, one)[metric("correctness").pk].change == 0.0
