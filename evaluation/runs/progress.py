"""How far a run is: units by state, calls, cost and pace, in three queries."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Max, Q
from django.utils import timezone

from evaluation.models import Run, WorkUnit
from evaluation.runs.costs import Spending, spending_by_run


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of a run's units, and what its calls cost, those before it included.

    ``pace`` is units per second since the start, ``seconds_left`` the estimate from it; both ``None`` while unknown,
    as the latter is while calls are out in batches.
    """

    blocked: int
    todo: int
    leased: int
    batched: int
    done: int
    failed: int
    skipped: int
    spent: Spending
    pace: float | None
    seconds_left: float | None

    @property
    def total(self) -> int:
        """All units of the run."""
        waiting = self.blocked + self.todo + self.leased + self.batched
        return waiting + self.ended

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
    return progress_by_run([run])[run.pk]


def progress_by_run(runs: Collection[Run]) -> dict[int, Progress]:
    """The progress of several runs by id, still in three queries."""
    ids = [run.pk for run in runs]
    states = {state: Count("id", filter=Q(state=state)) for state in WorkUnit.State.values}
    units = WorkUnit.objects.filter(run__in=ids).order_by().values("run_id").annotate(last=Max("finished_at"), **states)
    units_of: dict[int, Mapping[str, Any]] = {row["run_id"]: row for row in units}
    spent = spending_by_run(ids)
    return {run.pk: _progress(run, units_of.get(run.pk, {}), spent[run.pk]) for run in runs}


def _progress(run: Run, row: Mapping[str, Any], spent: Spending) -> Progress:
    units, last = {state: int(row.get(state, 0)) for state in WorkUnit.State.values}, row.get("last")
    ended = units["done"] + units["failed"] + units["skipped"]
    waiting = units["blocked"] + units["todo"] + units["leased"] + units["batched"]
    pace = None
    if run.started_at and ended:
        until = timezone.now() if waiting else (last or run.finished_at or timezone.now())
        pace = ended / max((until - run.started_at).total_seconds(), 0.001)
    return Progress(
        **units,
        spent=spent,
        pace=pace,
        seconds_left=waiting / pace if pace and waiting and not units["batched"] else None,
    )
