"""Hooks shared by the worker sessions that make calls for units of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from evaluation.models import Attempt, Reply, Run, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import TRANSIENT
from evaluation.worker import units
from evaluation.worker.lifecycle import pause


class UnitInFlight(Protocol):
    """A unit with its attempt in flight; see ``sessions.InFlight``."""

    key: int
    unit: WorkUnit
    attempt_id: int
    number: int
    earlier: tuple[Outcome, ...]


U = TypeVar("U", bound=UnitInFlight)


def is_suspect(unit: WorkUnit) -> bool:
    """Return whether the unit may have crashed workers."""
    return unit.tries > units.SUSPECT_TRIES


class BudgetLimit(Protocol):
    """A check of a run's budget."""

    def stop_reason(self) -> str:
        """The reason not to claim more units; empty if the budget allows more."""


class UnitCalls:
    """The hooks of a :class:`evaluation.worker.sessions.WorkerSession` for units of ``run``. ``budget_guard`` is
    checked before each claim."""

    run: Run
    is_down: bool
    budget_guard: BudgetLimit | None = None

    def load_earlier_outcomes(self, flights: Sequence[U]) -> None:
        """Load the outcomes of earlier calls during an outage, so that a unit that always fails does not keep its run
        open. No query otherwise."""
        for flight in flights if self.is_down else ():
            unit_replies = Reply.objects.filter(attempt__unit=flight.unit, attempt__round=flight.unit.round)
            outcomes = unit_replies.filter(outcome__in=TRANSIENT).values_list("outcome", flat=True)
            flight.earlier = tuple(map(Outcome, outcomes))

    def within_budget(self) -> bool:
        """Return whether the budget allows more; otherwise pauses the run. Outside of transactions, idempotent."""
        reason = self.budget_guard.stop_reason() if self.budget_guard else ""
        if reason:
            self.stop_for(reason)
        return not reason

    def may_continue(self) -> bool:
        return Run.objects.filter(pk=self.run.pk, state=Run.State.RUNNING).exists()

    def attempt(self, flights: Sequence[U]) -> Sequence[U]:
        """Record the next attempts; gives the units back if the run was paused or cancelled meanwhile."""
        still_held = units.still_held([flight.unit for flight in flights])
        if not (self.may_continue() and self.within_budget()):
            units.give_back_all(still_held)
            still_held = []
        held_ids = {unit.pk for unit in still_held}
        continuing = [flight for flight in flights if flight.key in held_ids]
        rows = [Attempt(unit=f.unit, fence=f.unit.fence, round=f.unit.round, number=f.number + 1) for f in continuing]
        for flight, attempt in zip(continuing, Attempt.objects.bulk_create(rows), strict=True):
            flight.attempt_id, flight.number = attempt.pk, attempt.number
        return continuing

    def give_back(self, flights: Sequence[UnitInFlight], after_seconds: float = 0.0) -> None:
        units.give_back_all([flight.unit for flight in flights], after_seconds=after_seconds)

    def mark_unsent(self, flights: Sequence[UnitInFlight]) -> None:
        units.mark_unsent([flight.attempt_id for flight in flights])

    def extend(self, flights: Sequence[UnitInFlight]) -> None:
        units.extend([flight.unit for flight in flights])

    def stop_for(self, reason: str) -> None:
        pause(self.run, reason=reason)
