"""The end of a run: when nothing is open any more, and the units that nobody will finish."""

from __future__ import annotations

from django.db import transaction
from django.db.models.functions import Now

from evaluation.accounts import audit
from evaluation.core.samples import Result
from evaluation.models import Run, RunEvent, WorkUnit
from evaluation.scoring.coverage import incomplete_metrics
from evaluation.scoring.deriving import derive, expected_metrics
from evaluation.scoring.juries import judge_together
from evaluation.scoring.writing import Outcome, write
from evaluation.work import units
from evaluation.work.database import look_again
from evaluation.work.units import State

CRASH_LOOP = "crash_loop"
UPSTREAM = "upstream"


def park_crash_loops(run: Run) -> int:
    """Fail the units whose workers died again and again, so that the rest of the run completes."""
    parked = list(units.crash_looping().filter(run=run))
    return write([_failed(run, unit, CRASH_LOOP) for unit in parked]) if parked else 0


def fail_dependents(run: Run) -> int:
    """Fail the blocked units whose predecessor failed."""
    waiting = list(WorkUnit.objects.filter(run=run, state=State.BLOCKED, needs__state=State.FAILED))
    for unit in waiting:
        WorkUnit.objects.filter(pk=unit.pk, state=State.BLOCKED).update(
            state=State.FAILED, reason=UPSTREAM, finished_at=Now()
        )
    return len(waiting)


def _failed(run: Run, unit: WorkUnit, reason: str) -> Outcome:
    return Outcome(unit, {m: Result.failed(reason) for m in expected_metrics(run, unit)}, reason)


def settle(run: Run) -> bool:
    """Complete a running run that has no open unit, or mark it incomplete with the metrics that say why."""
    fail_dependents(run)
    if units.open_units(run.pk).exists():
        return False
    look_again(run)
    judge_together(run)
    derive(run)
    short = incomplete_metrics(run)
    state = Run.State.INCOMPLETE if short else Run.State.COMPLETED
    reason = ", ".join(f"{c.metric}: {c.failed}/{c.scored + c.failed}" for c in short)
    with transaction.atomic():
        moved = Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).update(
            state=state, reason=reason, finished_at=Now()
        )
        if moved:
            RunEvent.objects.create(run=run, verb=state, reason=reason)
            audit.record(None, f"run.{state}", run)
    run.refresh_from_db()
    return bool(moved)
