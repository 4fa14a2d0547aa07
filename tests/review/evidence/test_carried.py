"""Ratings carried to equal answers: conditions, origin and what prevents it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pytest_django import DjangoAssertNumQueries

from evaluation.core.samples import QuestionSpec
from evaluation.models import Answer, AnswerSet, Context, MetricDefinition, QuestionSet, RubricVersion, Run
from review.evidence.carried import carried_ratings
from review.evidence.effective import ValueSource, effective_values, load_evidence
from review.models import Assignment, EventRuling, ItemEvent
from tests.examples import max_examples
from tests.factories import make_answer, make_answer_set, make_judge, make_project, make_question_set, make_user, unique
from tests.review.builders import (
    answer_rows,
    assignment_of,
    decide,
    imported_rating,
    metric,
    queue_for,
    rate,
    run_over,
    score_all,
    set_assignment_state,
)

pytestmark = pytest.mark.django_db
CITIES = ["Seoul", "Busan", "Daegu"]


def make_questions() -> QuestionSet:
    return make_question_set(
        make_project(), [QuestionSpec(id=f"q{n}", category="single_hop", text=f"Question {n}?") for n in (1, 2, 3)]
    )


def judged_run(answers: AnswerSet, *, is_judged: bool = True) -> Run:
    """Create a run whose judge scores correctness 2 everywhere."""
    run = run_over(answers, judged=is_judged, judge=make_judge(answers.project, unique("judge")) if is_judged else None)
    score_all(run, {"correctness": [2, 2, 2]})
    return run


@pytest.fixture
def questions() -> QuestionSet:
    return make_questions()


@pytest.fixture
def correctness() -> MetricDefinition:
    return metric("correctness")


@pytest.fixture
def earlier_run(questions: QuestionSet) -> Run:
    return judged_run(make_answer_set(questions, "rag", CITIES))


def create_release(questions: QuestionSet, texts: list[str] | None = None, **fields: Any) -> Run:
    """Create a run over a later answer set, equal unless other texts are given."""
    return judged_run(make_answer_set(questions, texts=texts or CITIES), **fields)


def rate_answer(run: Run, position: int, row: MetricDefinition, value: float | None, **fields: Any) -> Assignment:
    """Let a new reviewer rate the answer at this position."""
    person = make_user()
    assignment = assignment_of(queue_for(run, [row], [person]), answer_rows(run)[position], person, run)
    rate(assignment, row, value, **fields)
    return assignment


def carried_positions(run: Run) -> set[int]:
    """Positions of the answers whose value is carried from an equal answer."""
    places = {answer.pk: position for position, answer in enumerate(answer_rows(run))}
    values_by_metric = effective_values(run).human_values.values()
    return {
        places[answer]
        for values_by_answer in values_by_metric
        for answer, value in values_by_answer.items()
        if value.carried
    }


def test_expert_value_of_an_equal_answer_is_carried_with_its_origin(
    earlier_run: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    """Anna gives 5 and Bora 4, so 4.5 counts in both runs; the third answer is worded differently."""
    anna, bora = make_user(), make_user()
    queue, (first, _, third) = queue_for(earlier_run, [correctness], [anna, bora]), answer_rows(earlier_run)
    rate(assignment_of(queue, first, anna, earlier_run), correctness, 5)
    last = rate(assignment_of(queue, first, bora, earlier_run), correctness, 4)
    rate(assignment_of(queue, third, anna, earlier_run), correctness, 1)
    run = create_release(questions, ["Seoul", "Busan", "Daegu, perhaps"])

    values = effective_values(run).values
    new_answers = answer_rows(run)
    value = values[correctness.pk][new_answers[0].pk]
    assert (value.source, value.value, value.raters, value.judged.value if value.judged else None) == (
        ValueSource.REVIEW,
        4.5,
        2,
        2,
    )
    origin = value.carried
    assert origin is not None
    assert (origin.answer_id, origin.answer_set_id, origin.run_id) == (
        first.pk,
        earlier_run.answer_set_id,
        earlier_run.pk,
    )
    assert (origin.system, origin.at) == ("rag v1", last.created_at)
    assert [values[correctness.pk][new_answer.pk].source for new_answer in new_answers[1:]] == [
        ValueSource.JUDGE,
        ValueSource.JUDGE,
    ]
    assert not load_evidence(run).ratings  # agreement and calibration read these


def test_two_failed_answers_are_not_equal(questions: QuestionSet, correctness: MetricDefinition) -> None:
    sets = [make_answer_set(questions, texts=CITIES) for _ in range(2)]
    question = questions.questions.order_by("position").first()
    assert question is not None
    failed, _ = (
        make_answer(answer_set, question, "", sample=2, status="failed", reason="timeout") for answer_set in sets
    )
    imported_rating(failed, correctness, "anna", 1)
    assert not carried_ratings(run_over(sets[1], judged=False))


def test_ratings_are_carried_forward_only(
    earlier_run: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    run = create_release(questions)
    rate_answer(run, 0, correctness, 5)
    assert carried_positions(earlier_run) == set() == carried_positions(run)


def test_own_rating_replaces_a_carried_one(
    earlier_run: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    rate_answer(earlier_run, 0, correctness, 5)
    run = create_release(questions)
    assert carried_positions(run) == {0}
    rate_answer(run, 0, correctness, None)  # who cannot judge takes nothing away
    assert carried_positions(run) == {0}
    rate_answer(run, 0, correctness, 3)
    value = effective_values(run).values[correctness.pk][answer_rows(run)[0].pk]
    assert (value.value, value.raters, value.carried) == (3, 1, None)


def test_override_outranks_a_carried_value(
    earlier_run: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    rate_answer(earlier_run, 0, correctness, 5)
    run = create_release(questions)
    decide(answer_rows(run)[0], correctness, 1)
    value = effective_values(run).values[correctness.pk][answer_rows(run)[0].pk]
    assert (value.source, value.value, value.carried) == (ValueSource.OVERRIDE, 1, None)


def test_newest_rated_equal_answer_is_carried(
    earlier_run: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    """v1 is rated 5, v2 later 3, v3 not at all: v4 gets the 3 of v2."""
    rate_answer(earlier_run, 0, correctness, 5)
    second, third = create_release(questions), create_release(questions)
    rate_answer(second, 0, correctness, 3)
    values = [effective_values(run).values[correctness.pk][answer_rows(run)[0].pk] for run in (second, third)]
    assert [value.value for value in values] == [3, 3]
    last = effective_values(create_release(questions)).values[correctness.pk]
    (origin,) = [run.carried for run in last.values() if run.carried]
    assert origin.answer_set_id == second.answer_set_id


def _add_passage(answers: AnswerSet, **fields: Any) -> None:
    """Add a second passage to the first answer."""
    first = answers.answers.order_by("question__position").first()
    Context.objects.create(**{"answer": first, "position": 1, "chunk_id": "c2", "text": "more"} | fields)


def _copy_answers(questions: QuestionSet, passage: dict[str, Any], **fields: Any) -> AnswerSet:
    """Create a set whose first answer is "Seoul" with one passage that can be varied."""
    answer_set = make_answer_set(questions, texts=["Jeju", *CITIES[1:]])
    question = questions.questions.order_by("position").first()
    assert question is not None
    text = "Seoul"
    text_hash = Answer.objects.filter(text=text).values_list("text_hash", flat=True)[0]
    answer = Answer(answer_set=answer_set, question=question, sample=2, text=text, text_hash=text_hash, retrieves=True)
    answer.status = "ok"
    for name, value in fields.items():
        setattr(answer, name, value)
    answer.save()
    passage_fields = {"position": 0, "chunk_id": "c1", "text": text, "source": "atlas"}
    Context.objects.create(answer=answer, **(passage_fields | passage))
    return answer_set


@pytest.mark.parametrize(
    ("passage", "fields", "is_carried"),
    [
        ({}, {}, True),
        ({"score": 0.1, "metadata": {"page": 3}}, {"latency_seconds": 9.0, "confidence": 0.2}, True),  # nobody reads it
        ({"text": "Seoul."}, {}, False),
        ({"chunk_id": "c2"}, {}, False),
        ({"source": "almanac"}, {}, False),
        ({"position": 1}, {}, False),
        ({}, {"retrieves": False}, False),
        ({}, {"retrieved_ids": ["c1"]}, False),
        ({}, {"text": "Seoul!", "text_hash": "0" * 64}, False),
        ({}, {"status": "failed", "reason": "timeout"}, False),
    ],
)
def test_any_difference_in_content_prevents_carrying(
    earlier_run: Run,
    questions: QuestionSet,
    correctness: MetricDefinition,
    passage: dict[str, Any],
    fields: dict[str, Any],
    is_carried: bool,
) -> None:
    rate_answer(earlier_run, 0, correctness, 5)
    run = run_over(_copy_answers(questions, passage, **fields), judged=False)
    assert bool(carried_ratings(run)) is is_carried


passages = st.lists(
    st.tuples(st.sampled_from(["c1", "c2", ""]), st.sampled_from(["atlas", ""]), st.sampled_from(["Han", "river", ""])),
    max_size=3,
)


@settings(max_examples=max_examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(old_passages=passages, new_passages=passages, is_same=st.booleans())
def test_ratings_carry_exactly_when_passages_are_equal(
    earlier_run: Run,
    correctness: MetricDefinition,
    old_passages: list[tuple[str, str, str]],
    new_passages: list[tuple[str, str, str]],
    is_same: bool,
) -> None:
    """Two answers to a new question for each example, with passages given as id, source and text."""
    new_passages = old_passages if is_same else new_passages
    questions = make_question_set(earlier_run.project, 1)
    old, new = make_answer_set(questions, texts=["Seoul"]), make_answer_set(questions, texts=["Seoul"])
    for answers, passage_rows in ((old, old_passages), (new, new_passages)):
        answer = answers.answers.get()
        Context.objects.bulk_create(
            Context(answer=answer, position=position, chunk_id=chunk, source=source, text=text)
            for position, (chunk, source, text) in enumerate(passage_rows, start=1)
        )
    imported_rating(old.answers.get(), correctness, "anna", 5)
    assert bool(carried_ratings(run_over(new, judged=False))) is (old_passages == new_passages)


def test_additional_passage_on_either_side_prevents_carrying(
    earlier_run: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    rate_answer(earlier_run, 0, correctness, 5)
    rate_answer(earlier_run, 1, correctness, 5)
    run = create_release(questions)
    _add_passage(run.answer_set)
    assert carried_positions(run) == {1}
    _add_passage(earlier_run.answer_set)
    assert carried_positions(run) == {0, 1}


def test_question_in_another_set_version_gets_no_carried_rating(
    earlier_run: Run, correctness: MetricDefinition
) -> None:
    """Ratings are not carried to an equal text in a later set version or another project."""
    rate_answer(earlier_run, 0, correctness, 5)
    assert carried_positions(create_release(make_questions())) == set()


def test_another_rubric_version_prevents_carrying(
    earlier_run: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    """A rating names the rubric its rater saw; an imported one names none."""
    used_rubric = earlier_run.judges.get().rubric_version
    spec = {"family": used_rubric.family, "language": used_rubric.language, "spec": used_rubric.spec}
    other_rubric = RubricVersion.objects.create(project=earlier_run.project, version=99, content_hash="9" * 64, **spec)
    rate_answer(earlier_run, 0, correctness, 5, rubric_version=used_rubric)
    rate_answer(earlier_run, 1, correctness, 5, rubric_version=other_rubric)
    imported_rating(answer_rows(earlier_run)[2], correctness, "anna", 5)
    assert carried_positions(create_release(questions)) == {0, 2}
    assert carried_positions(create_release(questions, is_judged=False)) == {
        0,
        1,
        2,
    }  # no judge, no rubric that could differ


def test_another_metric_version_prevents_carrying(
    earlier_run: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    older_metric = MetricDefinition.objects.create(
        name="correctness", version=0, kind="judge", scale="1..5", content_hash="8" * 64
    )
    rate_answer(earlier_run, 0, older_metric, 5)
    run = create_release(questions)
    assert carried_positions(run) == set()
    assert set(load_evidence(run).names.values()) == {"correctness"}  # the other version is nowhere named
    assert carried_positions(run_over(make_answer_set(questions, texts=CITIES), judged=False)) == {
        0
    }  # where it is not computed it is itself


def _retract(assignment: Assignment) -> None:
    set_assignment_state(assignment, Assignment.State.LEASED)


def _mark_as_example(assignment: Assignment) -> None:
    assignment.queue.example = True
    assignment.queue.save()


def _override(assignment: Assignment) -> None:
    decide(assignment.item.answer, metric("correctness"), 1)


def _uphold_flag(assignment: Assignment) -> None:
    event = ItemEvent.objects.create(assignment=assignment, verb="flag", kind="bad_question")
    EventRuling.objects.create(event=event, seq=1, upheld=True, reason="so", by=assignment.reviewer)


@pytest.mark.parametrize("spoil", [_retract, _mark_as_example, _override, _uphold_flag])
def test_invalid_ratings_are_not_carried(
    earlier_run: Run, questions: QuestionSet, correctness: MetricDefinition, spoil: Callable[[Assignment], None]
) -> None:
    """Retracted, example and overridden ratings, and ratings of a withdrawn answer."""
    assignment = rate_answer(earlier_run, 0, correctness, 5)
    run = create_release(questions)
    assert carried_positions(run) == {0}
    spoil(assignment)
    assert carried_positions(run) == set()


def test_later_rating_supersedes_and_a_tie_is_not_carried(
    earlier_run: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    assignment = rate_answer(earlier_run, 0, correctness, 5)
    rate(assignment, correctness, 4)
    run = create_release(questions)
    (value,) = [
        effective.value for effective in effective_values(run).values[correctness.pk].values() if effective.carried
    ]
    assert value == 4
    rate(assignment, correctness, 3, phase="final")
    (value,) = [
        effective.value for effective in effective_values(run).values[correctness.pk].values() if effective.carried
    ]
    assert value == 3

    refusal = metric("refusal", "bool")
    for verdict in (1, 0):
        rate_answer(earlier_run, 1, refusal, verdict)
    values_by_metric = effective_values(run).human_values.items()
    assert {pk for pk, by_answer in values_by_metric if any(effective.carried for effective in by_answer.values())} == {
        correctness.pk
    }


def test_hidden_repeat_is_not_carried(earlier_run: Run, questions: QuestionSet, correctness: MetricDefinition) -> None:
    person = make_user()
    queue = queue_for(earlier_run, [correctness], [person])
    rate(assignment_of(queue, answer_rows(earlier_run)[0], person, earlier_run, occasion=2), correctness, 5)
    assert carried_positions(create_release(questions)) == set()


def test_carried_age_is_the_age_of_the_rating(
    earlier_run: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    rated_at = timezone.now() - timedelta(days=90)
    imported_rating(answer_rows(earlier_run)[0], correctness, "anna", 5, created_at=rated_at)
    (carried,) = carried_ratings(create_release(questions)).values()
    assert carried.origin.at == rated_at


def test_three_queries_for_any_number_of_carried_ratings(
    earlier_run: Run,
    questions: QuestionSet,
    correctness: MetricDefinition,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    run = create_release(questions)
    first = answer_rows(run)[0].pk
    with django_assert_num_queries(1):
        assert not carried_ratings(run)
    for position in range(3):
        rate_answer(earlier_run, position, correctness, 5)
    with django_assert_num_queries(3):
        assert len(carried_ratings(run)) == 3
    with django_assert_num_queries(3):
        assert len(carried_ratings(run, [first])) == 1
