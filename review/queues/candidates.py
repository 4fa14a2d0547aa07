"""Which item a person may be given next: the first that fits on the ring of shuffle keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from review.models import ReviewItem, ReviewQueue
from review.models.statements import FREE_AHEAD, FREE_BEHIND, FREE_LET_LAPSE
from review.queues.repeats import due_repeats


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
