"""How far a run is: units by state, calls, cost and pace, in two queries."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, Max, Q, Sum
from django.utils import timezone

from evaluation.runs.models import Run
from evaluation.work.models import Attempt, WorkUnit


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of a run's units and calls. ``cost`` is in US dollars and a lower bound while ``unknown_costs`` > 0.

    ``pace`` is units per second since the start, ``seconds_left`` the estimate from it; both ``None`` while unknown.
    """

    blocked: int
    todo: int
    leased: int
    done: int
    failed: int
    skipped: int
    calls: int
    cost: Decimal
    unknown_costs: int
    pace: float | None
    seconds_left: float | None

    @property
    def total(self) -> int:
        """All units of the run."""
        return self.blocked + self.todo + self.leased + self.done + self.failed + self.skipped

    @property
    def ended(self) -> int:
        """Units that are finished, one way or the other."""
        return self.done + self.failed + self.skipped

    @property
    def share(self) -> float:
        """Share of ended units, 0 to 1; 1 for a run without units."""
        return self.ended / self.total if self.total else 1.0


def progress(run: Run) -> Progress:
    """The run's progress now."""
    units = WorkUnit.objects.filter(run=run).aggregate(
        **{state: Count("id", filter=Q(state=state)) for state in WorkUnit.State.values}, last=Max("finished_at")
    )
    calls = Attempt.objects.filter(unit__run=run).aggregate(
        calls=Count("id", filter=~Q(reply__outcome="not_sent")),
        cost=Sum("reply__cost"),
        unknown=Count("id", filter=Q(reply__isnull=True) | Q(reply__cost__isnull=True)),
    )
    last = units.pop("last")
    ended = units["done"] + units["failed"] + units["skipped"]
    waiting = units["blocked"] + units["todo"] + units["leased"]
    pace = None
    if run.started_at and ended:
        until = timezone.now() if waiting else (last or run.finished_at or timezone.now())
        pace = ended / max((until - run.started_at).total_seconds(), 0.001)
    return Progress(
        **units,
        calls=calls["calls"],
        cost=calls["cost"] or Decimal(0),
        unknown_costs=calls["unknown"],
        pace=pace,
        seconds_left=waiting / pace if pace and waiting else None,
    )
