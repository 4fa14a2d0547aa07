"""Reassignment by a lead: moving, releasing and extending leases; ratings stay."""

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
from tests.concurrency import WAITS, run_concurrently
from tests.factories import make_answer_set, make_question_set, make_queue, make_scored_run, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
VALUES = {"correctness": RatingInput(value=3), "faithfulness": RatingInput(value=3)}


def queue_of(count: int = 6, reviewers: int = 2, distribution: str = "round_robin", **fields: object) -> ReviewQueue:
    run = make_scored_run(make_answer_set(make_question_set(specs=count)))
    return make_queue(run, reviewers, distribution=distribution, **fields)


def members(queue: ReviewQueue) -> list[User]:
    return [member.reviewer for member in queue.members.select_related("reviewer").order_by("pk")]


def rate(assignment: Assignment | None) -> Assignment:
    assert assignment
    return submit(
        assignment, VALUES, idempotency_key=f"k{assignment.pk}-{assignment.fence}", by=assignment.reviewer
    ).assignment


def rate_all(queue: ReviewQueue, user: User) -> set[int]:
    items = set()
    while assignment := next_assignment(queue, user):
        items.add(assignment.item_id)
        rate(assignment)
    return items


def test_unrated_items_are_reassigned_and_ratings_stay() -> None:
    queue = queue_of()
    ill, well = members(queue)
    rated_assignment = rate(next_assignment(queue, ill))
    open_assignment = next_assignment(queue, ill)
    assert open_assignment
    lead = make_user(Role.LEAD, queue.project)
    assert reassign(queue, ill, well, by=lead) == MoveCounts(moved=2, kept=0)  # 3 of 6, one of them rated
    assert next_assignment(queue, ill) is None
    assert len(rate_all(queue, well)) == 5
    assert Rating.objects.filter(assignment=rated_assignment).count() == 2
    event = AuditEvent.objects.get(verb="queue_reassigned")
    assert (event.actor, event.detail) == (lead, {"items": 2, "giver": ill.pk, "taker": well.pk})


def test_reassigned_item_cannot_be_submitted_and_the_draft_stays() -> None:
    queue = queue_of()
    ill, well = members(queue)
    assignment = next_assignment(queue, ill)
    assert assignment
    save_draft(assignment, {"values": {"correctness": {"value": 2}}, "comment": "half"})
    reassign(queue, ill, well, by=None)
    with pytest.raises(DomainError) as error:
        submit(load_assignment(assignment.pk), VALUES, idempotency_key="x", by=ill)
    assert error.value.code == "slot_taken"
    with pytest.raises(DomainError):
        extend_lease(load_assignment(assignment.pk))
    assert Draft.objects.get(assignment=assignment).payload["values"]["correctness"]["value"] in {2, 3}


def test_pool_item_is_reserved_for_the_new_reviewer() -> None:
    queue = queue_of(1, 3, "pool")
    ill, well, third_reviewer = members(queue)
    assert next_assignment(queue, ill)
    assert reassign(queue, ill, well, by=None) == MoveCounts(1, 0)
    assert next_assignment(queue, ill) is None
    assert next_assignment(queue, third_reviewer) is None
    assert next_assignment(queue, well)


def test_item_already_seen_by_the_new_reviewer_is_not_moved() -> None:
    queue = queue_of(1, 2, "round_robin", reviews_needed=2)
    first, second = members(queue)
    rate(next_assignment(queue, second))
    assert reassign(queue, first, second, by=None) == MoveCounts(0, 1)
    assert next_assignment(queue, first)


def test_reassignment_requires_another_member() -> None:
    queue = queue_of()
    first, _ = members(queue)
    for taker, code in ((make_user(Role.REVIEWER, queue.project), "not_a_reviewer"), (first, "same_person")):
        with pytest.raises(DomainError) as error:
            reassign(queue, first, taker, by=None)
        assert error.value.code == code


def test_only_named_reviewers_rate_an_answer() -> None:
    queue = queue_of(2, 3, "pool")
    first, second, third = members(queue)
    item = queue.items.order_by("pk")[0]
    assert set_item_reviewers(queue, [item.pk], [first, second], by=None) == 1
    item.refresh_from_db()
    assert (item.reserved, item.reviews_needed) == (True, 2)
    assert item.pk not in rate_all(queue, third)
    assert rate_all(queue, first) == rate_all(queue, second) == {item.pk}


def test_naming_reviewers_releases_leases_but_keeps_ratings() -> None:
    queue = queue_of(2, 3, "pool", reviews_needed=2)
    rater, holder, new_reviewer = members(queue)
    item = queue.items.order_by("pk")[0]
    set_item_reviewers(queue, [item.pk], [rater, holder], by=None)
    other_item = queue.items.exclude(pk=item.pk).get()
    set_item_reviewers(queue, [other_item.pk], [new_reviewer], by=None)
    rate(next_assignment(queue, rater))
    assignment = next_assignment(queue, holder)
    assert assignment
    set_item_reviewers(queue, [item.pk], [new_reviewer], by=None)
    assignment.refresh_from_db()
    assert assignment.state == "expired"
    assert set(Reservation.objects.filter(item=item).values_list("reviewer", flat=True)) == {rater.pk, new_reviewer.pk}
    item.refresh_from_db()
    assert item.reviews_needed == 2
    assert item.pk in rate_all(queue, new_reviewer)


def test_leases_are_released_or_extended() -> None:
    queue = queue_of()
    user, _ = members(queue)
    assignment = next_assignment(queue, user)
    assert assignment
    Assignment.objects.filter(pk=assignment.pk).update(lease_until=timezone.now() + timedelta(seconds=5))
    assert extend_all(queue, user, by=None) == 1
    assignment.refresh_from_db()
    assert assignment.lease_until > timezone.now() + timedelta(minutes=25)
    assert release_all(queue, user, by=None) == 1
    assignment.refresh_from_db()
    assert assignment.state == "expired"
    assert ItemEvent.objects.filter(assignment=assignment, verb="release").count() == 1
    assert release_all(queue, user, by=None) == 0


@WAITS
@pytest.mark.django_db(transaction=True)
def test_concurrent_releases_release_once() -> None:
    queue = queue_of()
    user = members(queue)[0]
    for attempt in range(10):
        assignment = next_assignment(queue, user)
        assert assignment
        results = run_concurrently(*[lambda: release_all(queue, user, by=None)] * 2)
        assert sorted(results) == [0, 1], attempt
        assert ItemEvent.objects.filter(verb="release").count() == attempt + 1


def test_deadline_moves_forward_or_is_removed() -> None:
    queue = queue_of()
    new_deadline = timezone.now() + timedelta(days=3)
    set_deadline(queue, new_deadline, by=None)
    queue.refresh_from_db()
    assert queue.deadline == new_deadline
    set_deadline(queue, None, by=None)
    with pytest.raises(DomainError) as error:
        set_deadline(queue, timezone.now() - timedelta(minutes=1), by=None)
    assert error.value.code == "deadline_passed"
    assert AuditEvent.objects.filter(verb="queue_deadline").count() == 2


def test_reviewers_are_invited_from_the_project_only() -> None:
    queue = queue_of(3, 1, "pool")
    new_reviewer = make_user(Role.REVIEWER, queue.project)
    invite_reviewers(queue, [new_reviewer], by=None)
    assert next_assignment(queue, new_reviewer)
    with pytest.raises(DomainError) as error:
        invite_reviewers(queue, [make_user(Role.REVIEWER)], by=None)
    assert error.value.code == "not_in_project"
