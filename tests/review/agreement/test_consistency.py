"""Reviewer consistency, pace and doubtful questions, checked against hand-worked figures."""

from __future__ import annotations

import pytest

from evaluation.judges.shipped import definitions
from evaluation.models import MetricDefinition, Run, User
from review.agreement.variation import Consistency, reviewer_consistency
from review.models import ItemEvent, Rating, ReviewQueue
from review.queues.progress import doubtful_questions, reviewer_paces
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user
from tests.review.builders import assignment_of, rate

pytestmark = pytest.mark.django_db


@pytest.fixture
def run() -> Run:
    return make_scored_run(make_answer_set(make_question_set(specs=4)), metrics=["correctness"])


@pytest.fixture
def correctness(run: Run) -> MetricDefinition:
    return definitions(["correctness"])["correctness"]


@pytest.fixture
def queue(run: Run) -> ReviewQueue:
    return make_queue(
        run, [make_user("reviewer", run.project) for _ in range(3)], metrics=["correctness"], reviews_needed=3
    )


def reviewers(queue: ReviewQueue) -> list[User]:
    return [member.reviewer for member in queue.members.select_related("reviewer").order_by("pk")]


def rate_all(queue: ReviewQueue, run: Run, metric: MetricDefinition, values: dict[User, list[float | None]]) -> None:
    for answer, position in zip(run.answer_set.answers.order_by("pk"), range(4), strict=True):
        for user, ratings in values.items():
            if ratings[position] is not None:
                rate(assignment_of(queue, answer, user, run), metric, ratings[position])


def consistency_of(consistencies: list[Consistency], user: User) -> Consistency:
    return next(consistency for consistency in consistencies if consistency.reviewer_id == user.pk)


def test_reviewer_is_compared_with_mean_of_other_reviewers(
    run: Run, queue: ReviewQueue, correctness: MetricDefinition
) -> None:
    strict, kind, third = reviewers(queue)
    rate_all(queue, run, correctness, {strict: [1, 2, 3, None], kind: [3, 4, 3, 5], third: [2, None, 3, None]})
    peers = consistency_of(reviewer_consistency(queue), kind).peers
    assert peers is not None
    # kind 3, 4, 3 against the others' means 1.5, 2, 3: leniency (1.5 + 2 + 0) / 3 = 1.1667; the fourth answer is alone
    assert peers.n == 3
    assert peers.statistics["bias"].value == pytest.approx(3.5 / 3)
    # rounded halves up the others say 2, 2, 3: exact once in three, within one twice
    assert peers.statistics["exact"].value == pytest.approx(1 / 3)
    assert peers.statistics["within_one"].value == pytest.approx(2 / 3)


def test_hidden_repeats_are_compared_with_first_occasion(
    run: Run, queue: ReviewQueue, correctness: MetricDefinition
) -> None:
    anna, *_ = reviewers(queue)
    rate_all(queue, run, correctness, {anna: [1, 2, 3, 4]})
    for answer, repeat in zip(run.answer_set.answers.order_by("pk"), [1, 2, 5, 4], strict=True):
        rate(assignment_of(queue, answer, anna, run, occasion=2), correctness, repeat)
    consistency = consistency_of(reviewer_consistency(queue), anna)
    assert consistency.peers is None
    assert consistency.oneself is not None
    # the same three times in four
    assert (consistency.oneself.n, consistency.oneself.statistics["exact"].value) == (4, 0.75)


def test_ratings_after_seeing_the_judge_are_not_compared(
    run: Run, queue: ReviewQueue, correctness: MetricDefinition
) -> None:
    anna, ben, _ = reviewers(queue)
    answer = run.answer_set.answers.order_by("pk")[0]
    rate(assignment_of(queue, answer, anna, run), correctness, 3, blind=False)
    rate(assignment_of(queue, answer, ben, run), correctness, 3)
    assert reviewer_consistency(queue) == []


def test_quick_decisions_are_counted_and_pace_is_median(
    run: Run, queue: ReviewQueue, correctness: MetricDefinition
) -> None:
    anna, *_ = reviewers(queue)
    for answer, milliseconds in zip(run.answer_set.answers.order_by("pk"), [900, 2_999, 3_000, 61_000], strict=True):
        rate(assignment_of(queue, answer, anna, run), correctness, 3, active_ms=milliseconds)
    pace = reviewer_paces(queue)[anna.pk]
    assert (pace.quick_count, pace.measured_count, pace.week_count) == (2, 4, 4)
    assert pace.median_seconds == pytest.approx((2.999 + 3.0) / 2)


def test_flagged_and_unanswered_questions_are_doubtful(
    run: Run, queue: ReviewQueue, correctness: MetricDefinition
) -> None:
    anna, ben, _ = reviewers(queue)
    # shares of 1..5: (1-1)/4 = 0 and (2-1)/4 = .25, mean .125; 3 is half and right enough; 5 is all
    rate_all(queue, run, correctness, {anna: [1, 3, 5, None], ben: [2, None, 5, None]})
    flagged = run.answer_set.answers.order_by("pk")[2]
    for user in (anna, ben):
        assignment = assignment_of(queue, flagged, user, run)
        for _ in range(2):  # twice by one person is one person
            ItemEvent.objects.create(assignment=assignment, verb="flag", kind="bad_reference")
    doubtful = doubtful_questions(queue)
    assert [row.question.external_id for row in doubtful] == ["q3", "q1"]
    assert doubtful[0].flags == {"bad_reference": 2}
    assert (doubtful[0].nobody_right, doubtful[1].nobody_right) == (False, True)
    assert doubtful[1].best == pytest.approx(0.125)
    assert (doubtful[1].answers, doubtful[1].ratings) == (1, 2)
    assert queue.items.get(pk=doubtful[0].item_id).answer == flagged  # from there question and reference are amended


def test_correct_answer_of_another_system_clears_a_question(correctness: MetricDefinition, run: Run) -> None:
    other_run = make_scored_run(make_answer_set(run.answer_set.question_set), metrics=["correctness"])
    anna = make_user("reviewer", run.project)
    queue = make_queue([run, other_run], [anna], metrics=["correctness"])
    first = run.answer_set.answers.order_by("pk")[0]
    other_answer = other_run.answer_set.answers.get(question=first.question)
    rate(assignment_of(queue, first, anna, run), correctness, 1)
    assert [row.question for row in doubtful_questions(queue)] == [first.question]
    rate(assignment_of(queue, other_answer, anna, other_run), correctness, 4)
    assert doubtful_questions(queue) == []
    assert Rating.objects.count() == 2
