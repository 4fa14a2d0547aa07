"""The preflight of a run: a few small calls per judge, what they told as a row, and then the run goes on or pauses."""

from __future__ import annotations

import random
from dataclasses import dataclass

from django.db.models.functions import Now

from evaluation.judges.pinning import pin, pinned_columns
from evaluation.judging.calls import Outcome, Rung
from evaluation.judging.probing import Probed
from evaluation.models import JudgeVersion, Preflight, Run, RunEvent
from evaluation.work.database import retry_on_db_error
from evaluation.work.lifecycle import begin, pause, unpinned
from evaluation.work.planning import RunConfig


def preflight(run: Run, deadline: float, rng: random.Random | None = None) -> None:
    """Pin every judge of the run that is not pinned yet, then let the run begin; pause it with the reason where one
    cannot be. A run in another state is left alone, and so is a server that asked for more time.

    ``deadline`` is in monotonic seconds: when it is over the rest is left to the next worker.
    """
    if run.state != Run.State.PREFLIGHT or retry_on_db_error(lambda: _asked_to_wait(run)):
        return
    for judge in retry_on_db_error(lambda: unpinned(run)):
        if not pin(judge, _RunPins(run, judge), deadline, rng or random.Random()):
            return
    retry_on_db_error(lambda: begin(run))


def rung_of(run: Run, judge: JudgeVersion) -> Rung:
    """The way of asking that is pinned for the run. The baseline is not asked; a run made before there were preflights
    asks by strict schema, as it did then."""
    pinned = Preflight.objects.filter(run=run, judge_version=judge, outcome=Outcome.OK).values_list("rung", flat=True)
    return Rung(next(iter(pinned), Rung.JSON_SCHEMA))


@dataclass(frozen=True, slots=True)
class _RunPins:
    """A judge's rows in a run."""

    run: Run
    judge: JudgeVersion

    @property
    def run_id(self) -> int:
        return self.run.pk

    def tries(self) -> int:
        by_hand = RunEvent.objects.filter(run=self.run, verb__in=["started", "resumed", "retried"])
        last = by_hand.order_by("-id").first()
        rows = Preflight.objects.filter(run=self.run, judge_version=self.judge)
        return (rows.filter(created_at__gte=last.created_at) if last else rows).count()

    def keep(self, found: Probed, wait: float | None) -> None:
        """Where two workers pinned at once the first one's rung holds for both."""
        row = Preflight(run=self.run, **pinned_columns(self.judge, found, wait, _repeats(self.run)))
        Preflight.objects.bulk_create([row], ignore_conflicts=found.outcome == Outcome.OK)

    def stop(self, reason: str) -> None:
        pause(self.run, reason=reason)


def _asked_to_wait(run: Run) -> bool:
    return Preflight.objects.filter(run=run, retry_at__gt=Now()).exists()


def _repeats(run: Run) -> list[int]:
    """Their number where there are several: a mean of repeats is another judge than a single verdict."""
    repeats = RunConfig.model_validate(run.config).repeat
    return [repeats] if repeats > 1 else []
