"""Leases: which item a person may be given next, the first that fits on the ring of shuffle keys, and who holds it:
taken, prolonged, given back, and recovered when a lease lapses.

Times are the database's. Two people never hold one slot of an item and nobody holds an item twice: constraints and
guards of the database see to it, and whoever loses a race tries the next item. Whoever changes who holds an item locks
the item first, so that of two at the same moment one follows the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from evaluation.core.errors import Refused
from evaluation.models import User
from review.evidence.answers import expose_item
from review.models import Assignment, Reservation, ReviewItem, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.models.statements import (
    FREE_AHEAD,
    FREE_BEHIND,
    FREE_LET_LAPSE,
    LEASE,
    LEASED,
    MEMBER,
    PROLONG,
    SERVED,
    SLOTS,
    held,
)
from review.ratings.settling import due_repeats


def candidates(queue: ReviewQueue, member: Any, lost: Sequence[int]) -> Iterator[tuple[ReviewItem, bool]]:
    """The items the person may take, but for the lost ones: a repeat that is due, the next new one after the member's
    offset, then before it, then an own lapsed one, which is marked. All but repeats are locked."""
    if queue.repeat_share > 0:
        yield from ((item, lapsed) for item, lapsed in due_repeats(queue, member) if item.pk not in lost)
    values = {"queue": queue.pk, "reviewer": member.reviewer_id, "offset": member.offset, "now": member.now}
    for statement in (FREE_AHEAD, FREE_BEHIND, FREE_LET_LAPSE):
        if row := statement.first(**values, lost=[0, *lost]):
            item, answer, question = row
            answer.question, item.answer = question, answer
            yield item, statement is FREE_LET_LAPSE


State = Assignment.State
LAPSED = Q(state=State.LEASED, lease_until__lt=Now())
_SHOWN = ("item__queue", "item__answer__question")


class _Lost(Exception):
    """Somebody was faster with the item of this primary key."""

    def __init__(self, item: int) -> None:
        self.item = item


def next_assignment(queue: ReviewQueue, user: User) -> Assignment | None:
    """The item the person should rate now; ``None`` when nothing is left for them at this time.

    Their own open lease comes first, prolonged; then a hidden repeat that is due. Else the next open item on the ring
    of shuffle keys after the last one they were served that is for them, has a free slot and that they never had;
    then items whose lease they let lapse; last, one that somebody else's browser reserved ahead and never showed.

    :raises Refused: ``queue_closed``, or ``not_a_member``.
    """
    if queue.state != ReviewQueue.State.OPEN:
        raise Refused("queue_closed")

    def attempt(lost: Sequence[int]) -> Assignment | None:
        if (member := _member(queue, user)) is None:
            raise Refused("not_a_member")
        return _own(queue, member) or _taken(queue, member, lost) or _taken_from_ahead(queue, member, lost)

    found = _attempted(attempt)
    if found and queue.mode == ReviewQueue.Mode.ASSISTED:
        expose_item(user, found.item.answer, "assisted")
    return found


def assignment_ahead(queue: ReviewQueue, user: User, current: Assignment) -> Assignment | None:
    """The item that follows the one in hand, reserved before it is asked for, so that it can be there at once; ``None``
    where there is none or the one in hand is not held any more. Nobody holds more than one item ahead."""
    if queue.state != ReviewQueue.State.OPEN:
        return None

    def attempt(lost: Sequence[int]) -> Assignment | None:
        member = _member(queue, user)
        leased = Assignment.objects.filter(queue=queue, reviewer=user, state=State.LEASED)
        if member is None or not leased.filter(pk=current.pk).exists():
            return None
        others = leased.exclude(pk=current.pk).select_related(*_SHOWN)
        following = others.filter(item__state=ReviewItem.State.OPEN).order_by("pk").first()
        return following or _taken(queue, member, lost)

    following = _attempted(attempt)
    if following and queue.mode == ReviewQueue.Mode.ASSISTED:
        expose_item(user, following.item.answer, "assisted")
    return following


def _attempted(attempt: Callable[[Sequence[int]], Assignment | None]) -> Assignment | None:
    """What the attempt finds, each time in a transaction of its own: a lost item is let go before another is tried."""
    lost: list[int] = []
    while True:
        try:
            with transaction.atomic():
                return attempt(lost)
        except _Lost as found:
            lost.append(found.item)


def extend(assignment: Assignment) -> Assignment:
    """Prolong the lease from now, also one that lapsed as long as nobody took the slot.

    :raises Refused: ``slot_taken``, or ``not_held`` when the item was rated or passed on.
    """
    if not renew(assignment) and not regain(assignment):
        raise Refused("not_held")
    return loaded(assignment.pk)


def regain(assignment: Assignment, gone: State = State.EXPIRED) -> bool:
    """Lease the item again after its slot was lost; false when the assignment is not in the state ``gone``.

    :raises Refused: ``slot_taken`` when no slot is free any more.
    """
    row = Assignment.objects.filter(pk=assignment.pk, state=gone)
    if not row.exists():
        return False
    queue = assignment.item.queue
    if queue.state != ReviewQueue.State.OPEN:
        raise Refused("queue_closed")
    try:
        with transaction.atomic():
            mine = ReviewItem.objects.filter(for_whom(assignment.reviewer_id), pk=assignment.item_id)
            item = mine.select_for_update(no_key=True).first()
            slot = _free_slot(item) if item else None  # a lead may have given it to somebody else
            if slot is not None:
                lease = lease_end(queue)
                return bool(row.update(state=State.LEASED, slot=slot, lease_until=lease, fence=F("fence") + 1))
    except IntegrityError as error:
        raise Refused("slot_taken") from error
    raise Refused("slot_taken")


def loaded(pk: int) -> Assignment:
    """The assignment with its item, queue, answer and question."""
    return Assignment.objects.select_related(*_SHOWN).get(pk=pk)


def renew(assignment: Assignment) -> bool:
    """Prolong a lease that is held; false where it is not."""
    row = Assignment.objects.filter(pk=assignment.pk, state=State.LEASED)
    return bool(row.update(lease_until=lease_end(assignment.item.queue)))


def _member(queue: ReviewQueue, user: User) -> Any:
    """The person's membership and the database's time, ``now``. Its lock makes two requests of one person follow each
    other: the second finds the lease of the first."""
    if (row := MEMBER.first(queue=queue.pk, reviewer=user.pk)) is None:
        return None
    member, member.now, _ = row
    return member


def _own(queue: ReviewQueue, member: Any) -> Assignment | None:
    if (row := LEASED.first(queue=queue.pk, reviewer=member.reviewer_id)) is None:
        return None
    assignment, item, answer, question, draft = row
    assignment.lease_until = _until(queue, member.now)
    prolonged = PROLONG.run(assignment=assignment.pk, until=assignment.lease_until)
    return held(assignment, item, queue, answer, question, draft) if prolonged else None


def _taken(queue: ReviewQueue, member: Any, lost: Sequence[int]) -> Assignment | None:
    for item, lapsed in candidates(queue, member, lost):
        taken = _take(item, queue, member, again=lapsed)
        SERVED.run(member=member.pk, offset=member.offset if item.occasion > FIRST_OCCASION else item.shuffle_key)
        return taken
    return None


def _taken_from_ahead(queue: ReviewQueue, member: Any, lost: Sequence[int]) -> Assignment | None:
    """A lease of an item that somebody else reserved ahead: their browser has not shown it, because an earlier item is
    still in their hands. They may get it back as an item whose lease they let lapse."""
    ahead = _reserved_ahead(queue).exclude(item__in=lost).exclude(item__assignments__reviewer=member.reviewer_id)
    wanted = ReviewItem.objects.filter(for_whom(member.reviewer_id), assignments__in=ahead).order_by("shuffle_key")
    locked = wanted.select_related("answer__question").select_for_update(of=("self",), no_key=True)
    if (item := locked.first()) is None:
        return None
    if not _reserved_ahead(queue).filter(item=item).update(state=State.EXPIRED):
        raise _Lost(item.pk)
    taken = _take(item, queue, member, again=False)
    SERVED.run(member=member.pk, offset=item.shuffle_key)
    return taken


def _reserved_ahead(queue: ReviewQueue) -> QuerySet[Assignment]:
    """The leases of open items whose holder has an earlier item of the queue in hand and has entered nothing yet."""
    leased = Assignment.objects.filter(queue=queue, state=State.LEASED, item__state=ReviewItem.State.OPEN)
    in_hand = leased.filter(reviewer=OuterRef("reviewer"), pk__lt=OuterRef("pk"))
    return leased.filter(Exists(in_hand), draft=None, item__occasion=FIRST_OCCASION)


def for_whom(reviewer_id: int) -> Q:
    """Items that are for everybody, or kept for this person."""
    kept = Reservation.objects.filter(item=OuterRef("pk"), reviewer=reviewer_id)
    return Q(reserved=False) | Q(Exists(kept))


def _take(item: ReviewItem, queue: ReviewQueue, member: Any, *, again: bool) -> Assignment:
    """Lease a slot of the item, which is locked.

    :raises _Lost: when somebody else was faster.
    """
    item.queue = queue
    try:
        if found := (_leased_again if again else _leased_first)(item, queue, member):
            return found
    except IntegrityError as error:
        raise _Lost(item.pk) from error
    raise _Lost(item.pk)


def _leased_again(item: ReviewItem, queue: ReviewQueue, member: Any) -> Assignment | None:
    """A lease of an item the person let lapse; ``None`` without a slot."""
    if (slot := _free_slot(item)) is None:
        return None
    row = Assignment.objects.filter(item=item, reviewer=member.reviewer_id, state=State.EXPIRED)
    if not row.update(state=State.LEASED, slot=slot, lease_until=_until(queue, member.now), fence=F("fence") + 1):
        return None
    return Assignment.objects.select_related(*_SHOWN).get(item=item, reviewer=member.reviewer_id)


def _leased_first(item: ReviewItem, queue: ReviewQueue, member: Any) -> Assignment | None:
    """A lease of an item the person never had; ``None`` without a slot."""
    until = _until(queue, member.now)
    values = {"item": item.pk, "queue": queue.pk, "reviewer": member.reviewer_id, "needed": item.reviews_needed}
    row = LEASE.first(**values, until=until, now=member.now)
    if row is None and _free_slot(item) is not None:  # one had lapsed
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
    return held(assignment, item, queue, item.answer, item.answer.question, None)


def _free_slot(item: ReviewItem) -> int | None:
    """The lowest slot nobody holds, else one whose lease lapsed, which its holder loses; the draft stays."""
    needed = item.reviews_needed
    lapsed_of: dict[int, bool] = dict(SLOTS.rows(item=item.pk))
    free = [slot for slot in range(1, needed + 1) if slot not in lapsed_of]
    if free:
        return free[0]
    for slot in sorted(slot for slot, lapsed in lapsed_of.items() if lapsed and slot <= needed):
        if Assignment.objects.filter(LAPSED, item=item, slot=slot).update(state=State.EXPIRED):
            return slot
    return None


def lease_end(queue: ReviewQueue) -> CombinedExpression:
    """When a lease of the queue that begins now ends, by the database's clock."""
    return Now() + timedelta(minutes=queue.lease_minutes)


def _until(queue: ReviewQueue, now: datetime) -> datetime:
    return now + timedelta(minutes=queue.lease_minutes)
