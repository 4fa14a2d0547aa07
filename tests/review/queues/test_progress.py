"""A reviewer's own progress: counts per queue, and the median active time."""

from __future__ import annotations

import statistics

import pytest

from evaluation.models import RoleGrant, User
from review.evidence.rating_input import RatingInput
from review.models import ReviewQueue
from review.queues.progress import own_progress, own_progress_by_queue, undoable_assignment
from review.ratings.leases import next_assignment
from review.ratings.submitting import flag, skip, submit, undo
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user

pytestmark = pytest.mark.django_db
VALUES = {"correctness": RatingInput(3), "faithfulness": RatingInput(3)}


def queue_for(*reviewers: User, items: int = 8) -> ReviewQueue:
    run = make_scored_run(make_answer_set(make_question_set(specs=items)))
    for reviewer in reviewers:
        RoleGrant.objects.create(user=reviewer, project=run.project, role="reviewer")
    return make_queue(run, list(reviewers), reviews_needed=2)


def rate_next(queue: ReviewQueue, user: User, milliseconds: int | None, key: str = "k") -> int:
    """Rate the next item with the given active time and return the assignment's key."""
    assignment = next_assignment(queue, user)
    assert assignment
    submit(assignment, VALUES, idempotency_key=key, by=user, active_ms=milliseconds)
    return assignment.pk


@pytest.mark.parametrize(
    "looks",
    [
        *([], [None], [4_000], [4_000] * 9, [*[4_000] * 5, None, *[9_000] * 4]),
        *([*[4_000] * 5, *[9_000] * 5], [*[9_000] * 3, *[1_000] * 4, None, *[5_000] * 4]),
    ],
)
def test_median_needs_ten_measured_items(looks: list[int | None]) -> None:
    me, colleague = make_user(), make_user()
    queue, second_queue = queue_for(me, colleague, items=12), queue_for(me, colleague)
    for milliseconds in looks:
        rate_next(queue, me, milliseconds)
    rate_next(queue, colleague, 77_000)
    rate_next(second_queue, me, 55_000)
    own = own_progress_by_queue([queue, second_queue], me)
    measured_seconds = [duration / 1000 for duration in looks if duration is not None]
    median = statistics.median(measured_seconds) if len(measured_seconds) >= 10 else None
    assert own[queue.pk].median_seconds == median
    assert (own[queue.pk].rated, own[queue.pk].items) == (len(looks), 12)
    assert (own[second_queue.pk].median_seconds, own[second_queue.pk].rated) == (None, 1)


def test_median_uses_the_last_thirty_items() -> None:
    me, colleague = make_user(), make_user()
    queue = queue_for(me, colleague, items=32)
    for milliseconds in [1_000, 1_000, *[3_000] * 15, *[5_000] * 15]:
        rate_next(queue, me, milliseconds)
    own = own_progress(queue, me)
    assert (own.rated, own.median_seconds) == (32, 4.0)


def test_rerated_item_counts_once_with_its_longest_time() -> None:
    me, colleague = make_user(), make_user()
    queue = queue_for(me, colleague, items=12)
    assignment_id = rate_next(queue, me, 9_000)
    undo(queue.items.get(assignments=assignment_id).assignments.get(pk=assignment_id), by=me)
    assert rate_next(queue, me, 3_000, key="again") == assignment_id
    for milliseconds in [*[1_000] * 4, *[10_000] * 5]:
        rate_next(queue, me, milliseconds)
    own = own_progress(queue, me)
    # the longer of its two times, nine seconds, lies in the middle with ten: (9 + 10) / 2
    assert (own.rated, own.median_seconds) == (10, 9.5)


def test_passed_items_are_counted_by_kind_and_the_last_step_can_be_undone() -> None:
    me, colleague = make_user(), make_user()
    queue = queue_for(me, colleague)
    rated_id = rate_next(queue, me, 1_000)
    assert undoable_assignment(queue, me, own_progress(queue, me)) == rated_id
    skipped = next_assignment(queue, me)
    assert skipped
    skip(skipped)
    assert undoable_assignment(queue, me, own_progress(queue, me)) == skipped.pk
    flagged = next_assignment(queue, me)
    assert flagged
    flag(flagged, "unreadable")
    own = own_progress(queue, me)
    assert (own.rated, own.skipped, own.flagged) == (1, 1, 1)
    assert undoable_assignment(queue, me, own) is None
    assert undoable_assignment(queue, colleague, own_progress(queue, colleague)) is None
