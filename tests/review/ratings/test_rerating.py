"""A reviewer's own finished rating, given again: a new final row beside the first, until a lead has decided."""

from __future__ import annotations

import pytest

from evaluation.core.errors import DomainError
from review.decisions.adjudication import adjudicate
from review.evidence.experts import agreement_ratings, effective_ratings, ratings_of, read_ratings
from review.evidence.rating_input import RatingInput, RatingUpdate
from review.models import Assignment, ItemEvent, Rating, ReviewItem
from review.queues.creation import close_queue
from review.ratings.leases import next_assignment, prefetch_assignment
from review.ratings.reveals import current_ratings, rate_again
from review.ratings.submitting import submit, undo
from tests.concurrency import WAITS, together
from tests.factories import make_queue, make_scored_run, make_user

pytestmark = pytest.mark.django_db


def finished(value: float = 3, reveal: str = "never") -> Assignment:
    """A rated item; finished unless the judge is to be shown."""
    queue = make_queue(make_scored_run(values=[3]), metrics=["correctness"], reveal=reveal)
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment is not None
    return submit(
        assignment, {"correctness": RatingInput(value=value)}, idempotency_key="k", by=assignment.reviewer
    ).assignment


def again(assignment: Assignment, value: float, key: str = "a") -> None:
    rate_again(assignment, {"correctness": RatingUpdate(value=value)}, by=assignment.reviewer, idempotency_key=key)


def test_a_reopened_rating_is_a_final_row_and_agreement_keeps_the_first() -> None:
    assignment = finished()
    again(assignment, 4)
    assert list(Rating.objects.order_by("pk").values_list("phase", "seq", "value", "blind")) == [
        ("initial", 1, 3.0, True), ("final", 1, 4.0, False),
    ]  # fmt: skip
    rows = read_ratings(ratings_of(assignment.item.answer.answer_set_id))
    assert [row.value for several in agreement_ratings(rows).values() for row in several] == [3.0]
    assert [row.value for several in effective_ratings(rows).values() for row in several] == [4.0]


def test_it_can_be_reopened_again_and_the_newest_counts() -> None:
    assignment = finished()
    again(assignment, 4)
    again(assignment, 5, key="b")
    assert current_ratings(assignment)["correctness"].value == 5
    assert Rating.objects.get(phase="final", seq=2).value == 5


def test_the_same_form_twice_is_one_row_and_the_same_value_none() -> None:
    assignment = finished()
    again(assignment, 4)
    again(assignment, 4)
    again(assignment, 4, key="another form")
    assert Rating.objects.filter(phase="final").count() == 1


def test_two_levels_need_a_reason() -> None:
    with pytest.raises(DomainError) as refused:
        again(finished(), 5)
    assert refused.value.code == "reason_needed"


def test_nothing_is_reopened_after_an_adjudication_or_in_a_closed_queue_or_before_it_is_finished() -> None:
    assignment = finished()
    rating = Rating.objects.get()
    lead = make_user("lead", assignment.item.queue.project)
    adjudicate(assignment.item.answer, rating.metric, value=5, reason="settled", seen=0, by=lead)
    with pytest.raises(DomainError) as refused:
        again(assignment, 4)
    assert refused.value.code == "adjudicated_already"
    shown = finished(reveal="always")
    with pytest.raises(DomainError) as refused:
        again(shown, 4)
    assert refused.value.code == "not_finished"
    other = finished()
    close_queue(other.item.queue, by=None)
    with pytest.raises(DomainError) as refused:
        again(other, 4)
    assert refused.value.code == "queue_closed"


def test_an_item_that_was_rated_again_is_not_undone() -> None:
    assignment = finished()
    again(assignment, 4)
    with pytest.raises(DomainError) as refused:
        undo(assignment, by=assignment.reviewer)
    assert refused.value.code == "already_final"


def test_a_submit_after_the_item_was_withdrawn_is_kept_and_marked() -> None:
    queue = make_queue(make_scored_run(values=[3]), metrics=["correctness"], reveal="never")
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment is not None
    ReviewItem.objects.filter(pk=assignment.item_id).update(state=ReviewItem.State.WITHDRAWN)
    assignment.item.refresh_from_db()
    done = submit(assignment, {"correctness": RatingInput(value=3)}, idempotency_key="k", by=assignment.reviewer)
    assert done.stale
    assert Rating.objects.get().value == 3
    assert ItemEvent.objects.get().verb == "stale"


def test_the_next_item_is_reserved_once_and_served_after_the_one_in_hand() -> None:
    queue = make_queue(make_scored_run(values=[3]), metrics=["correctness"], reveal="never")
    me = queue.members.get().reviewer
    current = next_assignment(queue, me)
    assert current is not None
    ahead = prefetch_assignment(queue, me, current)
    assert ahead is not None
    assert ahead != current
    assert prefetch_assignment(queue, me, current) == ahead
    assert Assignment.objects.filter(reviewer=me, state="leased").count() == 2
    assert next_assignment(queue, me) == current
    submit(current, {"correctness": RatingInput(value=3)}, idempotency_key="k", by=me)
    assert next_assignment(queue, me) == ahead
    assert prefetch_assignment(queue, me, current) is None  # the one in hand is not held any more


def test_a_closed_queue_shows_nothing_ahead() -> None:
    queue = make_queue(make_scored_run(values=[3]), metrics=["correctness"])
    me = queue.members.get().reviewer
    current = next_assignment(queue, me)
    assert current is not None
    assert prefetch_assignment(queue, me, current)
    close_queue(queue, by=None)
    queue.refresh_from_db()
    assert prefetch_assignment(queue, me, current) is None


@WAITS
@pytest.mark.django_db(transaction=True)
def test_of_undoing_and_rating_again_at_the_same_moment_one_counts() -> None:
    for _ in range(10):
        assignment = finished()
        results = together(lambda: again(assignment, 4), lambda: undo(assignment, by=assignment.reviewer))  # noqa: B023 -- done within the turn
        assert len([one for one in results if isinstance(one, DomainError)]) == 1
        assignment.refresh_from_db()
        has_final = Rating.objects.filter(assignment=assignment, phase="final").exists()
        assert has_final == (assignment.state == Assignment.State.FINISHED)


def test_a_form_that_was_opened_before_an_undo_is_refused() -> None:
    assignment = finished()
    as_it_was = Assignment.objects.select_related("item__queue", "item__answer").get(pk=assignment.pk)
    undo(assignment, by=assignment.reviewer)
    with pytest.raises(DomainError) as refused:
        again(as_it_was, 4)
    assert refused.value.code == "not_finished"
    assert not Rating.objects.filter(phase="final").exists()
