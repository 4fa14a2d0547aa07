"""Leases: nobody collides, nothing is lost, and a lapsed lease finds its way (R1)."""

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


def people(queue: ReviewQueue) -> list[User]:
    return [member.reviewer for member in queue.members.select_related("reviewer").order_by("pk")]


def lapse(assignment: Assignment) -> None:
    Assignment.objects.filter(pk=assignment.pk).update(lease_until=Now() - timedelta(seconds=1))


def one_item_queue(**fields: object) -> ReviewQueue:
    return make_queue(make_scored_run(make_answer_set(make_question_set(specs=1))), **fields)


def test_the_same_person_is_given_the_same_item_until_it_is_done() -> None:
    queue = make_queue()
    (user,) = people(queue)
    first = next_assignment(queue, user)
    assert first is not None
    assert next_assignment(queue, user) == first
    assert Assignment.objects.count() == 1


def test_two_reviewers_never_hold_one_item_with_one_review_needed() -> None:
    queue = make_queue(reviewers=3)
    held = [next_assignment(queue, user) for user in people(queue)]
    assert len({one.item_id for one in held if one}) == 3
    assert {one.slot for one in held if one} == {1}


def test_the_only_item_is_nobody_elses_while_it_is_held() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = people(queue)
    assert next_assignment(queue, first)
    assert next_assignment(queue, second) is None


def test_two_needed_reviews_are_two_different_people_and_a_third_gets_nothing() -> None:
    queue = one_item_queue(reviewers=3, reviews_needed=2)
    first, second, third = people(queue)
    held = [next_assignment(queue, first), next_assignment(queue, second)]
    assert [one.slot for one in held if one] == [1, 2]
    assert next_assignment(queue, third) is None


def test_a_lapsed_lease_goes_to_the_next_person_and_the_draft_stays() -> None:
    queue = one_item_queue(reviewers=2)
    slow, quick = people(queue)
    held = next_assignment(queue, slow)
    assert held
    save_draft(held, {"values": {"correctness": {"value": 2}}, "comment": "half written"})
    lapse(held)
    taken = next_assignment(queue, quick)
    assert taken
    assert (taken.item_id, taken.reviewer) == (held.item_id, quick)
    held.refresh_from_db()
    assert held.state == Assignment.State.EXPIRED
    assert Draft.objects.get(assignment=held).payload["comment"] == "half written"


def test_the_same_person_gets_an_own_lapsed_item_back_first() -> None:
    queue = make_queue(reviewers=1)
    (user,) = people(queue)
    held = next_assignment(queue, user)
    assert held
    lapse(held)
    again = next_assignment(queue, user)
    assert again == held
    assert Assignment.objects.filter(pk=held.pk, lease_until__gt=Now()).exists()


def test_a_lapsed_lease_is_left_alone_while_another_slot_is_free() -> None:
    queue = one_item_queue(reviewers=2, reviews_needed=2)
    slow, quick = people(queue)
    held = next_assignment(queue, slow)
    assert held
    lapse(held)
    taken = next_assignment(queue, quick)
    assert taken
    assert taken.slot == 2
    held.refresh_from_db()
    assert held.state == Assignment.State.LEASED


def test_a_released_item_comes_back_after_all_others() -> None:
    queue = make_queue(make_scored_run(make_answer_set(make_question_set(specs=3))))
    (user,) = people(queue)
    first = next_assignment(queue, user)
    assert first
    release(first)
    seen = []
    for _ in range(3):
        held = next_assignment(queue, user)
        assert held
        seen.append(held.item_id)
        Assignment.objects.filter(pk=held.pk).update(state=Assignment.State.FINISHED, submitted_at=Now())
    assert seen[-1] == first.item_id
    assert len(set(seen)) == 3


def test_a_skipped_item_never_comes_back_to_who_skipped_it() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = people(queue)
    held = next_assignment(queue, first)
    assert held
    skip(held)
    assert next_assignment(queue, first) is None
    assert next_assignment(queue, second)


