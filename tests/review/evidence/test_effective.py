"""Effective value: an override, otherwise the experts, otherwise the judge."""

from __future__ import annotations

import pytest
from pytest_django import DjangoAssertNumQueries

from evaluation.core.samples import Status
from evaluation.models import Answer, MetricDefinition, Run
from review.evidence.effective import NO_VALUE, EffectiveValue, ValueSource, effective_values
from review.evidence.scorers import REPEATS_TIED
from tests.factories import make_user
from tests.review.builders import (
    FAILED,
    NOT_APPLICABLE,
    answer_rows,
    answers_to,
    assignment_of,
    decide,
    imported_rating,
    metric,
    queue_for,
    rate,
    run_over,
    score,
    score_all,
    second_judge,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    """Three answers; the judge scores correctness 2, fails, and finds the third not applicable."""
    run = run_over(answers_to(["single_hop", "single_hop", "negative"]))
    score_all(run, {"correctness": [2, FAILED, NOT_APPLICABLE]})
    return run


@pytest.fixture
def correctness() -> MetricDefinition:
    return metric("correctness")


def value_of(run: Run, answer: Answer, row: MetricDefinition) -> EffectiveValue:
    return effective_values(run).values[row.pk][answer.pk]


def test_judge_value_counts_without_ratings_and_gaps_keep_their_reason(run: Run, correctness: MetricDefinition) -> None:
    first, second, third = answer_rows(run)
    assert value_of(run, first, correctness).source is ValueSource.JUDGE
    assert value_of(run, first, correctness).value == 2
    failed = value_of(run, second, correctness)
    assert (failed.source, failed.status, failed.reason) == (ValueSource.NONE, Status.FAILED, "timeout")
    left_out = value_of(run, third, correctness)
    assert (left_out.source, left_out.status, left_out.value) == (ValueSource.NONE, Status.NOT_APPLICABLE, None)


def test_unscored_answer_is_pending(run: Run) -> None:
    score_all(run, {"keyword_hit": [1, None, 0]})
    pending = value_of(run, answer_rows(run)[1], metric("keyword_hit"))
    assert (pending.source, pending.status, pending.reason) == (ValueSource.NONE, None, NO_VALUE)
    assert value_of(run, answer_rows(run)[0], metric("keyword_hit")).source is ValueSource.RULE


def test_mean_of_each_reviewers_last_rating_counts(run: Run, correctness: MetricDefinition) -> None:
    anna, bora = make_user(), make_user()
    queue = queue_for(run, [correctness], [anna, bora])
    answer = answer_rows(run)[0]
    first = assignment_of(queue, answer, anna, run)
    rate(first, correctness, 5)
    rate(first, correctness, 3, phase="final")
    rate(first, correctness, 4, phase="final")
    rate(assignment_of(queue, answer, bora, run), correctness, 5, blind=False)  # assisted, and counted here
    value = value_of(run, answer, correctness)
    # anna's latest final 4, bora's initial 5: (4 + 5) / 2
    assert (value.source, value.value, value.raters) == (ValueSource.REVIEW, 4.5, 2)
    assert value.judged is not None
    assert value.judged.value == 2


def test_expert_value_counts_where_the_judge_failed(run: Run, correctness: MetricDefinition) -> None:
    answer = answer_rows(run)[1]
    imported_rating(answer, correctness, "e1", 3)
    value = value_of(run, answer, correctness)
    assert (value.source, value.status, value.value) == (ValueSource.REVIEW, Status.SCORED, 3)


def test_final_cannot_judge_leaves_the_judge_value(run: Run, correctness: MetricDefinition) -> None:
    anna = make_user()
    assignment = assignment_of(queue_for(run, [correctness], [anna]), answer_rows(run)[0], anna, run)
    rate(assignment, correctness, 5)
    rate(assignment, correctness, None, phase="final")
    assert value_of(run, answer_rows(run)[0], correctness).source is ValueSource.JUDGE


def test_hidden_repeats_do_not_count(run: Run, correctness: MetricDefinition) -> None:
    anna = make_user()
    queue, answer = queue_for(run, [correctness], [anna]), answer_rows(run)[0]
    rate(assignment_of(queue, answer, anna, run), correctness, 4)
    rate(assignment_of(queue, answer, anna, run, occasion=2), correctness, 1)
    assert value_of(run, answer, correctness).value == 4


def test_override_outranks_ratings_and_a_revert_restores_the_previous_value(
    run: Run, correctness: MetricDefinition
) -> None:
    answer = answer_rows(run)[0]
    imported_rating(answer, correctness, "e1", 3)
    values = []
    for value, kind in [(4, "override"), (5, "adjudication"), (None, "revert"), (None, "revert"), (None, "revert")]:
        decide(answer, correctness, value, kind)
        effective = value_of(run, answer, correctness)
        values.append((effective.source, effective.value))
    assert values == [
        (ValueSource.OVERRIDE, 4),
        (ValueSource.OVERRIDE, 5),
        (ValueSource.OVERRIDE, 4),
        (ValueSource.REVIEW, 3),
        (ValueSource.REVIEW, 3),
    ]


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ([1, 1, 0], (ValueSource.REVIEW, 1.0, False)),
        ([0, 0, 1], (ValueSource.REVIEW, 0.0, False)),
        ([1, 0], (ValueSource.RULE, 1.0, True)),  # a tie shows the machine's value and asks for adjudication
    ],
)
def test_yes_no_is_decided_by_majority(run: Run, votes: list[int], expected: tuple[ValueSource, float, bool]) -> None:
    score_all(run, {"keyword_hit": [1, 1, 1]})
    answer, row = answer_rows(run)[0], metric("keyword_hit")
    for number, vote in enumerate(votes):
        imported_rating(answer, row, f"e{number}", vote)
    value = value_of(run, answer, row)
    assert (value.source, value.value, value.unresolved) == expected


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        (["a", "b", "a"], (ValueSource.REVIEW, "a", False)),
        (["a", "b"], (ValueSource.NONE, None, True)),
    ],
)
def test_classes_are_decided_by_majority(
    run: Run, votes: list[str], expected: tuple[ValueSource, str | None, bool]
) -> None:
    row, answer = metric("kind_of_answer", "class a|b|c"), answer_rows(run)[0]
    for number, vote in enumerate(votes):
        imported_rating(answer, row, f"e{number}", vote)
    value = value_of(run, answer, row)
    assert (value.source, value.label, value.unresolved) == expected


