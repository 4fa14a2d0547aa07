"""Who holds which item: taken, prolonged, given back, and recovered when a lease lapses.

Times are the database's. Two people never hold one slot of an item and nobody holds an item twice: constraints of
``Assignment`` see to it, and whoever loses a race tries the next item.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Count, Exists, F, OuterRef, Q, QuerySet, Subquery
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Coalesce, Now

from evaluation.accounts.models import User
from evaluation.errors import Refused
from review.exposures import expose
from review.models.queues import Assignment, QueueMember, Reservation, ReviewItem, ReviewQueue
from review.queues.repeats import due_repeats

State = Assignment.State
BATCH = 8  # candidates read at once; a lost race costs one of them
LAPSED = Q(state=State.LEASED, lease_until__lt=Now())


def next_assignment(queue: ReviewQueue, user: User) -> Assignment | None:
    """The item the person should rate now; ``None`` when nothing is left for them at this time.

    Their own open lease comes first, prolonged; then a hidden repeat that is due. Else the next open item on the ring
    of shuffle keys after the last one they were served that is for them, has a free slot and that they never had;
    last, items whose lease they let lapse.

    :raises Refused: ``queue_closed``, or ``not_a_member``.
    """
    if queue.state != ReviewQueue.State.OPEN:
        raise Refused("queue_closed")
    with transaction.atomic():
        # The lock makes two requests of one person follow each other: the second finds the lease of the first.
        member = QueueMember.objects.select_for_update().filter(queue=queue, reviewer=user).first()
        if member is None:
            raise Refused("not_a_member")
        held = _own(queue, user) or _taken(queue, member)
    if held is None:
        return None
    if queue.mode == ReviewQueue.Mode.ASSISTED:
        expose(user, held.item.answer, "assisted")
    return held


def assignment_ahead(queue: ReviewQueue, user: User, current: Assignment) -> Assignment | None:
    """The item that follows the one in hand, reserved before it is asked for, so that it can be there at once; ``None``
    where there is none or the one in hand is not held any more. Nobody holds more than one item ahead."""
    if queue.state != ReviewQueue.State.OPEN:
        return None
    with transaction.atomic():
        member = QueueMember.objects.select_for_update().filter(queue=queue, reviewer=user).first()
        held = Assignment.objects.filter(item__queue=queue, reviewer=user, state=State.LEASED)
        if member is None or not held.filter(pk=current.pk).exists():
            return None
        others = held.exclude(pk=current.pk).select_related("item__queue", "item__answer__question")
        following = others.filter(item__state=ReviewItem.State.OPEN).order_by("pk").first()
        if following is None:
            following = _taken(queue, member)
    if following and queue.mode == ReviewQueue.Mode.ASSISTED:
        expose(user, following.item.answer, "assisted")
    return following


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
    try:
        with transaction.atomic():
            mine = ReviewItem.objects.filter(for_whom(assignment.reviewer_id), pk=assignment.item_id).first()
            slot = _free_slot(mine) if mine else None  # a lead may have given it to somebody else
            if slot is not None:
                lease = lease_end(queue)
                return bool(row.update(state=State.LEASED, slot=slot, lease_until=lease, fence=F("fence") + 1))
    except IntegrityError as error:
        raise Refused("slot_taken") from error
    raise Refused("slot_taken")


def loaded(pk: int) -> Assignment:
    """The assignment with its item, queue, answer and question."""
    return Assignment.objects.select_related("item__queue", "item__answer__question").get(pk=pk)


def _own(queue: ReviewQueue, user: User) -> Assignment | None:
    mine = Assignment.objects.filter(
        item__queue=queue, reviewer=user, state=State.LEASED, item__state=ReviewItem.State.OPEN
    )
    # The oldest first: what follows it may be reserved already.
    held = mine.select_related("item__queue", "item__answer__question").order_by("pk").first()
    return held if held and renew(held) else None


def renew(assignment: Assignment) -> bool:
    """Prolong a lease that is held; false where it is not."""
    row = Assignment.objects.filter(pk=assignment.pk, state=State.LEASED)
    return bool(row.update(lease_until=lease_end(assignment.item.queue)))


def _taken(queue: ReviewQueue, member: QueueMember) -> Assignment | None:
    for item, lapsed in _candidates(queue, member):
        if (pk := _take(item, queue, member.reviewer_id, again=lapsed)) is not None:
            place = member.offset if item.occasion > 1 else item.shuffle_key
            QueueMember.objects.filter(pk=member.pk).update(offset=place, served=F("served") + 1)
            return loaded(pk)
    return None


def _candidates(queue: ReviewQueue, member: QueueMember) -> Iterator[tuple[ReviewItem, bool]]:
    """Items the person may take, read in batches: repeats that are due, new ones after the offset, then before it,
    then own lapsed ones, which are marked."""
    own = Assignment.objects.filter(item=OuterRef("pk"), reviewer=member.reviewer_id)
    if queue.repeat_share > 0:
        yield from due_repeats(queue, member)
    free = _with_free_slot(queue).filter(for_whom(member.reviewer_id), occasion=1).order_by("shuffle_key")
    new = free.filter(~Exists(own))
    lost = free.filter(Exists(own.filter(state=State.EXPIRED)))
    ahead, behind = new.filter(shuffle_key__gt=member.offset), new.filter(shuffle_key__lte=member.offset)
    for rows, lapsed in ((ahead, False), (behind, False), (lost, True)):
        tried: list[int] = []
        while batch := list(rows.exclude(pk__in=tried)[:BATCH]):
            yield from ((item, lapsed) for item in batch)
            tried += [item.pk for item in batch]


def for_whom(reviewer_id: int) -> Q:
    """Items that are for everybody, or kept for this person."""
    kept = Reservation.objects.filter(item=OuterRef("pk"), reviewer=reviewer_id)
    return Q(reserved=False) | Q(Exists(kept))


def _with_free_slot(queue: ReviewQueue) -> QuerySet[ReviewItem]:
    live = Assignment.objects.filter(item=OuterRef("pk")).exclude(state__in=Assignment.GONE).exclude(LAPSED)
    rows = ReviewItem.objects.filter(queue=queue, state=ReviewItem.State.OPEN)
    count = live.order_by().values("item").annotate(n=Count("pk")).values("n")
    # One look for the many items that need one person, a count for the others only.
    once = Q(~Exists(live), reviews_needed=1)
    several = Q(reviews_needed__gt=1, live__lt=F("reviews_needed"))
    return rows.alias(live=Coalesce(Subquery(count), 0)).filter(once | several)


def _take(item: ReviewItem, queue: ReviewQueue, reviewer_id: int, *, again: bool) -> int | None:
    """Lease a slot of the item; ``None`` when somebody else was faster."""
    try:
        with transaction.atomic():
            slot = _free_slot(item)
            if slot is None:
                return None
            lease = {"state": State.LEASED, "slot": slot, "lease_until": lease_end(queue)}
            if not again:
                return Assignment.objects.create(item=item, reviewer_id=reviewer_id, opened_at=Now(), **lease).pk
            lost = Assignment.objects.get(item=item, reviewer_id=reviewer_id)
            row = Assignment.objects.filter(pk=lost.pk, state=State.EXPIRED)
            return lost.pk if row.update(**lease, fence=F("fence") + 1) else None
    except IntegrityError:
        return None


def _free_slot(item: ReviewItem) -> int | None:
    """The lowest slot nobody holds, else one whose lease lapsed, which its holder loses; the draft stays."""
    needed = item.reviews_needed
    rows = Assignment.objects.filter(item=item).exclude(state__in=Assignment.GONE)
    held = dict(rows.annotate(lapsed=LAPSED).values_list("slot", "lapsed"))
    free = [slot for slot in range(1, needed + 1) if slot not in held]
    if free:
        return free[0]
    for slot in sorted(slot for slot, lapsed in held.items() if lapsed and slot <= needed):
        if rows.filter(LAPSED, slot=slot).update(state=State.EXPIRED):
            return slot
    return None


def lease_end(queue: ReviewQueue) -> CombinedExpression:
    return Now() + timedelta(minutes=queue.lease_minutes)
