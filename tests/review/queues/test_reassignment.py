"""A lead gives answers to other people, takes them back, gives more time; ratings stay."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from evaluation.core.errors import DomainError
from evaluation.core.roles import Role
from evaluation.models import AuditEvent, User
from review.evidence.rating_input import RatingInput
from review.models import Assignment, Draft, ItemEvent, Rating, Reservation, ReviewQueue
from review.queues.reassignment import (
    MoveCounts,
    extend_all,
    invite_reviewers,
    reassign,
    release_all,
    set_deadline,
    set_item_reviewers,
)
from review.ratings.leases import extend_lease, load_assignment, next_assignment
from review.ratings.submitting import save_draft, submit
from tests.concurrency import WAITS, together
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
VALUES = {"correctness": RatingInput(value=3), "faithfulness": RatingInput(value=3)}


def queue_of(count: int = 6, people: int = 2, distribution: str = "round_robin", **fields: object) -> ReviewQueue:
    run = make_scored_run(make_answer_set(make_question_set(specs=count)))
    return make_queue(run, people, distribution=distribution, **fields)


def members(queue: ReviewQueue) -> list[User]:
    return [member.reviewer for member in queue.members.select_related("reviewer").order_by("pk")]


def rate(held: Assignment | None) -> Assignment:
    assert held
    return submit(held, VALUES, idempotency_key=f"k{held.pk}-{held.fence}", by=held.reviewer).assignment


def walk(queue: ReviewQueue, user: User) -> set[int]:
    items = set()
    while held := next_assignment(queue, user):
        items.add(held.item_id)
        rate(held)
    return items


def test_everything_unrated_goes_to_another_person_and_ratings_stay() -> None:
    queue = queue_of()
    ill, well = members(queue)
    rated = rate(next_assignment(queue, ill))
    held = next_assignment(queue, ill)
    assert held
    lead = make_user(Role.LEAD, queue.project)
    assert reassign(queue, ill, well, by=lead) == MoveCounts(moved=2, kept=0)  # 3 of 6, one of them rated
    assert next_assignment(queue, ill) is None
    assert len(walk(queue, well)) == 5
    assert Rating.objects.filter(assignment=rated).count() == 2
    event = AuditEvent.objects.get(verb="queue_reassigned")
    assert (event.actor, event.detail) == (lead, {"items": 2, "giver": ill.pk, "taker": well.pk})


def test_what_was_taken_away_cannot_be_submitted_and_the_draft_stays() -> None:
    queue = queue_of()
    ill, well = members(queue)
    held = next_assignment(queue, ill)
    assert held
    save_draft(held, {"values": {"correctness": {"value": 2}}, "comment": "half"})
    reassign(queue, ill, well, by=None)
    with pytest.raises(DomainError) as refused:
        submit(load_assignment(held.pk), VALUES, idempotency_key="x", by=ill)
    assert refused.value.code == "slot_taken"
    with pytest.raises(DomainError):
        extend_lease(load_assignment(held.pk))
    assert Draft.objects.get(assignment=held).payload["values"]["correctness"]["value"] in {2, 3}


def test_an_answer_in_the_pool_is_kept_for_the_taker() -> None:
    queue = queue_of(1, 3, "pool")
    ill, well, other = members(queue)
    assert next_assignment(queue, ill)
    assert reassign(queue, ill, well, by=None) == MoveCounts(1, 0)
    assert next_assignment(queue, ill) is None
    assert next_assignment(queue, other) is None
    assert next_assignment(queue, well)


def test_an_answer_the_other_person_has_had_is_kept() -> None:
    queue = queue_of(1, 2, "round_robin", reviews_needed=2)
    first, second = members(queue)
    rate(next_assignment(queue, second))
    assert reassign(queue, first, second, by=None) == MoveCounts(0, 1)
    assert next_assignment(queue, first)


def test_only_members_take_over_and_nobody_from_themselves() -> None:
    queue = queue_of()
    first, _ = members(queue)
    for taker, code in ((make_user(Role.REVIEWER, queue.project), "not_a_reviewer"), (first, "same_person")):
        with pytest.raises(DomainError) as refused:
            reassign(queue, first, taker, by=None)
        assert refused.value.code == code


def test_named_people_and_nobody_else_rate_an_answer() -> None:
    queue = queue_of(2, 3, "pool")
    first, second, third = members(queue)
    item = queue.items.order_by("pk")[0]
    assert set_item_reviewers(queue, [item.pk], [first, second], by=None) == 1
    item.refresh_from_db()
    assert (item.reserved, item.reviews_needed) == (True, 2)
    assert item.pk not in walk(queue, third)
    assert walk(queue, first) == walk(queue, second) == {item.pk}


def test_naming_others_takes_an_answer_out_of_a_hand_but_never_from_who_has_rated() -> None:
    queue = queue_of(2, 3, "pool", reviews_needed=2)
    rater, holder, named = members(queue)
    item = queue.items.order_by("pk")[0]
    set_item_reviewers(queue, [item.pk], [rater, holder], by=None)
    other = queue.items.exclude(pk=item.pk).get()
    set_item_reviewers(queue, [other.pk], [named], by=None)
    rate(next_assignment(queue, rater))
    held = next_assignment(queue, holder)
    assert held
    set_item_reviewers(queue, [item.pk], [named], by=None)
    held.refresh_from_db()
    assert held.state == "expired"
    assert set(Reservation.objects.filter(item=item).values_list("reviewer", flat=True)) == {rater.pk, named.pk}
    item.refresh_from_db()
    assert item.reviews_needed == 2
    assert item.pk in walk(queue, named)


def test_what_is_in_hand_is_given_back_or_prolonged() -> None:
    queue = queue_of()
    user, _ = members(queue)
    held = next_assignment(queue, user)
    assert held
    Assignment.objects.filter(pk=held.pk).update(lease_until=timezone.now() + timedelta(seconds=5))
    assert extend_all(queue, user, by=None) == 1
    held.refresh_from_db()
    assert held.lease_until > timezone.now() + timedelta(minutes=25)
    assert release_all(queue, user, by=None) == 1
    held.refresh_from_db()
    assert held.state == "expired"
    assert ItemEvent.objects.filter(assignment=held, verb="release").count() == 1
    assert release_all(queue, user, by=None) == 0


@WAITS
@pytest.mark.django_db(transaction=True)
def test_two_who_take_back_at_the_same_moment_take_back_once() -> None:
    queue = queue_of()
    user = members(queue)[0]
    for turn in range(10):
        held = next_assignment(queue, user)
        assert held
        results = together(*[lambda: release_all(queue, user, by=None)] * 2)
        assert sorted(results) == [0, 1], turn
        assert ItemEvent.objects.filter(verb="release").count() == turn + 1


def test_a_deadline_moves_forward_or_goes() -> None:
    queue = queue_of()
    later = timezone.now() + timedelta(days=3)
    set_deadline(queue, later, by=None)
    queue.refresh_from_db()
    assert queue.deadline == later
    set_deadline(queue, None, by=None)
    with pytest.raises(DomainError) as refused:
        set_deadline(queue, timezone.now() - timedelta(minutes=1), by=None)
    assert refused.value.code == "deadline_passed"
    assert AuditEvent.objects.filter(verb="queue_deadline").count() == 2


def test_more_people_may_be_let_in_from_the_project_only() -> None:
    queue = queue_of(3, 1, "pool")
    more = make_user(Role.REVIEWER, queue.project)
    invite_reviewers(queue, [more], by=None)
    assert next_assignment(queue, more)
    with pytest.raises(DomainError) as refused:
        invite_reviewers(queue, [make_user(Role.REVIEWER)], by=None)
    assert refused.value.code == "not_in_project"
