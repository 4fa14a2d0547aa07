"""What turns at calls for units of a run have in common: the ledger they stand in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from evaluation.models import Attempt, Reply, Run, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.network.retrying import PASSING
from evaluation.worker import units
from evaluation.worker.lifecycle import pause


class UnitInHands(Protocol):
    """A unit in a worker's hands, with the attempt that is out for it; see ``sessions.InHands``."""

    key: int
    unit: WorkUnit
    attempt_id: int
    number: int
    earlier: tuple[Outcome, ...]


U = TypeVar("U", bound=UnitInHands)


def is_suspect(unit: WorkUnit) -> bool:
    """Whether the unit may have killed workers before."""
    return unit.tries > units.SUSPECT_TRIES


class Purse(Protocol):
    """A look at what a run may still cost."""

    def stops(self) -> str:
        """Why nothing may be claimed any more; empty while something may."""


class UnitCalls:
    """The hooks of a :class:`evaluation.worker.sessions.Session` that go to the units of ``run``. ``purse`` is looked
    into before anything is claimed."""

    run: Run
    down: bool
    purse: Purse | None = None

    def recall(self, flights: Sequence[U]) -> None:
        """Where nobody is answered at present, how calls for the units ended before: one that always fails shall not
        keep its run open for ever. No query elsewhere."""
        for flight in flights if self.down else ():
            faults = Reply.objects.filter(attempt__unit=flight.unit, attempt__round=flight.unit.round)
            told = faults.filter(outcome__in=PASSING).values_list("outcome", flat=True)
            flight.earlier = tuple(map(Outcome, told))

    def affords(self) -> bool:
        """Whether more may be claimed; else the run is paused. In no transaction, safe to repeat."""
        reason = self.purse.stops() if self.purse else ""
        if reason:
            self.stop_for(reason)
        return not reason

    def goes_on(self) -> bool:
        """Whether the run still runs."""
        return Run.objects.filter(pk=self.run.pk, state=Run.State.RUNNING).exists()

    def attempt(self, flights: Sequence[U]) -> Sequence[U]:
        """The next attempts; a run that was paused or cancelled meanwhile gets the units back."""
        kept = units.still_held([flight.unit for flight in flights])
        if not (self.goes_on() and self.affords()):
            units.give_all_back(kept)
            kept = []
        ours = {unit.pk for unit in kept}
        going = [flight for flight in flights if flight.key in ours]
        rows = [Attempt(unit=f.unit, fence=f.unit.fence, round=f.unit.round, number=f.number + 1) for f in going]
        for flight, attempt in zip(going, Attempt.objects.bulk_create(rows), strict=True):
            flight.attempt_id, flight.number = attempt.pk, attempt.number
        return going

    def give_back(self, flights: Sequence[UnitInHands], after_seconds: float = 0.0) -> None:
        """Return the units unharmed."""
        units.give_all_back([flight.unit for flight in flights], after_seconds=after_seconds)

    def mark_unsent(self, flights: Sequence[UnitInHands]) -> None:
        """A reply to each attempt that says so."""
        units.mark_unsent([flight.attempt_id for flight in flights])

    def extend(self, flights: Sequence[UnitInHands]) -> None:
        """Heartbeat of the units."""
        units.extend([flight.unit for flight in flights])

    def stop_for(self, reason: str) -> None:
        """Pause the run."""
        pause(self.run, reason=reason)
