"""Ratings of equal answers: where they hold, whose they are, and what stops them."""

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
from tests.examples import examples
from tests.factories import make_answer, make_answer_set, make_judge, make_project, make_question_set, make_user, unique
from tests.review.builders import (
    answer_rows,
    assignment_of,
    decide,
    imported_rating,
    metric,
    moved,
    queue_for,
    rate,
    run_over,
    score_all,
)

pytestmark = pytest.mark.django_db
CITIES = ["Seoul", "Busan", "Daegu"]


def asked() -> QuestionSet:
    return make_question_set(
        make_project(), [QuestionSpec(id=f"q{n}", category="single_hop", text=f"Question {n}?") for n in (1, 2, 3)]
    )


def judged(answers: AnswerSet, *, judged: bool = True) -> Run:
    """A run whose judge gave correctness 2 everywhere."""
    made = run_over(answers, judged=judged, judge=make_judge(answers.project, unique("judge")) if judged else None)
    score_all(made, {"correctness": [2, 2, 2]})
    return made


@pytest.fixture
def questions() -> QuestionSet:
    return asked()


@pytest.fixture
def correctness() -> MetricDefinition:
    return metric("correctness")


@pytest.fixture
def earlier(questions: QuestionSet) -> Run:
    return judged(make_answer_set(questions, "rag", CITIES))


def release(questions: QuestionSet, texts: list[str] | None = None, **fields: Any) -> Run:
    """A later answer set, equal unless other texts are given, with its run."""
    return judged(make_answer_set(questions, texts=texts or CITIES), **fields)


def rated(run: Run, at: int, row: MetricDefinition, value: float | None, **fields: Any) -> Assignment:
    """An answer of the run rated by somebody new."""
    person = make_user()
    held = assignment_of(queue_for(run, [row], [person]), answer_rows(run)[at], person, run)
    rate(held, row, value, **fields)
    return held


def holding(run: Run) -> set[int]:
    """The places of the answers whose value comes from an equal one."""
    places = {answer.pk: at for at, answer in enumerate(answer_rows(run))}
    heard = effective_values(run).human_values.values()
    return {places[answer] for of_answers in heard for answer, one in of_answers.items() if one.carried}