def test_a_lease_can_be_prolonged_after_it_lapsed_as_long_as_nobody_took_it() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = people(queue)
    held = next_assignment(queue, first)
    assert held
    lapse(held)
    assert extend_lease(held).state == Assignment.State.LEASED
    lapse(held)
    assert next_assignment(queue, second)
    with pytest.raises(DomainError) as refused:
        extend_lease(load_assignment(held.pk))
    assert refused.value.code == "slot_taken"


def test_an_item_taken_away_and_given_back_can_be_prolonged_again() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = people(queue)
    held = next_assignment(queue, first)
    assert held
    lapse(held)
    other = next_assignment(queue, second)
    assert other
    release(other)
    assert extend_lease(load_assignment(held.pk)).fence == 2


def test_a_lapsed_lease_of_a_closed_queue_is_not_prolonged() -> None:
    queue = one_item_queue()
    held = next_assignment(queue, people(queue)[0])
    assert held
    Assignment.objects.filter(pk=held.pk).update(state=Assignment.State.EXPIRED)
    ReviewQueue.objects.update(state=ReviewQueue.State.CLOSED)
    with pytest.raises(DomainError) as refused:
        extend_lease(load_assignment(held.pk))
    assert refused.value.code == "queue_closed"


def test_an_item_kept_for_somebody_else_is_not_even_tried() -> None:
    queue = one_item_queue(reviewers=2)
    first, second = people(queue)
    Reservation.objects.create(item=queue.items.get(), reviewer=second)
    queue.items.update(reserved=True)
    for person, kept in ((first, []), (second, list(queue.items.all()))):
        member = queue.members.get(reviewer=person)
        member.now = timezone.now()
        assert [item for item, _ in candidate_items(queue, member, [])] == kept


def test_every_reviewer_walks_all_items_from_a_place_of_their_own() -> None:
    queue = make_queue(make_scored_run(make_answer_set(make_question_set(specs=12))), reviewers=2, reviews_needed=2)
    assert len(set(queue.members.values_list("offset", flat=True))) == 2  # on a small ring both may begin with one item
    orders = []
    for user in people(queue):
        order = []
        while held := next_assignment(queue, user):
            order.append(held.item_id)
            Assignment.objects.filter(pk=held.pk).update(state=Assignment.State.FINISHED, submitted_at=Now())
        orders.append(order)
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(queue.items.values_list("pk", flat=True))


def test_the_ring_is_walked_from_the_members_offset_and_round_its_end() -> None:
    queue = make_queue(make_scored_run(make_answer_set(make_question_set(specs=5))))
    (user,) = people(queue)
    keys = list(queue.items.order_by("shuffle_key").values_list("shuffle_key", flat=True))
    QueueMember.objects.filter(queue=queue).update(offset=keys[2])
    walked = []
    while held := next_assignment(queue, user):
        walked.append(held.item.shuffle_key)
        Assignment.objects.filter(pk=held.pk).update(state=Assignment.State.FINISHED, submitted_at=Now())
    assert walked == [keys[3], keys[4], keys[0], keys[1], keys[2]]


def test_a_closed_queue_serves_nothing_and_a_stranger_gets_nothing() -> None:
    queue = make_queue()
    (user,) = people(queue)
    with pytest.raises(DomainError) as refused:
        next_assignment(queue, make_user("lead", queue.project))
    assert refused.value.code == "not_a_member"
    queue.state = ReviewQueue.State.CLOSED
    with pytest.raises(DomainError) as refused:
        next_assignment(queue, user)
    assert refused.value.code == "queue_closed"


@pytest.mark.parametrize("state", [ReviewItem.State.DONE, ReviewItem.State.WITHDRAWN, ReviewItem.State.DISPUTED])
def test_only_open_items_are_served(state: str) -> None:
    queue = one_item_queue()
    (user,) = people(queue)
    queue.items.update(state=state)
    assert next_assignment(queue, user) is None


