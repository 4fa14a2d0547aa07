"""What of a run is out in batches of its providers."""

from __future__ import annotations

from collections.abc import Collection

from evaluation.extras.batches.ledger import State, open_batches
from evaluation.models import JudgeBatch, Run
from evaluation.work.plugins import BatchesOut


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


def troubled_batches(run: Run) -> tuple[str, ...]:
    """Why batches of the run did not end as they should have, the newest first."""
    ended = JudgeBatch.objects.filter(run=run, state__in=[State.ENDED, State.DROPPED, State.LOST])
    return tuple(batch.reason for batch in ended.exclude(reason="").order_by("-id")[:20])
