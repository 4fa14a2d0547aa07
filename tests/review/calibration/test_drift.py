"""A score change between two runs, split into judge shift and system change."""

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
from review.calibration.anchors import PASSED_RESULTS, run_check
from review.calibration.drift import JudgeShift, judge_shifts
from review.comparisons.comparison import compare, comparison_json
from tests.factories import make_user
from tests.review.builders import answer_rows, metric, score
from tests.review.calibration.labelled import worth
from tests.review.calibration.place import CalibrationSetup

pytestmark = pytest.mark.django_db


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> CalibrationSetup:
    setup = CalibrationSetup()
    monkeypatch.setattr(adhoc, "client_of", lambda _: setup.script)
    monkeypatch.setattr(
        judge_budget, "find_response_format", lambda _: ProbedJudge(ResponseFormat.JSON_SCHEMA, "model-1")
    )
    return setup


def scored_run(place: CalibrationSetup, *, is_skilled: bool, gain: int) -> Run:
    """Create a completed run of a system that is ``gain`` levels better, scored according to the judge's skill."""
    run = prepare_run(place.run.answer_set, profile_row(place.run.project, "graphrag"), judge=place.judge)
    rubric = run.judges.get(rubric_version__family="answer_quality").rubric_version
    for number, answer in enumerate(answer_rows(place.run)[:60]):
        right = min(5, worth(number) + gain)
        level = right if is_skilled else max(1, min(5, right + (2 if number % 2 else -2)))
        score(run, answer, metric("correctness"), level, judge_version=place.judge, rubric_version=rubric)
    Run.objects.filter(pk=run.pk).update(state=Run.State.COMPLETED)
    return Run.objects.get(pk=run.pk)


def test_system_change_subtracts_judge_shift_and_combines_half_widths() -> None:
    # 0.5 - 0.2 = 0.3; half widths 0.3 and 0.4 make 0.5
    change = JudgeShift(0.2, -0.2, 0.6, 72).system_change(0.5, 0.2, 0.8)
    assert (change.change, change.low, change.high, change.answers) == pytest.approx((0.3, -0.2, 0.8, 72))
    without_interval = JudgeShift(0.2, None, None, 72).system_change(0.5, 0.4, 0.6)
    assert (without_interval.change, without_interval.low, without_interval.high) == pytest.approx((0.3, 0.2, 0.4))
    assert JudgeShift(0.2, None, None, 72).system_change(0.5, None, None) == JudgeShift(0.3, None, None, 72)


@pytest.mark.slow
def test_judge_shift_of_a_new_version_is_separated_from_system_change(place: CalibrationSetup) -> None:
    run_before = scored_run(place, is_skilled=False, gain=0)
    place.test_version(place.create_draft("SKILLED"))
    run_after = scored_run(place, is_skilled=True, gain=0)
    shift = judge_shifts(run_after, run_before)[metric("correctness").pk]
    assert shift.answers == 100
    assert shift.low is not None
    assert shift.high is not None
    assert shift.low < shift.change < shift.high
    (difference,) = compare([run_before, run_after]).differences
    correctness = next(row for row in difference.metrics if row.name == "correctness")
    assert correctness.judge_shift == shift
    assert correctness.paired is not None
    assert correctness.system_shift is not None
    assert correctness.system_shift.change == pytest.approx(correctness.paired.value - shift.change)
    json_metrics = comparison_json(compare([run_before, run_after]))["differences"][0]["metrics"]
    assert json_metrics["correctness"]["judge_moved"]["answers"] == 100
    assert set(json_metrics["correctness"]["system_moved"]) == {"change", "low", "high", "answers"}
    lead = Client()
    lead.force_login(make_user(Role.LEAD, place.run.project))
    page = lead.get(reverse("run-compare"), {"runs": [run_before.pk, run_after.pk]}).content.decode()
    assert "from judge drift (measured on 100 anchors" in page


@pytest.mark.slow
def test_runs_with_one_version_and_one_check_are_not_split(place: CalibrationSetup) -> None:
    place.test_version(place.create_draft("SKILLED"))
    first_run = scored_run(place, is_skilled=True, gain=0)
    second_run = scored_run(place, is_skilled=True, gain=1)
    assert judge_shifts(second_run, first_run) == {}  # the reference is the only check
    run_check(PASSED_RESULTS.get(), by=None)
    newest_run = scored_run(place, is_skilled=True, gain=1)
    assert judge_shifts(newest_run, first_run)[metric("correctness").pk].change == 0.0