def test_repeats_are_averaged_and_the_highest_round_counts(run: Run) -> None:
    row, answer = metric("faithfulness"), answer_rows(run)[0]
    judge = run.judges.get()
    judge_fields = {"judge_version_id": judge.judge_version_id, "rubric_version_id": judge.rubric_version_id}
    score(run, answer, row, 5, repeat=1, **judge_fields)
    score(run, answer, row, FAILED, repeat=2, **judge_fields)
    score(run, answer, row, 2, repeat=2, round=1, **judge_fields)
    score(run, answer, row, FAILED, repeat=3, **judge_fields)
    value = value_of(run, answer, row)
    # repeats 5 and (round 1) 2 are scored, the third failed: (5 + 2) / 2
    assert value.value == 3.5
    assert value.judged is not None
    assert value.judged.repeats == 3


def test_tied_class_repeats_give_no_label(run: Run) -> None:
    row, answer = metric("kind_of_answer", "class a|b|c"), answer_rows(run)[0]
    score(run, answer, row, "a", repeat=1)
    score(run, answer, row, "b", repeat=2)
    value = value_of(run, answer, row)
    assert (value.status, value.reason) == (Status.FAILED, REPEATS_TIED)


def test_comparison_and_imported_judges_never_count(run: Run, correctness: MetricDefinition) -> None:
    second_judge(run, {"correctness": [5, 5, 5]})
    score(run, answer_rows(run)[1], correctness, 5, author="gpt-4")
    effective = effective_values(run)
    assert [value.value for value in effective.values[correctness.pk].values()] == [2, None, None]


def test_subset_of_answers_has_the_values_of_the_whole_run(run: Run, correctness: MetricDefinition) -> None:
    first, second, _ = answer_rows(run)
    imported_rating(second, correctness, "e1", 3)
    decide(first, correctness, 1)
    run_values, subset_values = effective_values(run).values, effective_values(run, [first.pk]).values
    assert subset_values == {metric: {first.pk: values[first.pk]} for metric, values in run_values.items()}


def test_query_count_does_not_grow_with_the_run(
    run: Run, correctness: MetricDefinition, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for answer in answer_rows(run):
        imported_rating(answer, correctness, "e1", 3)
        imported_rating(answer, correctness, "e2", 4)
        decide(answer, correctness, 1)
    with django_assert_num_queries(9):
        effective_values(run)
