"""Why the values of a run vary: overlap, hidden repeats and repeats of the judge, in all entrances."""

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
def people() -> tuple[User, User]:
    return make_user(), make_user()


@pytest.fixture
def run(people: tuple[User, User]) -> Run:
    """Three answers judged 2, 4 and 5; two reviewers say 1 2 / 3 4 / 5 5, the judge scores each once."""
    made = run_over(answers_to(["a"] * 3))
    score_all(made, {"correctness": [2, 4, 5]})
    row = metric("correctness")
    queue = queue_for(made, [row], people)
    for answer, values in zip(answer_rows(made), [(1, 2), (3, 4), (5, 5)], strict=True):
        for person, value in zip(people, values, strict=True):
            rate(assignment_of(queue, answer, person, made), row, value)
    return made


def of(run: Run) -> VariationMeasure:
    (found,) = variation_measures(load_evidence(run))
    return found


def test_overlap_tells_reviewers_from_answers(run: Run) -> None:
    found = of(run)
    # rows 1 2 / 3 4 / 5 5: means 1.5, 3.5, 5 and 3, 3.667, all 3.333. Answers: 2 x (3.361 + .028 + 2.778) = 12.333 / 2;
    # reviewers: 3 x 2 x .1111 = .6667 / 1; all about the mean 80 - 66.667 = 13.333, so .3333 / 2 are left.
    # (6.1667 - .1667) / 2 = 3; (.6667 - .1667) / 3 = .1667; .1667
    variances = found.split.variances
    assert variances[VarianceSource.ANSWERS] == pytest.approx(3.0)
    assert variances[VarianceSource.REVIEWERS] == pytest.approx(1 / 6)
    assert variances[VarianceSource.INTERACTION] == pytest.approx(1 / 6)
    assert found.split.missing == {
        VarianceSource.RESIDUAL: DesignGap.NEEDS_HIDDEN_REPEATS,
        VarianceSource.NOISE: DesignGap.NEEDS_JUDGE_REPEATS,
    }
    assert found.unmeasured == (SpendOption.REPEATS,)
    assert found.advice.first is SpendOption.QUESTIONS
    assert sum(found.shares.values()) == pytest.approx(1.0)


def test_the_json_report_tells_it_as_the_agreement_command_does(run: Run) -> None:
    response, asked = Caller(make_user(Role.VIEWER, run.project)).get(f"runs/{run.pk}/report/"), StringIO()
    report = b"".join(response.streaming_content)
    found = json.loads(report)["agreement"]["variance"]["correctness"]
    # the variances of the test above
    assert found["variance"]["answers"] == pytest.approx(3.0)
    assert found["variance"]["reviewers"] == pytest.approx(1 / 6)
    assert found["next"]["spend_on"] == "questions"
    call_command("agreement", str(run.pk), "--format", "json", stdout=asked)
    said = json.loads(asked.getvalue())["variance"]["correctness"]
    assert {key: said[key] for key in ("missing", "design")} == {key: found[key] for key in ("missing", "design")}
    asked = StringIO()
    call_command("results", str(run.pk), "--format", "json", stdout=asked)
    assert json.loads(asked.getvalue())["agreement"]["variance"]["correctness"] == found


def test_repeats_of_the_judge_tell_its_noise(run: Run) -> None:
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
    found = of(run)
    # 2 4, 4 4, 5 3: sums of squares 2, 0, 2 with a degree of freedom each
    assert found.split.variances[VarianceSource.NOISE] == pytest.approx(4 / 3)
    assert found.split.design.repeats == 2.0
    assert found.unmeasured == ()


def test_hidden_repeats_tell_the_rest_and_count_once(run: Run, people: tuple[User, User]) -> None:
    row = metric("correctness")
    queue = queue_for(run, [row], people)
    for answer, value in zip(answer_rows(run), [3, 3, 5], strict=True):
        again = assignment_of(queue, answer, people[0], run, occasion=2)
        rate(again, row, 5)
        rate(again, row, value)  # taken back before the reveal: the last word of the occasion counts
    found = of(run)
    # within the cells of the first reviewer: 1 3, 3 3, 5 5: 2 / 3
    assert found.split.variances[VarianceSource.RESIDUAL] == pytest.approx(2 / 3)
    assert VarianceSource.RESIDUAL not in found.split.missing
    assert found.split.design.ratings == 3.0


def test_a_first_word_on_a_later_occasion_is_no_repeat(people: tuple[User, User]) -> None:
    made = run_over(answers_to(["a"] * 2))
    score_all(made, {"correctness": [2, 4]})
    row = metric("correctness")
    queue = queue_for(made, [row], people[:1])
    for answer in answer_rows(made):
        rate(assignment_of(queue, answer, people[0], made, occasion=2), row, 3)
    assert of(made).split.missing[VarianceSource.RESIDUAL] is DesignGap.NEEDS_HIDDEN_REPEATS


def test_the_command_rest_and_the_page_tell_it(run: Run) -> None:
    out = StringIO()
    call_command("agreement", str(run.pk), "--format", "json", "--resamples", "0", stdout=out)
    told: dict[str, Any] = json.loads(out.getvalue())["variance"]["correctness"]
    assert told["variance"]["answers"] == pytest.approx(3.0)
    assert told["missing"] == {"rest": "needs_hidden_repeats", "noise": "needs_judge_repeats"}
    assert told["next"]["spend_on"] == "questions"
    viewer = make_user(Role.VIEWER, run.project)
    rest = Caller(viewer).get(f"runs/{run.pk}/agreement/?resamples=0").json()
    assert rest["variance"]["correctness"] == told
    client = Client()
    client.force_login(viewer)
    page = client.get(reverse("run-agreement", args=[run.pk])).content.decode()
    assert "Why values vary, and what to spend next" in page
    assert "Spend next on more questions:" in page
    assert "not known: have the judge score every answer more than once" in page
    text = StringIO()
    call_command("agreement", str(run.pk), "--resamples", "0", stdout=text)
    assert "Spend next on more questions:" in text.getvalue()


def test_where_nothing_varies_nothing_is_advised() -> None:
    made = run_over(answers_to(["a"] * 2))
    score_all(made, {"correctness": [3, 3]})
    row, person = metric("correctness"), make_user()
    queue = queue_for(made, [row], [person, other := make_user()])
    for answer in answer_rows(made):
        for one in (person, other):
            rate(assignment_of(queue, answer, one, made), row, 3)
    found = of(made)
    assert found.advice.first is None
    assert found.shares == {}
    with override("en"):
        (card,) = variation_cards({"correctness": found.to_dict()})
    assert card.advice == ""


def test_every_source_need_and_advice_has_words() -> None:
    assert (set(VARIANCE_SOURCES), set(DESIGN_GAPS), set(SPENDING_ADVICE)) == (
        set(VarianceSource),
        set(DesignGap),
        set(SpendOption),
    )
