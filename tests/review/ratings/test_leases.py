"""Leases: no collisions, no lost work, and reuse of expired leases."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone

from evaluation.core.errors import DomainError
from evaluation.models import User
from review.models import Assignment, Draft, QueueMember, Reservation, ReviewItem, ReviewQueue
from review.ratings.leases import candidate_items, extend_lease, load_assignment, next_assignment, prefetch_assignment
from review.ratings.submitting import release, save_draft, skip
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def reviewers_of(queue: ReviewQueue) -> list[User]:
    return [member.reviewer for member in queue.members.select_related("reviewer").order_by("pk")]


def expire_lease(assignment: Assignment) -> None:
    Assignment.objects.filter(pk=assignment.pk).update(lease_until=Now() - timedelta(seconds=1))


def one_item_queue(**fields: object) -> ReviewQueue:
    return make_queue(make_scored_run(make_answer_set(make_question_set(specs=1))), **fields)


def test_reviewer_gets_the_same_item_until_it_is_done() -> None:
    queue = make_queue()
    (user,) = reviewers_of(queue)
    first = next_assignment(queue, user)
    assert first is not None
    assert next_assignment(queue, user) == first
    assert Assignment.objects.count() == 1


def test_reviewers_hold_different_items_with_one_review_needed() -> None:
    queue = make_queue(reviewers=3)
    assignments = [next_assignment(queue, user) for user in reviewers_of(queue)]
    assert len({assignment.item_id for assignment in assignments if assignment}) == 3
    assert {assignment.slot for assignment in assignments if assignment} == {1}


def test_held_item_is_not_served_to_others() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = reviewers_of(queue)
    assert next_assignment(queue, first)
    assert next_assignment(queue, second) is None


def test_two_needed_reviews_take_two_different_reviewers() -> None:
    queue = one_item_queue(reviewers=3, reviews_needed=2)
    first, second, third = reviewers_of(queue)
    assignments = [next_assignment(queue, first), next_assignment(queue, second)]
    assert [assignment.slot for assignment in assignments if assignment] == [1, 2]
    assert next_assignment(queue, third) is None


def test_expired_lease_goes_to_the_next_reviewer_and_the_draft_stays() -> None:
    queue = one_item_queue(reviewers=2)
    slow, quick = reviewers_of(queue)
    assignment = next_assignment(queue, slow)
    assert assignment
    save_draft(assignment, {"values": {"correctness": {"value": 2}}, "comment": "half written"})
    expire_lease(assignment)
    new_assignment = next_assignment(queue, quick)
    assert new_assignment
    assert (new_assignment.item_id, new_assignment.reviewer) == (assignment.item_id, quick)
    assignment.refresh_from_db()
    assert assignment.state == Assignment.State.EXPIRED
    assert Draft.objects.get(assignment=assignment).payload["comment"] == "half written"


def test_reviewer_gets_an_own_expired_item_back_first() -> None:
    queue = make_queue(reviewers=1)
    (user,) = reviewers_of(queue)
    assignment = next_assignment(queue, user)
    assert assignment
    expire_lease(assignment)
    renewed_assignment = next_assignment(queue, user)
    assert renewed_assignment == assignment
    assert Assignment.objects.filter(pk=assignment.pk, lease_until__gt=Now()).exists()


def test_expired_lease_stays_while_another_slot_is_free() -> None:
    queue = one_item_queue(reviewers=2, reviews_needed=2)
    slow, quick = reviewers_of(queue)
    assignment = next_assignment(queue, slow)
    assert assignment
    expire_lease(assignment)
    new_assignment = next_assignment(queue, quick)
    assert new_assignment
    assert new_assignment.slot == 2
    assignment.refresh_from_db()
    assert assignment.state == Assignment.State.LEASED


def test_released_item_is_served_after_all_others() -> None:
    queue = make_queue(make_scored_run(make_answer_set(make_question_set(specs=3))))
    (user,) = reviewers_of(queue)
    first = next_assignment(queue, user)
    assert first
    release(first)
    item_ids = []
    for _ in range(3):
        assignment = next_assignment(queue, user)
        assert assignment
        item_ids.append(assignment.item_id)
        Assignment.objects.filter(pk=assignment.pk).update(state=Assignment.State.FINISHED, submitted_at=Now())
    assert item_ids[-1] == first.item_id
    assert len(set(item_ids)) == 3


def test_skipped_item_is_not_served_again_to_the_same_reviewer() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = reviewers_of(queue)
    assignment = next_assignment(queue, first)
    assert assignment
    skip(assignment)
    assert next_assignment(queue, first) is None
    assert next_assignment(queue, second)


def test_expired_lease_can_be_extended_until_it_is_reassigned() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = reviewers_of(queue)
    assignment = next_assignment(queue, first)
    assert assignment
    expire_lease(assignment)
    assert extend_lease(assignment).state == Assignment.State.LEASED
    expire_lease(assignment)
    assert next_assignment(queue, second)
    with pytest.raises(DomainError) as error:
        extend_lease(load_assignment(assignment.pk))
    assert error.value.code == "slot_taken"


def test_lease_can_be_extended_after_another_reviewer_released_the_item() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = reviewers_of(queue)
    assignment = next_assignment(queue, first)
    assert assignment
    expire_lease(assignment)
    other_assignment = next_assignment(queue, second)
    assert other_assignment
    release(other_assignment)
    assert extend_lease(load_assignment(assignment.pk)).fence == 2


def test_expired_lease_of_a_closed_queue_is_not_extended() -> None:
    queue = one_item_queue()
    assignment = next_assignment(queue, reviewers_of(queue)[0])
    assert assignment
    Assignment.objects.filter(pk=assignment.pk).update(state=Assignment.State.EXPIRED)
    ReviewQueue.objects.update(state=ReviewQueue.State.CLOSED)
    with pytest.raises(DomainError) as error:
        extend_lease(load_assignment(assignment.pk))
    assert error.value.code == "queue_closed"


def test_item_reserved_for_another_reviewer_is_no_candidate() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = reviewers_of(queue)
    Reservation.objects.create(item=queue.items.get(), reviewer=second)
    queue.items.update(reserved=True)
    for reviewer, expected_items in ((first, []), (second, list(queue.items.all()))):
        member = queue.members.get(reviewer=reviewer)
        member.now = timezone.now()
        assert [item for item, _ in candidate_items(queue, member, [])] == expected_items


def test_reviewers_take_all_items_from_their_own_offsets() -> None:
    queue = make_queue(make_scored_run(make_answer_set(make_question_set(specs=12))), reviewers=2, reviews_needed=2)
    assert len(set(queue.members.values_list("offset", flat=True))) == 2  # on a small ring both may begin with one item
    orders = []
    for user in reviewers_of(queue):
        order = []
        while assignment := next_assignment(queue, user):
            order.append(assignment.item_id)
            Assignment.objects.filter(pk=assignment.pk).update(state=Assignment.State.FINISHED, submitted_at=Now())
        orders.append(order)
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(queue.items.values_list("pk", flat=True))


def test_items_are_served_from_the_offset_and_wrap_around() -> None:
    queue = make_queue(make_scored_run(make_answer_set(make_question_set(specs=5))))
    (user,) = reviewers_of(queue)
    keys = list(queue.items.order_by("shuffle_key").values_list("shuffle_key", flat=True))
    QueueMember.objects.filter(queue=queue).update(offset=keys[2])
    served_keys = []
    while assignment := next_assignment(queue, user):
        served_keys.append(assignment.item.shuffle_key)
        Assignment.objects.filter(pk=assignment.pk).update(state=Assignment.State.FINISHED, submitted_at=Now())
    assert served_keys == [keys[3], keys[4], keys[0], keys[1], keys[2]]


def test_closed_queue_and_strangers_get_nothing() -> None:
    queue = make_queue()
    (user,) = reviewers_of(queue)
    with pytest.raises(DomainError) as error:
        next_assignment(queue, make_user("lead", queue.project))
    assert error.value.code == "not_a_member"
    queue.state = ReviewQueue.State.CLOSED
    with pytest.raises(DomainError) as error:
        next_assignment(queue, user)
    assert error.value.code == "queue_closed"


@pytest.mark.parametrize("state", [ReviewItem.State.DONE, ReviewItem.State.WITHDRAWN, ReviewItem.State.DISPUTED])
def test_only_open_items_are_served(state: str) -> None:
    queue = one_item_queue()
    (user,) = reviewers_of(queue)
    queue.items.update(state=state)
    assert next_assignment(queue, user) is None


@pytest.mark.parametrize("needed", [1, 2])
def test_new_item_costs_a_fixed_number_of_queries(needed: int, django_assert_num_queries: object) -> None:
    queue = make_queue(
        make_scored_run(make_answer_set(make_question_set(specs=30))), reviewers=2, reviews_needed=needed
    )
    queue.members.update(offset=0)  # so that no walk passes the end of the ring, which takes one query more
    for user in reviewers_of(queue):
        for _ in range(2):
            with django_assert_num_queries(7):  # type: ignore[operator]
                assignment = next_assignment(queue, user)
            assert assignment
            Assignment.objects.filter(pk=assignment.pk).update(state=Assignment.State.FINISHED, submitted_at=Now())


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite, as it is set up, never waits for the disk")
@pytest.mark.django_db(transaction=True)
def test_only_leasing_skips_the_disk_flush() -> None:
    def run_sql(statement: str) -> list[tuple[str]]:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    queue = make_queue()
    (user,) = reviewers_of(queue)
    run_sql("SET synchronous_commit = on")  # a server of tests may wait for nothing
    try:
        with transaction.atomic():
            assert next_assignment(queue, user)
            assert run_sql("SHOW synchronous_commit") == [("off",)]
        assert run_sql("SHOW synchronous_commit") == [("on",)]
    finally:
        run_sql("RESET synchronous_commit")


def test_asking_for_the_held_item_again_costs_five_queries(django_assert_num_queries: object) -> None:
    queue = make_queue()
    (user,) = reviewers_of(queue)
    next_assignment(queue, user)
    with django_assert_num_queries(5):  # type: ignore[operator]
        next_assignment(queue, user)


def queue_with_prefetched_item(reviewers: int = 2) -> tuple[ReviewQueue, list[User], Assignment, Assignment]:
    """A queue of two items: the first reviewer holds one, and the browser has prefetched the other."""
    queue = make_queue(make_scored_run(make_answer_set(make_question_set(specs=2))), reviewers=reviewers)
    users = reviewers_of(queue)
    current = next_assignment(queue, users[0])
    assert current is not None
    prefetched = prefetch_assignment(queue, users[0], current)
    assert prefetched is not None
    return queue, users, current, prefetched


def test_prefetched_item_goes_to_a_reviewer_without_items() -> None:
    queue, (first, second, third), current, prefetched = queue_with_prefetched_item(reviewers=3)
    new_assignment = next_assignment(queue, second)
    assert new_assignment is not None
    assert new_assignment.item_id == prefetched.item_id
    assert next_assignment(queue, first) == current
    assert next_assignment(queue, third) is None  # both items are shown to somebody now
    with pytest.raises(DomainError, match="slot_taken"):
        extend_lease(prefetched)


def test_lost_prefetched_item_returns_when_it_is_free() -> None:
    queue, (first, second), current, prefetched = queue_with_prefetched_item()
    new_assignment = next_assignment(queue, second)
    assert new_assignment is not None
    skip(new_assignment)
    skip(current)
    returned_assignment = next_assignment(queue, first)
    assert returned_assignment is not None
    assert (returned_assignment.pk, returned_assignment.item_id) == (prefetched.pk, prefetched.item_id)


def test_item_opened_after_skipping_is_not_taken_away() -> None:
    queue, (_, second), current, _ = queue_with_prefetched_item()
    skip(current)  # the browser shows the reserved one
    new_assignment = next_assignment(queue, second)
    assert new_assignment is not None
    assert new_assignment.item_id == current.item_id


@pytest.mark.parametrize("why", ["draft", "reserved"])
def test_prefetched_item_with_draft_or_reservation_stays(why: str) -> None:
    queue, (first, second), _, prefetched = queue_with_prefetched_item()
    if why == "draft":
        save_draft(prefetched, {"comment": "half written"})
    else:
        Reservation.objects.create(item=prefetched.item, reviewer=first)
        ReviewItem.objects.filter(pk=prefetched.item_id).update(reserved=True)
    assert next_assignment(queue, second) is None


def test_item_prefetched_by_another_reviewer_is_not_prefetched() -> None:
    queue = make_queue(make_scored_run(make_answer_set(make_question_set(specs=3))), reviewers=2)
    first, second = reviewers_of(queue)
    for user in (first, second):
        in_hand = next_assignment(queue, user)
        assert in_hand is not None
        assert (prefetch_assignment(queue, user, in_hand) is not None) == (user == first)