def test_the_experts_value_of_an_equal_answer_counts_and_says_whence(
    earlier: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    """Anna gave 5 and Bora 4, so that 4.5 counts there and here; the third answer is worded otherwise."""
    anna, bora = make_user(), make_user()
    queue, (first, _, third) = queue_for(earlier, [correctness], [anna, bora]), answer_rows(earlier)
    rate(assignment_of(queue, first, anna, earlier), correctness, 5)
    last = rate(assignment_of(queue, first, bora, earlier), correctness, 4)
    rate(assignment_of(queue, third, anna, earlier), correctness, 1)
    run = release(questions, ["Seoul", "Busan", "Daegu, perhaps"])

    found = effective_values(run).values
    ours = answer_rows(run)
    value = found[correctness.pk][ours[0].pk]
    assert (value.source, value.value, value.raters, value.judged.value if value.judged else None) == (
        ValueSource.REVIEW,
        4.5,
        2,
        2,
    )
    origin = value.carried
    assert origin is not None
    assert (origin.answer_id, origin.answer_set_id, origin.run_id) == (first.pk, earlier.answer_set_id, earlier.pk)
    assert (origin.system, origin.at) == ("rag v1", last.created_at)
    assert [found[correctness.pk][one.pk].source for one in ours[1:]] == [ValueSource.JUDGE, ValueSource.JUDGE]
    assert not load_evidence(run).ratings  # agreement and calibration read these


def test_two_questions_that_got_no_answer_are_not_equal_answers(
    questions: QuestionSet, correctness: MetricDefinition
) -> None:
    sets = [make_answer_set(questions, texts=CITIES) for _ in range(2)]
    question = questions.questions.order_by("position").first()
    assert question is not None
    failed, _ = (make_answer(one, question, "", sample=2, status="failed", reason="timeout") for one in sets)
    imported_rating(failed, correctness, "anna", 1)
    assert not carried_ratings(run_over(sets[1], judged=False))


def test_ratings_are_carried_forward_alone(earlier: Run, questions: QuestionSet, correctness: MetricDefinition) -> None:
    run = release(questions)
    rated(run, 0, correctness, 5)
    assert holding(earlier) == set() == holding(run)


def test_the_answers_own_rating_takes_the_place_of_an_equal_ones(
    earlier: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    rated(earlier, 0, correctness, 5)
    run = release(questions)
    assert holding(run) == {0}
    rated(run, 0, correctness, None)  # who cannot judge takes nothing away
    assert holding(run) == {0}
    rated(run, 0, correctness, 3)
    value = effective_values(run).values[correctness.pk][answer_rows(run)[0].pk]
    assert (value.value, value.raters, value.carried) == (3, 1, None)


def test_an_override_stands_above_what_was_carried(
    earlier: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    rated(earlier, 0, correctness, 5)
    run = release(questions)
    decide(answer_rows(run)[0], correctness, 1)
    value = effective_values(run).values[correctness.pk][answer_rows(run)[0].pk]
    assert (value.source, value.value, value.carried) == (ValueSource.OVERRIDE, 1, None)


def test_the_newest_equal_answer_that_was_rated_holds(
    earlier: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    """v1 was rated 5, v2 later 3, v3 not at all: v4 has the 3 of v2."""
    rated(earlier, 0, correctness, 5)
    second, third = release(questions), release(questions)
    rated(second, 0, correctness, 3)
    values = [effective_values(one).values[correctness.pk][answer_rows(one)[0].pk] for one in (second, third)]
    assert [value.value for value in values] == [3, 3]
    last = effective_values(release(questions)).values[correctness.pk]
    (origin,) = [one.carried for one in last.values() if one.carried]
    assert origin.answer_set_id == second.answer_set_id


def _context(answers: AnswerSet, **fields: Any) -> None:
    """A second passage of the first answer."""
    first = answers.answers.order_by("question__position").first()
    Context.objects.create(**{"answer": first, "position": 1, "chunk_id": "c2", "text": "more"} | fields)


def _copy(questions: QuestionSet, passage: dict[str, Any], **fields: Any) -> AnswerSet:
    """A set whose first answer is "Seoul" with one passage, in which something can differ."""
    made = make_answer_set(questions, texts=["Jeju", *CITIES[1:]])
    question = questions.questions.order_by("position").first()
    assert question is not None
    text = "Seoul"
    like = Answer.objects.filter(text=text).values_list("text_hash", flat=True)[0]
    answer = Answer(answer_set=made, question=question, sample=2, text=text, text_hash=like, retrieves=True)
    answer.status = "ok"
    for name, value in fields.items():
        setattr(answer, name, value)
    answer.save()
    same = {"position": 0, "chunk_id": "c1", "text": text, "source": "atlas"}
    Context.objects.create(answer=answer, **(same | passage))
    return made


@pytest.mark.parametrize(
    ("passage", "fields", "carries"),
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
def test_any_part_of_the_content_that_differs_stops_it(
    earlier: Run,
    questions: QuestionSet,
    correctness: MetricDefinition,
    passage: dict[str, Any],
    fields: dict[str, Any],
    carries: bool,
) -> None:
    rated(earlier, 0, correctness, 5)
    run = run_over(_copy(questions, passage, **fields), judged=False)
    assert bool(carried_ratings(run)) is carries


passages = st.lists(
    st.tuples(st.sampled_from(["c1", "c2", ""]), st.sampled_from(["atlas", ""]), st.sampled_from(["Han", "river", ""])),
    max_size=3,
)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(before=passages, after=passages, same=st.booleans())
def test_ratings_carry_exactly_where_the_passages_are_the_same(
    earlier: Run,
    correctness: MetricDefinition,
    before: list[tuple[str, str, str]],
    after: list[tuple[str, str, str]],
    same: bool,
) -> None:
    """Two answers to a question of their own, each example anew, with passages as id, source and text."""
    after = before if same else after
    questions = make_question_set(earlier.project, 1)
    old, new = make_answer_set(questions, texts=["Seoul"]), make_answer_set(questions, texts=["Seoul"])
    for answers, several in ((old, before), (new, after)):
        answer = answers.answers.get()
        Context.objects.bulk_create(
            Context(answer=answer, position=at, chunk_id=chunk, source=source, text=text)
            for at, (chunk, source, text) in enumerate(several, start=1)
        )
    imported_rating(old.answers.get(), correctness, "anna", 5)
    assert bool(carried_ratings(run_over(new, judged=False))) is (before == after)


def test_another_passage_stops_it_on_either_side(
    earlier: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    rated(earlier, 0, correctness, 5)
    rated(earlier, 1, correctness, 5)
    run = release(questions)
    _context(run.answer_set)
    assert holding(run) == {1}
    _context(earlier.answer_set)
    assert holding(run) == {0, 1}


def test_another_version_of_the_question_set_is_another_question(earlier: Run, correctness: MetricDefinition) -> None:
    """The same text in a later version of the set, or in another project, is nobody's rating."""
    rated(earlier, 0, correctness, 5)
    assert holding(release(asked())) == set()


def test_another_version_of_the_judges_rubric_stops_it(
    earlier: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    """A rating names the rubric that its rater saw; one made elsewhere names none."""
    used = earlier.judges.get().rubric_version
    spec = {"family": used.family, "language": used.language, "spec": used.spec}
    other = RubricVersion.objects.create(project=earlier.project, version=99, content_hash="9" * 64, **spec)
    rated(earlier, 0, correctness, 5, rubric_version=used)
    rated(earlier, 1, correctness, 5, rubric_version=other)
    imported_rating(answer_rows(earlier)[2], correctness, "anna", 5)
    assert holding(release(questions)) == {0, 2}
    assert holding(release(questions, judged=False)) == {0, 1, 2}  # no judge, no rubric that could differ


def test_another_version_of_the_metric_stops_it(
    earlier: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    older = MetricDefinition.objects.create(
        name="correctness", version=0, kind="judge", scale="1..5", content_hash="8" * 64
    )
    rated(earlier, 0, older, 5)
    run = release(questions)
    assert holding(run) == set()
    assert set(load_evidence(run).names.values()) == {"correctness"}  # the other version is nowhere named
    assert holding(run_over(make_answer_set(questions, texts=CITIES), judged=False)) == {
        0
    }  # where it is not computed it is itself


def _taken_back(held: Assignment) -> None:
    moved(held, Assignment.State.LEASED)


def _for_show(held: Assignment) -> None:
    held.queue.example = True
    held.queue.save()


def _decided(held: Assignment) -> None:
    decide(held.item.answer, metric("correctness"), 1)


def _flagged(held: Assignment) -> None:
    event = ItemEvent.objects.create(assignment=held, verb="flag", kind="bad_question")
    EventRuling.objects.create(event=event, seq=1, upheld=True, reason="so", by=held.reviewer)


@pytest.mark.parametrize("spoil", [_taken_back, _for_show, _decided, _flagged])
def test_what_no_longer_holds_is_not_carried(
    earlier: Run, questions: QuestionSet, correctness: MetricDefinition, spoil: Callable[[Assignment], None]
) -> None:
    """Ratings taken back, made for show, overruled, or of an answer that a lead took out."""
    held = rated(earlier, 0, correctness, 5)
    run = release(questions)
    assert holding(run) == {0}
    spoil(held)
    assert holding(run) == set()


def test_a_later_word_supersedes_and_a_tie_is_not_carried(
    earlier: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    held = rated(earlier, 0, correctness, 5)
    rate(held, correctness, 4)
    run = release(questions)
    (value,) = [one.value for one in effective_values(run).values[correctness.pk].values() if one.carried]
    assert value == 4
    rate(held, correctness, 3, phase="final")
    (value,) = [one.value for one in effective_values(run).values[correctness.pk].values() if one.carried]
    assert value == 3

    refused = metric("refusal", "bool")
    for said in (1, 0):
        rated(earlier, 1, refused, said)
    heard = effective_values(run).human_values.items()
    assert {pk for pk, of in heard if any(one.carried for one in of.values())} == {correctness.pk}


def test_a_hidden_repeat_is_no_rating_to_carry(
    earlier: Run, questions: QuestionSet, correctness: MetricDefinition
) -> None:
    person = make_user()
    queue = queue_for(earlier, [correctness], [person])
    rate(assignment_of(queue, answer_rows(earlier)[0], person, earlier, occasion=2), correctness, 5)
    assert holding(release(questions)) == set()


def test_the_age_is_that_of_the_rating(earlier: Run, questions: QuestionSet, correctness: MetricDefinition) -> None:
    given = timezone.now() - timedelta(days=90)
    imported_rating(answer_rows(earlier)[0], correctness, "anna", 5, created_at=given)
    (one,) = carried_ratings(release(questions)).values()
    assert one.origin.at == given


def test_two_queries_however_many_are_carried(
    earlier: Run,
    questions: QuestionSet,
    correctness: MetricDefinition,
    django_assert_num_queries: DjangoAssertNumQueries,
) -> None:
    run = release(questions)
    first = answer_rows(run)[0].pk
    with django_assert_num_queries(1):
        assert not carried_ratings(run)
    for at in range(3):
        rated(earlier, at, correctness, 5)
    with django_assert_num_queries(2):
        assert len(carried_ratings(run)) == 3
    with django_assert_num_queries(2):
        assert len(carried_ratings(run, [first])) == 1