@pytest.mark.parametrize("needed", [1, 2])
def test_a_new_item_costs_the_same_queries_whatever_the_queue_holds(
    needed: int, django_assert_num_queries: object
) -> None:
    queue = make_queue(
        make_scored_run(make_answer_set(make_question_set(specs=30))), reviewers=2, reviews_needed=needed
    )
    queue.members.update(offset=0)  # so that no walk passes the end of the ring, which takes one query more
    for user in people(queue):
        for _ in range(2):
            with django_assert_num_queries(7):  # type: ignore[operator]
                held = next_assignment(queue, user)
            assert held
            Assignment.objects.filter(pk=held.pk).update(state=Assignment.State.FINISHED, submitted_at=Now())


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite, as it is set up, never waits for the disk")
@pytest.mark.django_db(transaction=True)
def test_only_handing_out_does_not_wait_for_the_disk() -> None:
    def asked(statement: str) -> list[tuple[str]]:
        with connection.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall()) if cursor.description else []

    queue = make_queue()
    (user,) = people(queue)
    asked("SET synchronous_commit = on")  # a server of tests may wait for nothing
    try:
        with transaction.atomic():
            assert next_assignment(queue, user)
            assert asked("SHOW synchronous_commit") == [("off",)]
        assert asked("SHOW synchronous_commit") == [("on",)]
    finally:
        asked("RESET synchronous_commit")


def test_asking_again_for_the_held_item_costs_five_queries(django_assert_num_queries: object) -> None:
    queue = make_queue()
    (user,) = people(queue)
    next_assignment(queue, user)
    with django_assert_num_queries(5):  # type: ignore[operator]
        next_assignment(queue, user)


def two_items_one_reserved_ahead(reviewers: int = 2) -> tuple[ReviewQueue, list[User], Assignment, Assignment]:
    """A queue of two items: the first person has one in hand, and their browser has reserved the other ahead."""
    queue = make_queue(make_scored_run(make_answer_set(make_question_set(specs=2))), reviewers=reviewers)
    everybody = people(queue)
    in_hand = next_assignment(queue, everybody[0])
    assert in_hand is not None
    ahead = prefetch_assignment(queue, everybody[0], in_hand)
    assert ahead is not None
    return queue, everybody, in_hand, ahead


def test_an_item_reserved_ahead_goes_to_whoever_would_get_nothing() -> None:
    queue, (first, second, third), in_hand, ahead = two_items_one_reserved_ahead(reviewers=3)
    taken = next_assignment(queue, second)
    assert taken is not None
    assert taken.item_id == ahead.item_id
    assert next_assignment(queue, first) == in_hand
    assert next_assignment(queue, third) is None  # both items are shown to somebody now
    with pytest.raises(DomainError, match="slot_taken"):
        extend_lease(ahead)


def test_whoever_lost_an_item_reserved_ahead_gets_it_back_when_it_is_free() -> None:
    queue, (first, second), in_hand, ahead = two_items_one_reserved_ahead()
    taken = next_assignment(queue, second)
    assert taken is not None
    skip(taken)
    skip(in_hand)
    again = next_assignment(queue, first)
    assert again is not None
    assert (again.pk, again.item_id) == (ahead.pk, ahead.item_id)


def test_an_item_that_came_up_after_the_one_in_hand_is_not_taken_away() -> None:
    queue, (_, second), in_hand, _ = two_items_one_reserved_ahead()
    skip(in_hand)  # the browser shows the reserved one
    taken = next_assignment(queue, second)
    assert taken is not None
    assert taken.item_id == in_hand.item_id


@pytest.mark.parametrize("why", ["draft", "reserved"])
def test_an_item_reserved_ahead_stays_where_it_may_not_change_hands(why: str) -> None:
    queue, (first, second), _, ahead = two_items_one_reserved_ahead()
    if why == "draft":
        save_draft(ahead, {"comment": "half written"})
    else:
        Reservation.objects.create(item=ahead.item, reviewer=first)
        ReviewItem.objects.filter(pk=ahead.item_id).update(reserved=True)
    assert next_assignment(queue, second) is None


def test_nobody_reserves_ahead_what_somebody_else_reserved_ahead() -> None:
    queue = make_queue(make_scored_run(make_answer_set(make_question_set(specs=3))), reviewers=2)
    first, second = people(queue)
    for user in (first, second):
        in_hand = next_assignment(queue, user)
        assert in_hand is not None
        assert (prefetch_assignment(queue, user, in_hand) is not None) == (user == first)
