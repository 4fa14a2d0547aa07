"""Which item a person may be given next: the first that fits on the ring of shuffle keys.

It is asked for in SQL, which both databases read alike: the ORM takes much longer to put the statement together than
they take to answer it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from django.db import connection

from review.models.queues import ReviewItem, ReviewQueue
from review.queues.repeats import due_repeats

#: Open, for this person, with a slot that is free or whose lease lapsed. Lost items are passed over by the caller.
_FREE = """
SELECT i.id FROM review_reviewitem i
WHERE i.queue_id = %(queue)s AND i.state = 'open' AND i.occasion = 1 AND {place} AND {had}
AND (NOT i.reserved OR EXISTS (
  SELECT 1 FROM review_reservation r WHERE r.item_id = i.id AND r.reviewer_id = %(reviewer)s))
AND i.reviews_needed > (
  SELECT COUNT(*) FROM review_assignment a WHERE a.item_id = i.id
  AND a.state NOT IN ('skipped', 'expired', 'flagged') AND NOT (a.state = 'leased' AND a.lease_until < %(now)s))
ORDER BY i.shuffle_key LIMIT %(rows)s
"""
_MINE = "EXISTS (SELECT 1 FROM review_assignment m WHERE m.item_id = i.id AND m.reviewer_id = %(reviewer)s{which})"
_NEW = f"NOT {_MINE.format(which='')}"
_AHEAD = _FREE.format(place="i.shuffle_key > %(offset)s", had=_NEW)
_BEHIND = _FREE.format(place="i.shuffle_key <= %(offset)s", had=_NEW)
_LET_LAPSE = _FREE.format(place="TRUE", had=_MINE.format(which=" AND m.state = 'expired'"))


def candidates(queue: ReviewQueue, member: Any, lost: Sequence[int]) -> Iterator[tuple[ReviewItem, bool]]:
    """The items the person may take, but for the lost ones: a repeat that is due, the next new one after the member's
    offset, then before it, then an own lapsed one, which is marked. All but repeats are locked."""
    if queue.repeat_share > 0:
        yield from ((item, lapsed) for item, lapsed in due_repeats(queue, member) if item.pk not in lost)
    for statement in (_AHEAD, _BEHIND, _LET_LAPSE):
        if (pk := _first(statement, queue, member, lost)) is not None:
            rows = ReviewItem.objects.select_for_update(no_key=True, of=("self",))
            yield rows.select_related("answer__question").get(pk=pk), statement is _LET_LAPSE


def _first(statement: str, queue: ReviewQueue, member: Any, lost: Sequence[int]) -> int | None:
    values = {
        "queue": queue.pk,
        "reviewer": member.reviewer_id,
        "offset": member.offset,
        "now": connection.ops.adapt_datetimefield_value(member.now),
        "rows": len(lost) + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return next((pk for (pk,) in cursor.fetchall() if pk not in lost), None)
