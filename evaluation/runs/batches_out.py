"""What of a run is out in batches of its providers."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from evaluation.models import JudgeBatch, Run
from evaluation.work.batches import State, open_batches


@dataclass(frozen=True, slots=True)
class BatchesOut:
    """The open batches of a run together: since when the first is out, how many calls stand in them, and how many of
    these the providers said to have done or failed when they were last asked. ``next_at`` is when the next one is asked
    about."""

    batches: int
    since: datetime
    lines: int
    done: int
    failed: int
    next_at: datetime | None

    @property
    def seconds_to_next(self) -> float:
        """How long nothing needs to be done about them."""
        return max(0.0, (self.next_at - timezone.now()).total_seconds()) if self.next_at else 0.0


def batches_out(run: Run) -> BatchesOut | None:
    """The run's open batches whose files are written; ``None`` where it has none. One query."""
    found = list(open_batches().filter(run=run).exclude(state=State.MADE).order_by("id"))
    return _together(found) if found else None


def _together(found: Collection[JudgeBatch]) -> BatchesOut:
    return BatchesOut(
        batches=len(found),
        since=min(batch.sent_at or batch.created_at for batch in found),
        lines=sum(batch.lines for batch in found),
        done=sum(batch.done for batch in found),
        failed=sum(batch.failed for batch in found),
        next_at=min((batch.next_at for batch in found if batch.next_at), default=None),
    )


def troubled_batches(run: Run) -> list[JudgeBatch]:
    """The run's batches that did not end as they should have, the newest first."""
    ended = JudgeBatch.objects.filter(run=run, state__in=[State.ENDED, State.DROPPED, State.LOST])
    return list(ended.exclude(reason="").order_by("-id")[:20])
