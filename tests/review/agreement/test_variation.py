"""Variance components of a run: reviewer overlap, hidden repeats and judge repeats, in every interface."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils.translation import override

from evaluation.core.roles import Role
from evaluation.models import Run, User
from review.agreement.pages import DESIGN_GAPS, SPENDING_ADVICE, VARIANCE_SOURCES, variation_cards
from review.agreement.variation import VariationMeasure, variation_measures
from review.evidence.effective import load_evidence
from review.statistics.agreement.variance import DesignGap, VarianceSource
from review.statistics.precision import SpendOption
from tests.factories import make_user
from tests.review.builders import (
    answer_rows,
    answers_to,
    assignment_of,
    metric,
    queue_for,
    rate,
    run_over,
    score,
    score_all,
)
from tests.review.clients import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def reviewers() -> tuple[User, User]:
    return make_user(), make_user()


@pytest.fixture
def run(reviewers: tuple[User, User]) -> Run:
    """Three answers judged 2, 4 and 5; two reviewers give 1 2 / 3 4 / 5 5, the judge scores each once."""
    run = run_over(answers_to(["a"] * 3))
    score_all(run, {"correctness": [2, 4, 5]})
    row = metric("correctness")
    queue = queue_for(run, [row], reviewers)
    for answer, values in zip(answer_rows(run), [(1, 2), (3, 4), (5, 5)], strict=True):
        for person, value in zip(reviewers, values, strict=True):
            rate(assignment_of(queue, answer, person, run), row, value)
    return run


def variation_of(run: Run) -> VariationMeasure:
    (measure,) = variation_measures(load_evidence(run))
    return measure


def test_overlap_separates_reviewer_and_answer_variance(run: Run) -> None:
    measure = variation_of(run)
    # rows 1 2 / 3 4 / 5 5: means 1.5, 3.5, 5 and 3, 3.667, all 3.333. Answers: 2 x (3.361 + .028 + 2.778) = 12.333 / 2;
    # reviewers: 3 x 2 x .1111 = .6667 / 1; all about the mean 80 - 66.667 = 13.333, so .3333 / 2 are left.
    # (6.1667 - .1667) / 2 = 3; (.6667 - .1667) / 3 = .1667; .1667
    variances = measure.split.variances
    assert variances[VarianceSource.ANSWERS] == pytest.approx(3.0)
    assert variances[VarianceSource.REVIEWERS] == pytest.approx(1 / 6)
    assert variances[VarianceSource.INTERACTION] == pytest.approx(1 / 6)
    assert measure.split.missing == {
        VarianceSource.RESIDUAL: DesignGap.NEEDS_HIDDEN_REPEATS,
        VarianceSource.NOISE: DesignGap.NEEDS_JUDGE_REPEATS,
    }
    assert measure.unmeasured == (SpendOption.REPEATS,)
    assert measure.advice.first is SpendOption.QUESTIONS
    assert sum(measure.shares.values()) == pytest.approx(1.0)


def test_json_report_equals_the_agreement_command(run: Run) -> None:
    response, out = Caller(make_user(Role.VIEWER, run.project)).get(f"runs/{run.pk}/report/"), StringIO()
    report = b"".join(response.streaming_content)
    variance = json.loads(report)["agreement"]["variance"]["correctness"]
    # the variances of the test above
    assert variance["variance"]["answers"] == pytest.approx(3.0)
    assert variance["variance"]["reviewers"] == pytest.approx(1 / 6)
    assert variance["next"]["spend_on"] == "questions"
    call_command("agreement", str(run.pk), "--format", "json", stdout=out)
    printed = json.loads(out.getvalue())["variance"]["correctness"]
    assert {key: printed[key] for key in ("missing", "design")} == {key: variance[key] for key in ("missing", "design")}
    out = StringIO()
    call_command("results", str(run.pk), "--format", "json", stdout=out)
    assert json.loads(out.getvalue())["agreement"]["variance"]["correctness"] == variance


def test_judge_repeats_measure_judge_noise(run: Run) -> None:
    judge = run.judges.get()
    for answer, value in zip(answer_rows(run), [4, 4, 3], strict=True):
        score(
            run,
            answer,
            metric("correctness"),
            value,
            repeat=2,
            judge_version_id=judge.judge_version_id,
            rubric_version_id=judge.rubric_version_id,
        )
    measure = variation_of(run)
    # 2 4, 4 4, 5 3: sums of squares 2, 0, 2 with a degree of freedom each
    assert measure.split.variances[VarianceSource.NOISE] == pytest.approx(4 / 3)
    assert measure.split.design.repeats == 2.0
    assert measure.unmeasured == ()


def test_hidden_repeats_measure_residual_variance_and_count_once(run: Run, reviewers: tuple[User, User]) -> None:
    row = metric("correctness")
    queue = queue_for(run, [row], reviewers)
    for answer, value in zip(answer_rows(run), [3, 3, 5], strict=True):
        repeat = assignment_of(queue, answer, reviewers[0], run, occasion=2)
        rate(repeat, row, 5)
        rate(repeat, row, value)  # taken back before the reveal: the last word of the occasion counts
    measure = variation_of(run)
    # within the cells of the first reviewer: 1 3, 3 3, 5 5: 2 / 3
    assert measure.split.variances[VarianceSource.RESIDUAL] == pytest.approx(2 / 3)
    assert VarianceSource.RESIDUAL not in measure.split.missing
    assert measure.split.design.ratings == 3.0


def test_first_rating_on_a_later_occasion_is_not_a_repeat(reviewers: tuple[User, User]) -> None:
    run = run_over(answers_to(["a"] * 2))
    score_all(run, {"correctness": [2, 4]})
    row = metric("correctness")
    queue = queue_for(run, [row], reviewers[:1])
    for answer in answer_rows(run):
        rate(assignment_of(queue, answer, reviewers[0], run, occasion=2), row, 3)
    assert variation_of(run).split.missing[VarianceSource.RESIDUAL] is DesignGap.NEEDS_HIDDEN_REPEATS


def test_command_rest_and_page_show_the_variance(run: Run) -> None:
    out = StringIO()
    call_command("agreement", str(run.pk), "--format", "json", "--resamples", "0", stdout=out)
    variance: dict[str, Any] = json.loads(out.getvalue())["variance"]["correctness"]
    assert variance["variance"]["answers"] == pytest.approx(3.0)
    assert variance["missing"] == {"rest": "needs_hidden_repeats", "noise": "needs_judge_repeats"}
    assert variance["next"]["spend_on"] == "questions"
    viewer = make_user(Role.VIEWER, run.project)
    response = Caller(viewer).get(f"runs/{run.pk}/agreement/?resamples=0").json()
    assert response["variance"]["correctness"] == variance
    client = Client()
    client.force_login(viewer)
    page = client.get(reverse("run-agreement", args=[run.pk])).content.decode()
    assert "Sources of uncertainty and best next step" in page
    assert "Best next step: more questions." in page
    assert "unknown: have the judge score each answer more than once" in page
    text = StringIO()
    call_command("agreement", str(run.pk), "--resamples", "0", stdout=text)
    assert "Best next step: more questions." in text.getvalue()


def test_constant_values_give_no_spending_advice() -> None:
    run = run_over(answers_to(["a"] * 2))
    score_all(run, {"correctness": [3, 3]})
    row, first_reviewer = metric("correctness"), make_user()
    queue = queue_for(run, [row], [first_reviewer, second_reviewer := make_user()])
    for answer in answer_rows(run):
        for reviewer in (first_reviewer, second_reviewer):
            rate(assignment_of(queue, answer, reviewer, run), row, 3)
    measure = variation_of(run)
    assert measure.advice.first is None
    assert measure.shares == {}
    with override("en"):
        (card,) = variation_cards({"correctness": measure.to_dict()})
    assert card.advice == ""


def test_every_variance_source_gap_and_option_has_a_label() -> None:
    assert (set(VARIANCE_SOURCES), set(DESIGN_GAPS), set(SPENDING_ADVICE)) == (
        set(VarianceSource),
        set(DesignGap),
        set(SpendOption),
    )
