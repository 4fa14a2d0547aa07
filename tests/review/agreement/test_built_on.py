"""Agreement of a judge leaves out the answers on which its prompt was developed."""

from __future__ import annotations

import pytest

from evaluation.criteria.rubrics import activate
from evaluation.judges.shipped import profile_row
from evaluation.models import JudgeVersion, RubricVersion, Run
from evaluation.runs.creation import prepare_run
from review.agreement.run_agreement import JudgeMeasure, agreement_if_cached, cached_agreement, compute_agreement
from review.calibration.versions import freeze
from review.evidence.scorers import prompt_labels_by_rubric
from review.evidence.seals import LabelForm, fixed_label_form
from review.models import GoldItem
from tests.review.builders import answer_rows, metric, score
from tests.review.calibration.labelled import worth
from tests.review.calibration.place import CalibrationSetup

pytestmark = pytest.mark.django_db


@pytest.fixture
def place() -> CalibrationSetup:
    return CalibrationSetup(60)


def run_with_scores(place: CalibrationSetup, version: RubricVersion | None) -> Run:
    """Create a run with a score for every answer, by a draft version or by the shipped one."""
    if version is not None:
        activate(version, place.judge, by=None, reason="for the test")
    run = prepare_run(place.run.answer_set, profile_row(place.run.project, "graphrag"), judge=place.judge)
    rubric = run.judges.get(rubric_version__family="answer_quality").rubric_version
    holdout_answers = set(GoldItem.objects.filter(split="hold_out").values_list("answer", flat=True))
    for number, answer in enumerate(answer_rows(place.run)):
        # right on everything anybody could see, two levels off on the hold-out
        value = worth(number) if answer.pk not in holdout_answers else 1 + (worth(number) + 1) % 5
        score(run, answer, metric("correctness"), value, judge_version=place.judge, rubric_version=rubric)
    return run


def judge_agreement(run: Run, judge: JudgeVersion) -> JudgeMeasure:
    with fixed_label_form(LabelForm.FULL):
        return next(measure for measure in compute_agreement(run).judges if measure.author == str(judge))


def test_agreement_excludes_prompt_labels_and_counts_them(place: CalibrationSetup) -> None:
    holdout_count = GoldItem.objects.filter(split="hold_out").count()
    agreement = judge_agreement(run_with_scores(place, place.create_draft("MINE")), place.judge)
    assert (agreement.agreement.n, agreement.built_on) == (holdout_count, 60 - holdout_count)
    assert agreement.to_dict()["built_on"] == 60 - holdout_count
    assert agreement.guess is not None
    assert agreement.guess.agreement.n == holdout_count
    assert all(group.n <= holdout_count for group in agreement.parts.values())


def test_shipped_prompt_has_no_prompt_labels(place: CalibrationSetup) -> None:
    agreement = judge_agreement(run_with_scores(place, None), place.judge)
    assert (agreement.agreement.n, agreement.built_on) == (60, 0)
    assert "built_on" not in agreement.to_dict()


def test_labels_frozen_after_activation_are_not_prompt_labels(place: CalibrationSetup) -> None:
    version = place.create_draft("MINE")
    run = run_with_scores(place, version)
    judges = run.judges.select_related("rubric_version")
    labels_before = prompt_labels_by_rubric(run, judges)[version.pk]
    freeze(place.run, "later", by=None, seed=5)
    assert GoldItem.objects.filter(gold_set__name="later").exclude(split="hold_out").count() == 30
    assert prompt_labels_by_rubric(run, judges.all())[version.pk] == labels_before


def test_cached_agreement_is_stale_after_labels_are_frozen(place: CalibrationSetup) -> None:
    run = run_with_scores(place, place.create_draft("MINE"))
    first = cached_agreement(run, resamples=0)
    assert first["judges"][str(place.judge)]["correctness"]["built_on"] == 30
    assert agreement_if_cached(run, resamples=0) == first
    freeze(place.run, "another", by=None, seed=5)
    assert agreement_if_cached(run, resamples=0) is None
