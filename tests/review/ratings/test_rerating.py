"""Rerating of a reviewer's own finished item: a new final row after the first, until a lead adjudicates."""

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
from tests.concurrency import WAITS, run_concurrently
from tests.factories import make_queue, make_scored_run, make_user

pytestmark = pytest.mark.django_db


def finished_assignment(value: float = 3, reveal: str = "never") -> Assignment:
    """A rated item; finished unless the judge is to be shown."""
    queue = make_queue(make_scored_run(values=[3]), metrics=["correctness"], reveal=reveal)
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment is not None
    return submit(
        assignment, {"correctness": RatingInput(value=value)}, idempotency_key="k", by=assignment.reviewer
    ).assignment


def rerate(assignment: Assignment, value: float, key: str = "a") -> None:
    rate_again(assignment, {"correctness": RatingUpdate(value=value)}, by=assignment.reviewer, idempotency_key=key)


def test_rerating_adds_a_final_row_and_agreement_keeps_the_first() -> None:
    assignment = finished_assignment()
    rerate(assignment, 4)
    assert list(Rating.objects.order_by("pk").values_list("phase", "seq", "value", "blind")) == [
        ("initial", 1, 3.0, True), ("final", 1, 4.0, False),
    ]  # fmt: skip
    rows = read_ratings(ratings_of(assignment.item.answer.answer_set_id))
    assert [row.value for several in agreement_ratings(rows).values() for row in several] == [3.0]
    assert [row.value for several in effective_ratings(rows).values() for row in several] == [4.0]


def test_item_can_be_rerated_again_and_the_newest_counts() -> None:
    assignment = finished_assignment()
    rerate(assignment, 4)
    rerate(assignment, 5, key="b")
    assert current_ratings(assignment)["correctness"].value == 5
    assert Rating.objects.get(phase="final", seq=2).value == 5


def test_repeated_form_adds_one_row_and_an_equal_value_none() -> None:
    assignment = finished_assignment()
    rerate(assignment, 4)
    rerate(assignment, 4)
    rerate(assignment, 4, key="another form")
    assert Rating.objects.filter(phase="final").count() == 1


def test_repeated_key_with_another_value_is_refused() -> None:
    assignment = finished_assignment()
    rerate(assignment, 4)
    with pytest.raises(DomainError) as error:
        rerate(assignment, 3)
    assert error.value.code == "key_reused"
    rerate(assignment, 5, key="b")
    rerate(assignment, 4)
    assert list(Rating.objects.filter(phase="final").order_by("seq").values_list("value", flat=True)) == [4, 5]


def test_change_of_two_levels_needs_a_reason() -> None:
    with pytest.raises(DomainError) as error:
        rerate(finished_assignment(), 5)
    assert error.value.code == "reason_needed"


def test_rerating_is_refused_when_adjudicated_closed_or_unfinished() -> None:
    assignment = finished_assignment()
    rating = Rating.objects.get()
    lead = make_user("lead", assignment.item.queue.project)
    adjudicate(assignment.item.answer, rating.metric, value=5, reason="settled", seen=0, by=lead)
    with pytest.raises(DomainError) as error:
        rerate(assignment, 4)
    assert error.value.code == "adjudicated_already"
    revealed_assignment = finished_assignment(reveal="always")
    with pytest.raises(DomainError) as error:
        rerate(revealed_assignment, 4)
    assert error.value.code == "not_finished"
    closed_assignment = finished_assignment()
    close_queue(closed_assignment.item.queue, by=None)
    with pytest.raises(DomainError) as error:
        rerate(closed_assignment, 4)
    assert error.value.code == "queue_closed"


def test_rerated_item_is_not_undone() -> None:
    assignment = finished_assignment()
    rerate(assignment, 4)
    with pytest.raises(DomainError) as error:
        undo(assignment, by=assignment.reviewer)
    assert error.value.code == "already_final"


def test_submit_after_withdrawal_is_stored_and_marked_stale() -> None:
    queue = make_queue(make_scored_run(values=[3]), metrics=["correctness"], reveal="never")
    assignment = next_assignment(queue, queue.members.get().reviewer)
    assert assignment is not None
    ReviewItem.objects.filter(pk=assignment.item_id).update(state=ReviewItem.State.WITHDRAWN)
    assignment.item.refresh_from_db()
    result = submit(assignment, {"correctness": RatingInput(value=3)}, idempotency_key="k", by=assignment.reviewer)
    assert result.stale
    assert Rating.objects.get().value == 3
    assert ItemEvent.objects.get().verb == "stale"


def test_next_item_is_prefetched_once_and_served_after_the_current() -> None:
    queue = make_queue(make_scored_run(values=[3]), metrics=["correctness"], reveal="never")
    me = queue.members.get().reviewer
    current = next_assignment(queue, me)
    assert current is not None
    prefetched = prefetch_assignment(queue, me, current)
    assert prefetched is not None
    assert prefetched != current
    assert prefetch_assignment(queue, me, current) == prefetched
    assert Assignment.objects.filter(reviewer=me, state="leased").count() == 2
    assert next_assignment(queue, me) == current
    submit(current, {"correctness": RatingInput(value=3)}, idempotency_key="k", by=me)
    assert next_assignment(queue, me) == prefetched
    assert prefetch_assignment(queue, me, current) is None  # the one in hand is not held any more


def test_closed_queue_prefetches_nothing() -> None:
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
def test_concurrent_undo_and_rerating_apply_once() -> None:
    for _ in range(10):
        assignment = finished_assignment()
        results = run_concurrently(lambda: rerate(assignment, 4), lambda: undo(assignment, by=assignment.reviewer))  # noqa: B023 -- done within the turn
        assert len([result for result in results if isinstance(result, DomainError)]) == 1
        assignment.refresh_from_db()
        has_final = Rating.objects.filter(assignment=assignment, phase="final").exists()
        assert has_final == (assignment.state == Assignment.State.FINISHED)


def test_form_opened_before_an_undo_is_refused() -> None:
    assignment = finished_assignment()
    stale_assignment = Assignment.objects.select_related("item__queue", "item__answer").get(pk=assignment.pk)
    undo(assignment, by=assignment.reviewer)
    with pytest.raises(DomainError) as error:
        rerate(stale_assignment, 4)
    assert error.value.code == "not_finished"
    assert not Rating.objects.filter(phase="final").exists()
