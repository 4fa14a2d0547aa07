"""A judge whose prompt was worked out on a gold set is compared with experts on the other answers alone."""

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
from tests.review.calibration.place import Place

pytestmark = pytest.mark.django_db


@pytest.fixture
def place() -> Place:
    return Place(60)


def judged(place: Place, version: RubricVersion | None) -> Run:
    """A run in which every answer has a value, by a version a person wrote or the shipped one."""
    if version is not None:
        activate(version, place.judge, by=None, reason="for the test")
    run = prepare_run(place.run.answer_set, profile_row(place.run.project, "graphrag"), judge=place.judge)
    rubric = run.judges.get(rubric_version__family="answer_quality").rubric_version
    held = set(GoldItem.objects.filter(split="hold_out").values_list("answer", flat=True))
    for number, answer in enumerate(answer_rows(place.run)):
        # right on everything anybody could see, two levels off on the hold-out
        value = worth(number) if answer.pk not in held else 1 + (worth(number) + 1) % 5
        score(run, answer, metric("correctness"), value, judge_version=place.judge, rubric_version=rubric)
    return run


def of(run: Run, judge: JudgeVersion) -> JudgeMeasure:
    with fixed_label_form(LabelForm.FULL):
        return next(measure for measure in compute_agreement(run).judges if measure.author == str(judge))


def test_agreement_leaves_them_out_and_says_how_many(place: Place) -> None:
    held = GoldItem.objects.filter(split="hold_out").count()
    found = of(judged(place, place.drafted("MINE")), place.judge)
    assert (found.agreement.n, found.built_on) == (held, 60 - held)
    assert found.to_dict()["built_on"] == 60 - held
    assert found.guess is not None
    assert found.guess.agreement.n == held
    assert all(part.n <= held for part in found.parts.values())


def test_a_shipped_prompt_was_worked_out_on_none(place: Place) -> None:
    found = of(judged(place, None), place.judge)
    assert (found.agreement.n, found.built_on) == (60, 0)
    assert "built_on" not in found.to_dict()


def test_labels_that_came_after_it_was_put_in_force_are_none_of_them(place: Place) -> None:
    version = place.drafted("MINE")
    run = judged(place, version)
    judges = run.judges.select_related("rubric_version")
    before = prompt_labels_by_rubric(run, judges)[version.pk]
    freeze(place.run, "later", by=None, seed=5)
    assert GoldItem.objects.filter(gold_set__name="later").exclude(split="hold_out").count() == 30
    assert prompt_labels_by_rubric(run, judges.all())[version.pk] == before


def test_what_is_kept_is_counted_anew_once_labels_are_frozen(place: Place) -> None:
    run = judged(place, place.drafted("MINE"))
    first = cached_agreement(run, resamples=0)
    assert first["judges"][str(place.judge)]["correctness"]["built_on"] == 30
    assert agreement_if_cached(run, resamples=0) == first
    freeze(place.run, "another", by=None, seed=5)
    assert agreement_if_cached(run, resamples=0) is None
