"""How fast each reviewer of a queue is, for its lead; never ranked."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Max
from django.utils import timezone

from review.models import Rating, ReviewQueue

QUICK_MS = 3_000  # a decision about a whole answer in less is worth a look, and no error


@dataclass(frozen=True, slots=True)
class Pace:
    """``median_seconds`` looked at an answer (``None`` where nothing was measured), ``quick``: how many of ``measured``
    took under three seconds, ``week``: answers rated in the last seven days, ``last`` the newest rating."""

    median_seconds: float | None
    measured: int
    quick: int
    week: int
    last: datetime


def paces(queue: ReviewQueue, now: datetime | None = None) -> dict[int, Pace]:
    """Reviewer -> pace, of those who have rated. One query."""
    since = (now or timezone.now()) - timedelta(days=7)
    looked = Rating.objects.filter(assignment__item__queue=queue, phase="initial", reviewer__isnull=False)
    rows = looked.order_by().values_list("reviewer", "assignment").annotate(Max("active_ms"), Max("created_at"))
    found: dict[int, list[tuple[int | None, datetime]]] = {}
    for reviewer, _, milliseconds, moment in rows:
        found.setdefault(reviewer, []).append((milliseconds, moment))
    return {reviewer: _pace(ratings, since) for reviewer, ratings in found.items()}


def _pace(ratings: list[tuple[int | None, datetime]], since: datetime) -> Pace:
    times = [milliseconds for milliseconds, _ in ratings if milliseconds is not None]
    return Pace(
        median_seconds=statistics.median(times) / 1000 if times else None,
        measured=len(times),
        quick=sum(time < QUICK_MS for time in times),
        week=sum(moment >= since for _, moment in ratings),
        last=max(moment for _, moment in ratings),
    )
