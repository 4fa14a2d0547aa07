"""Expected time of a review: measured with ten answers or more, and never less than reading takes."""

from __future__ import annotations

import pytest

from evaluation.models import Run, User
from review.comparisons.summaries import load_open_work
from review.evidence.rating_input import RatingInput
from review.models import ReviewQueue
from review.queues.pace import answer_pace, measured_seconds, queue_seconds, reading_seconds
from review.ratings.leases import next_assignment
from review.ratings.submitting import submit
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user

pytestmark = pytest.mark.django_db


def run_with(texts: list[str] | None = None, count: int = 20) -> Run:
    return make_scored_run(make_answer_set(make_question_set(specs=count), texts=texts))


def queue_of(run: Run) -> tuple[ReviewQueue, User]:
    reviewer = make_user("reviewer", run.project)
    return make_queue(run, [reviewer]), reviewer


def rate(queue: ReviewQueue, user: User, count: int, milliseconds: int) -> None:
    for _ in range(count):
        assignment = next_assignment(queue, user)
        assert assignment
        values = {"correctness": RatingInput(3), "faithfulness": RatingInput(3)}
        submit(assignment, values, idempotency_key=f"{assignment.pk}", by=user, active_ms=milliseconds)


def test_nine_timed_answers_leave_the_guess_and_ten_replace_it() -> None:
    queue, reviewer = queue_of(run_with())
    rate(queue, reviewer, 9, 20_000)
    assert measured_seconds(queue.project_id) is None
    assert answer_pace(queue.project_id, 2).seconds == 30 + 25 * 2
    assert queue_seconds({queue: None})[queue.pk] == 30 + 25 * 2
    rate(queue, reviewer, 1, 20_000)
    assert (answer_pace(queue.project_id, 2).seconds, answer_pace(queue.project_id, 2).measured) == (20, True)
    assert queue_seconds({queue: None})[queue.pk] == 20


def test_no_pace_is_faster_than_reading() -> None:
    run = run_with(["word " * 240])
    answer_ids = list(run.answer_set.answers.values_list("pk", flat=True))
    # 1,200 letters of the answer, and a question of about 33, at 24 a second
    assert reading_seconds(answer_ids) == pytest.approx(1233 / 24, abs=0.5)
    queue, reviewer = queue_of(run)
    rate(queue, reviewer, 10, 1_000)
    assert answer_pace(queue.project_id, 2, answer_ids).seconds == reading_seconds(answer_ids)
    assert queue_seconds({queue: 1.0})[queue.pk] == reading_seconds(answer_ids)
    assert queue_seconds({queue: 90.0})[queue.pk] == 90


def test_hangul_takes_three_letters_time() -> None:
    english, korean = (
        reading_seconds(list(run_with([text * 480]).answer_set.answers.values_list("pk", flat=True)))
        for text in ("a", "가")
    )
    assert korean - english == pytest.approx(480 * 2 / 24)


def test_home_page_expects_no_seconds_after_one_quick_rating() -> None:
    queue, reviewer = queue_of(run_with())
    rate(queue, reviewer, 1, 2_000)
    (waiting,) = load_open_work(reviewer).queues
    assert (waiting.waiting, waiting.seconds) == (19, 19 * 80.0)


def test_home_page_offers_nothing_in_a_pool_that_others_have_rated() -> None:
    run = run_with()
    people = [make_user("reviewer", run.project) for _ in range(2)]
    queue = make_queue(run, people)
    rate(queue, people[0], 15, 2_000)
    (waiting,) = load_open_work(people[1]).queues
    assert waiting.waiting == 5
    rate(queue, people[0], 5, 2_000)
    assert load_open_work(people[1]).queues == ()
