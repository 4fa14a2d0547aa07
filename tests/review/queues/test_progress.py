"""A reviewer's own progress: what is counted, per queue, and the median of the time looked at an item."""

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


def queue_for(*people: User, items: int = 8) -> ReviewQueue:
    run = make_scored_run(make_answer_set(make_question_set(specs=items)))
    for one in people:
        RoleGrant.objects.create(user=one, project=run.project, role="reviewer")
    return make_queue(run, list(people), reviews_needed=2)


def look(queue: ReviewQueue, user: User, milliseconds: int | None, key: str = "k") -> int:
    """Rate the next item after so long a look; its assignment."""
    held = next_assignment(queue, user)
    assert held
    submit(held, VALUES, idempotency_key=key, by=user, active_ms=milliseconds)
    return held.pk


@pytest.mark.parametrize("looks", [[], [None], [4_000], [4_000, 9_000], [9_000, 1_000, 5_000], [2_000, None, 1_000]])
def test_the_median_is_that_of_the_items_that_were_measured(looks: list[int | None]) -> None:
    me, other = make_user(), make_user()
    queue, another = queue_for(me, other), queue_for(me, other)
    for milliseconds in looks:
        look(queue, me, milliseconds)
    look(queue, other, 77_000)
    look(another, me, 55_000)
    own = own_progress_by_queue([queue, another], me)
    measured = [one / 1000 for one in looks if one is not None]
    assert own[queue.pk].median_seconds == (statistics.median(measured) if measured else None)
    assert (own[queue.pk].rated, own[queue.pk].items) == (len(looks), 8)
    assert (own[another.pk].median_seconds, own[another.pk].rated) == (55.0, 1)


def test_the_median_is_that_of_the_last_thirty() -> None:
    me, other = make_user(), make_user()
    queue = queue_for(me, other, items=32)
    for milliseconds in [1_000, 1_000, *[3_000] * 15, *[5_000] * 15]:
        look(queue, me, milliseconds)
    own = own_progress(queue, me)
    assert (own.rated, own.median_seconds) == (32, 4.0)


def test_an_item_that_was_rated_again_counts_once_with_its_longest_look() -> None:
    me, other = make_user(), make_user()
    queue = queue_for(me, other)
    make_again = look(queue, me, 9_000)
    undo(queue.items.get(assignments=make_again).assignments.get(pk=make_again), by=me)
    assert look(queue, me, 3_000, key="again") == make_again
    look(queue, me, 1_000)
    own = own_progress(queue, me)
    assert (own.rated, own.median_seconds) == (2, 5.0)


def test_what_was_passed_on_is_counted_by_kind_and_the_last_step_can_be_taken_back() -> None:
    me, other = make_user(), make_user()
    queue = queue_for(me, other)
    rated = look(queue, me, 1_000)
    assert undoable_assignment(queue, me, own_progress(queue, me)) == rated
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
    assert undoable_assignment(queue, other, own_progress(queue, other)) is None
