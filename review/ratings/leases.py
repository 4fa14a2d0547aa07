"""Leases: the next item for a reviewer on the ring of shuffle keys, and its lease: taken, extended, released, expired.

Times are the database's. Constraints and guards of the database prevent two reviewers on one slot and two assignments
of one person to an item; the loser of a race tries the next item. Every change of an assignment locks its item first,
so that simultaneous changes run one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from evaluation.core.errors import DomainError
from evaluation.models import User
from review.evidence.answers import record_exposure
from review.models import Assignment, Reservation, ReviewItem, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.models.statements import (
    COUNT_SERVED,
    EXTEND_LEASE,
    FREE_AFTER_OFFSET,
    FREE_LAPSED,
    FREE_UP_TO_OFFSET,
    LEASE,
    MEMBER,
    OLDEST_LEASE,
    SLOTS,
    assemble_assignment,
)
from review.ratings.item_state import due_repeats


def candidate_items(queue: ReviewQueue, member: Any, lost_ids: Sequence[int]) -> Iterator[tuple[ReviewItem, bool]]:
    """Yield the items the person may get, without ``lost_ids``: a due repeat, the next new item after the member's
    offset, then before it, then an own expired lease, which is marked. All but repeats are locked."""
    if queue.repeat_share > 0:
        yield from ((item, lapsed) for item, lapsed in due_repeats(queue, member) if item.pk not in lost_ids)
    values = {"queue": queue.pk, "reviewer": member.reviewer_id, "offset": member.offset, "now": member.now}
    for statement in (FREE_AFTER_OFFSET, FREE_UP_TO_OFFSET, FREE_LAPSED):
        if row := statement.first(**values, lost=[0, *lost_ids]):
            item, answer, question = row
            answer.question, item.answer = question, answer
            yield item, statement is FREE_LAPSED


State = Assignment.State
LAPSED = Q(state=State.LEASED, lease_until__lt=Now())
_CARD_RELATIONS = ("item__queue", "item__answer__question")


class _SlotLost(Exception):
    """Another reviewer took the slot of this item first."""

    def __init__(self, item_id: int) -> None:
        self.item_id = item_id


def next_assignment(queue: ReviewQueue, user: User) -> Assignment | None:
    """Lease the item that the user should rate now; ``None`` if there is none at this time.

    The order is: the own open lease, extended; a due hidden repeat; the next open item on the ring of shuffle keys that
    is available to the user, has a free slot and was never theirs; items whose lease they let expire; an item that
    another reviewer's browser prefetched and never showed.

    :raises DomainError: ``queue_closed`` or ``not_a_member``."""
    if queue.state != ReviewQueue.State.OPEN:
        raise DomainError("queue_closed")

    def attempt(lost_ids: Sequence[int]) -> Assignment | None:
        if (member := _member(queue, user)) is None:
            raise DomainError("not_a_member")
        return (
            _own_lease(queue, member)
            or _lease_next(queue, member, lost_ids)
            or _lease_prefetched(queue, member, lost_ids)
        )

    assignment = _retry_lost_slots(attempt)
    if assignment and queue.mode == ReviewQueue.Mode.ASSISTED:
        record_exposure(user, assignment.item.answer, "assisted")
    return assignment


def prefetch_assignment(queue: ReviewQueue, user: User, current: Assignment) -> Assignment | None:
    """Lease the item after the current one in advance, so that the browser can show it at once. ``None`` if there is
    none, or if ``current`` is no longer leased. Nobody holds more than one prefetched item."""
    if queue.state != ReviewQueue.State.OPEN:
        return None

    def attempt(lost_ids: Sequence[int]) -> Assignment | None:
        member = _member(queue, user)
        leases = Assignment.objects.filter(queue=queue, reviewer=user, state=State.LEASED)
        if member is None or not leases.filter(pk=current.pk).exists():
            return None
        other_leases = leases.exclude(pk=current.pk).select_related(*_CARD_RELATIONS)
        prefetched_lease = other_leases.filter(item__state=ReviewItem.State.OPEN).order_by("pk").first()
        return prefetched_lease or _lease_next(queue, member, lost_ids)

    prefetched = _retry_lost_slots(attempt)
    if prefetched and queue.mode == ReviewQueue.Mode.ASSISTED:
        record_exposure(user, prefetched.item.answer, "assisted")
    return prefetched


def _retry_lost_slots(attempt: Callable[[Sequence[int]], Assignment | None]) -> Assignment | None:
    """Repeat the attempt until no slot is lost, each time in its own transaction, so that the lost item is unlocked
    first."""
    lost_ids: list[int] = []
    while True:
        try:
            with transaction.atomic():
                return attempt(lost_ids)
        except _SlotLost as lost_slot:
            lost_ids.append(lost_slot.item_id)


def extend_lease(assignment: Assignment) -> Assignment:
    """Extend the lease from now; an expired lease too, as long as nobody took the slot.

    :raises DomainError: ``slot_taken``, or ``not_held`` if the item was rated or skipped."""
    if not renew_lease(assignment) and not regain_lease(assignment):
        raise DomainError("not_held")
    return load_assignment(assignment.pk)


def regain_lease(assignment: Assignment, from_state: State = State.EXPIRED) -> bool:
    """Lease the item again after its slot was lost; false if the assignment is not in ``from_state``.

    :raises DomainError: ``slot_taken`` if no slot is free."""
    row = Assignment.objects.filter(pk=assignment.pk, state=from_state)
    if not row.exists():
        return False
    queue = assignment.item.queue
    if queue.state != ReviewQueue.State.OPEN:
        raise DomainError("queue_closed")
    try:
        with transaction.atomic():
            available_items = ReviewItem.objects.filter(available_to(assignment.reviewer_id), pk=assignment.item_id)
            item = available_items.select_for_update(no_key=True).first()
            # A lead may have reserved the item for somebody else.
            slot = _free_slot(item) if item else None
            if slot is not None:
                lease = lease_end(queue)
                return bool(row.update(state=State.LEASED, slot=slot, lease_until=lease, fence=F("fence") + 1))
    except IntegrityError as error:
        raise DomainError("slot_taken") from error
    raise DomainError("slot_taken")


def load_assignment(pk: int) -> Assignment:
    """Load an assignment with its item, queue, answer and question."""
    return Assignment.objects.select_related(*_CARD_RELATIONS).get(pk=pk)


def renew_lease(assignment: Assignment) -> bool:
    """Extend an active lease; false if there is none."""
    row = Assignment.objects.filter(pk=assignment.pk, state=State.LEASED)
    return bool(row.update(lease_until=lease_end(assignment.item.queue)))


def _member(queue: ReviewQueue, user: User) -> Any:
    """Membership with the database's time as ``now``. Its lock serializes two requests of one person: the second finds
    the lease of the first."""
    if (row := MEMBER.first(queue=queue.pk, reviewer=user.pk)) is None:
        return None
    member, member.now, _ = row
    return member


def _own_lease(queue: ReviewQueue, member: Any) -> Assignment | None:
    if (row := OLDEST_LEASE.first(queue=queue.pk, reviewer=member.reviewer_id)) is None:
        return None
    assignment, item, answer, question, draft = row
    assignment.lease_until = _lease_until(queue, member.now)
    prolonged = EXTEND_LEASE.run(assignment=assignment.pk, until=assignment.lease_until)
    return assemble_assignment(assignment, item, queue, answer, question, draft) if prolonged else None


def _lease_next(queue: ReviewQueue, member: Any, lost_ids: Sequence[int]) -> Assignment | None:
    for item, lapsed in candidate_items(queue, member, lost_ids):
        assignment = _lease_slot(item, queue, member, lapsed=lapsed)
        COUNT_SERVED.run(member=member.pk, offset=member.offset if item.occasion > FIRST_OCCASION else item.shuffle_key)
        return assignment
    return None


def _lease_prefetched(queue: ReviewQueue, member: Any, lost_ids: Sequence[int]) -> Assignment | None:
    """Lease an item that another reviewer prefetched: their browser has not shown it, because they still hold an
    earlier item. They may get it back as an expired lease."""
    leases = (
        _prefetched_leases(queue).exclude(item__in=lost_ids).exclude(item__assignments__reviewer=member.reviewer_id)
    )
    items = ReviewItem.objects.filter(available_to(member.reviewer_id), assignments__in=leases).order_by("shuffle_key")
    locked_items = items.select_related("answer__question").select_for_update(of=("self",), no_key=True)
    if (item := locked_items.first()) is None:
        return None
    if not _prefetched_leases(queue).filter(item=item).update(state=State.EXPIRED):
        raise _SlotLost(item.pk)
    assignment = _lease_slot(item, queue, member, lapsed=False)
    COUNT_SERVED.run(member=member.pk, offset=item.shuffle_key)
    return assignment


def _prefetched_leases(queue: ReviewQueue) -> QuerySet[Assignment]:
    """Leases of open items without a draft whose holder also holds an earlier item of the queue."""
    leases = Assignment.objects.filter(queue=queue, state=State.LEASED, item__state=ReviewItem.State.OPEN)
    earlier_leases = leases.filter(reviewer=OuterRef("reviewer"), pk__lt=OuterRef("pk"))
    return leases.filter(Exists(earlier_leases), draft=None, item__occasion=FIRST_OCCASION)


def available_to(reviewer_id: int) -> Q:
    """Filter for items that are unreserved, or reserved for this person."""
    reservations = Reservation.objects.filter(item=OuterRef("pk"), reviewer=reviewer_id)
    return Q(reserved=False) | Q(Exists(reservations))


def _lease_slot(item: ReviewItem, queue: ReviewQueue, member: Any, *, lapsed: bool) -> Assignment:
    """Lease a slot of the locked item.

    :raises _SlotLost: if another reviewer took it first."""
    item.queue = queue
    try:
        if assignment := (_renew_lapsed if lapsed else _new_lease)(item, queue, member):
            return assignment
    except IntegrityError as error:
        raise _SlotLost(item.pk) from error
    raise _SlotLost(item.pk)


def _renew_lapsed(item: ReviewItem, queue: ReviewQueue, member: Any) -> Assignment | None:
    """Lease an item again that the person let expire; ``None`` without a free slot."""
    if (slot := _free_slot(item)) is None:
        return None
    row = Assignment.objects.filter(item=item, reviewer=member.reviewer_id, state=State.EXPIRED)
    if not row.update(state=State.LEASED, slot=slot, lease_until=_lease_until(queue, member.now), fence=F("fence") + 1):
        return None
    return Assignment.objects.select_related(*_CARD_RELATIONS).get(item=item, reviewer=member.reviewer_id)


def _new_lease(item: ReviewItem, queue: ReviewQueue, member: Any) -> Assignment | None:
    """Lease an item that the person never had; ``None`` without a free slot."""
    until = _lease_until(queue, member.now)
    values = {"item": item.pk, "queue": queue.pk, "reviewer": member.reviewer_id, "needed": item.reviews_needed}
    row = LEASE.first(**values, until=until, now=member.now)
    # ``_free_slot`` expired a lapsed lease.
    if row is None and _free_slot(item) is not None:
        row = LEASE.first(**values, until=until, now=member.now)
    if row is None:
        return None
    pk, slot = row
    assignment = Assignment(
        pk=pk,
        created_at=member.now,
        queue_id=queue.pk,
        reviewer_id=member.reviewer_id,
        slot=slot,
        lease_until=until,
        opened_at=member.now,
    )
    assignment._state.adding = False
    return assemble_assignment(assignment, item, queue, item.answer, item.answer.question, None)


def _free_slot(item: ReviewItem) -> int | None:
    """Return the lowest free slot. Else expire a lapsed lease and return its slot; the draft stays."""
    needed = item.reviews_needed
    lapsed_by_slot: dict[int, bool] = dict(SLOTS.rows(item=item.pk))
    free_slots = [slot for slot in range(1, needed + 1) if slot not in lapsed_by_slot]
    if free_slots:
        return free_slots[0]
    for slot in sorted(slot for slot, lapsed in lapsed_by_slot.items() if lapsed and slot <= needed):
        if Assignment.objects.filter(LAPSED, item=item, slot=slot).update(state=State.EXPIRED):
            return slot
    return None


def lease_end(queue: ReviewQueue) -> CombinedExpression:
    """End of a lease that begins now, by the database's clock."""
    return Now() + timedelta(minutes=queue.lease_minutes)


def _lease_until(queue: ReviewQueue, now: datetime) -> datetime:
    return now + timedelta(minutes=queue.lease_minutes)
