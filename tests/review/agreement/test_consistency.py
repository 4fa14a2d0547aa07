"""How far reviewers agree with each other and themselves, their pace, and the questions in doubt: by hand."""

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


def people(queue: ReviewQueue) -> list[User]:
    return [member.reviewer for member in queue.members.select_related("reviewer").order_by("pk")]


def given(queue: ReviewQueue, run: Run, metric: MetricDefinition, values: dict[User, list[float | None]]) -> None:
    for answer, position in zip(run.answer_set.answers.order_by("pk"), range(4), strict=True):
        for user, said in values.items():
            if said[position] is not None:
                rate(assignment_of(queue, answer, user, run), metric, said[position])


def of(found: list[Consistency], user: User) -> Consistency:
    return next(one for one in found if one.reviewer_id == user.pk)


def test_a_reviewer_is_compared_with_the_mean_of_the_others(
    run: Run, queue: ReviewQueue, correctness: MetricDefinition
) -> None:
    strict, kind, third = people(queue)
    given(queue, run, correctness, {strict: [1, 2, 3, None], kind: [3, 4, 3, 5], third: [2, None, 3, None]})
    peers = of(reviewer_consistency(queue), kind).peers
    assert peers is not None
    # kind 3, 4, 3 against the others' means 1.5, 2, 3: leniency (1.5 + 2 + 0) / 3 = 1.1667; the fourth answer is alone
    assert peers.n == 3
    assert peers.statistics["bias"].value == pytest.approx(3.5 / 3)
    # rounded halves up the others say 2, 2, 3: exact once in three, within one twice
    assert peers.statistics["exact"].value == pytest.approx(1 / 3)
    assert peers.statistics["within_one"].value == pytest.approx(2 / 3)


def test_hidden_repeats_are_compared_with_the_first_occasion(
    run: Run, queue: ReviewQueue, correctness: MetricDefinition
) -> None:
    anna, *_ = people(queue)
    given(queue, run, correctness, {anna: [1, 2, 3, 4]})
    for answer, again in zip(run.answer_set.answers.order_by("pk"), [1, 2, 5, 4], strict=True):
        rate(assignment_of(queue, answer, anna, run, occasion=2), correctness, again)
    found = of(reviewer_consistency(queue), anna)
    assert found.peers is None
    assert found.oneself is not None
    # the same three times in four
    assert (found.oneself.n, found.oneself.statistics["exact"].value) == (4, 0.75)


def test_ratings_after_a_look_at_the_judge_compare_with_nobody(
    run: Run, queue: ReviewQueue, correctness: MetricDefinition
) -> None:
    anna, ben, _ = people(queue)
    answer = run.answer_set.answers.order_by("pk")[0]
    rate(assignment_of(queue, answer, anna, run), correctness, 3, blind=False)
    rate(assignment_of(queue, answer, ben, run), correctness, 3)
    assert reviewer_consistency(queue) == []


def test_quick_decisions_are_counted_and_the_pace_is_the_median(
    run: Run, queue: ReviewQueue, correctness: MetricDefinition
) -> None:
    anna, *_ = people(queue)
    for answer, milliseconds in zip(run.answer_set.answers.order_by("pk"), [900, 2_999, 3_000, 61_000], strict=True):
        rate(assignment_of(queue, answer, anna, run), correctness, 3, active_ms=milliseconds)
    pace = reviewer_paces(queue)[anna.pk]
    assert (pace.quick_count, pace.measured_count, pace.week_count) == (2, 4, 4)
    assert pace.median_seconds == pytest.approx((2.999 + 3.0) / 2)


def test_a_question_nobody_answered_well_and_a_flagged_one_are_in_doubt(
    run: Run, queue: ReviewQueue, correctness: MetricDefinition
) -> None:
    anna, ben, _ = people(queue)
    # shares of 1..5: (1-1)/4 = 0 and (2-1)/4 = .25, mean .125; 3 is half and right enough; 5 is all
    given(queue, run, correctness, {anna: [1, 3, 5, None], ben: [2, None, 5, None]})
    flagged = run.answer_set.answers.order_by("pk")[2]
    for user in (anna, ben):
        held = assignment_of(queue, flagged, user, run)
        for _ in range(2):  # twice by one person is one person
            ItemEvent.objects.create(assignment=held, verb="flag", kind="bad_reference")
    found = doubtful_questions(queue)
    assert [one.question.external_id for one in found] == ["q3", "q1"]
    assert found[0].flags == {"bad_reference": 2}
    assert (found[0].nobody_right, found[1].nobody_right) == (False, True)
    assert found[1].best == pytest.approx(0.125)
    assert (found[1].answers, found[1].ratings) == (1, 2)
    assert queue.items.get(pk=found[0].item_id).answer == flagged  # from there question and reference are amended


def test_another_systems_right_answer_clears_a_question(correctness: MetricDefinition, run: Run) -> None:
    other = make_scored_run(make_answer_set(run.answer_set.question_set), metrics=["correctness"])
    anna = make_user("reviewer", run.project)
    queue = make_queue([run, other], [anna], metrics=["correctness"])
    first = run.answer_set.answers.order_by("pk")[0]
    same = other.answer_set.answers.get(question=first.question)
    rate(assignment_of(queue, first, anna, run), correctness, 1)
    assert [one.question for one in doubtful_questions(queue)] == [first.question]
    rate(assignment_of(queue, same, anna, other), correctness, 4)
    assert doubtful_questions(queue) == []
    assert Rating.objects.count() == 2
