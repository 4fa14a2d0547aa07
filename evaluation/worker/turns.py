"""Turns: who has something in hands that is no run (a look, a check, a search, a generation), for a lease that is kept
while work goes on and lapses with a crash. A turn that was lost is taken again, and nothing that was heard is asked
twice."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from evaluation.core.errors import Refused
from evaluation.worker.dispatch import ring_for

_RENEW_SECONDS = 5.0


@dataclass(slots=True)
class TurnInHands:
    """Somebody's turn, until ``deadline`` (monotonic seconds). ``rows`` holds the one row of the turn."""

    rows: QuerySet[Any]
    token: uuid.UUID
    deadline: float
    renewed: float

    def more(self) -> bool:
        """Whether to begin something further; keeps the lease meanwhile."""
        now = time.monotonic()
        if now - self.renewed > _RENEW_SECONDS:
            self.renewed = now
            if not self.rows.filter(token=self.token).update(until=_lease()):
                return False  # it lapsed and somebody else has it
        return now < self.deadline


def _lease() -> object:
    return Now() + timedelta(seconds=settings.CONCORD_LEASE_SECONDS)


@contextmanager
def turn_at(rows: QuerySet[Any], deadline: float) -> Iterator[TurnInHands | None]:
    """The turn of the one row, or ``None`` while somebody else has it."""
    token = uuid.uuid4()
    if not rows.filter(Q(until=None) | Q(until__lt=Now())).update(token=token, until=_lease(), reason=""):
        yield None
        return
    try:
        yield TurnInHands(rows, token, deadline, time.monotonic())
    finally:
        rows.filter(token=token).update(token=None, until=None)


def take_turn(rows: QuerySet[Any], step: Callable[[float], object], work: str, pk: int) -> None:
    """A worker's turn: one task's time (``step`` gets the monotonic second of its end), then the next. Why it cannot go
    on is kept in the one row of the turn."""
    try:
        done = step(time.monotonic() + settings.CONCORD_BUDGET_SECONDS)
    except Refused as refused:
        rows.update(reason=str(refused.params.get("reason", refused.code))[:100])
        return
    if not done and rows.filter(token=None).exists():
        ring_for(work, pk)
