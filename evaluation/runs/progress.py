"""How far a run is (units by state, calls, cost and pace) and what its calls are doing right now."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, F, Max, Q, Sum
from django.utils import timezone

from evaluation.models import Attempt, Endpoint, Reply, Run, WorkUnit
from evaluation.runs.costs import UNSENT, Spending, expected_cost, spending_by_run
from evaluation.work.lifecycle import RunConfig
from evaluation.work.plugins import BatchesOut, batch_hooks
from evaluation.work.shares import live_shares


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


RECENT_SECONDS = 30
FINE = ("ok", *UNSENT)  # of a call's outcomes


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a run. ``pace`` is calls that ended per second over the last half minute, ``in_flight`` those sent
    and not answered a second ago, ``limit`` how many the run's workers let out at once, or what its endpoints take
    where nobody works on it (``None`` without an endpoint).
    ``resting_until`` is when the last resting endpoint may be called again. ``troubles`` counts the calls that ended
    badly by outcome; most of them were made again. ``expected`` is the cost in the end in US dollars, ``None`` while
    unknown. ``out`` are the calls in open batches, ``batch_troubles`` why others ended badly."""

    pace: float
    in_flight: int
    limit: int | None
    resting_until: datetime | None
    troubles: Mapping[str, int]
    expected: Decimal | None
    out: BatchesOut | None = None
    batch_troubles: tuple[str, ...] = ()


def calls_of(run: Run) -> Calls:
    """The run's calls now. Seven queries at most, two more where it has batches."""
    now = timezone.now()
    replies = Reply.objects.filter(attempt__unit__run=run)
    recent = replies.filter(created_at__gt=now - timedelta(seconds=RECENT_SECONDS)).exclude(outcome__in=UNSENT).count()
    open_calls = Attempt.objects.filter(
        unit__run=run, unit__state=WorkUnit.State.LEASED, fence=F("unit__fence"), reply__isnull=True
    )
    told = live_shares().filter(run=run).aggregate(out=Sum("out"), limit=Sum("limit"))
    bad = replies.exclude(outcome__in=FINE).values_list("outcome").order_by().annotate(count=Count("id"))
    endpoints = list(Endpoint.objects.filter(judges__in=run.judges.values("judge_version")).distinct())
    batches = batch_hooks() if RunConfig.model_validate(run.config).batch else None
    resting = [until for until in (one.cooldown_until for one in endpoints) if until and until > now]
    return Calls(
        pace=recent / RECENT_SECONDS,
        in_flight=open_calls.count() if told["out"] is None else told["out"],
        limit=(told["limit"] or sum(one.max_concurrency for one in endpoints)) if endpoints else None,
        resting_until=max(resting, default=None),
        troubles=dict(sorted(bad, key=lambda each: (-each[1], each[0]))),
        expected=expected_cost(run),
        out=batches.out(run) if batches else None,
        batch_troubles=tuple(batches.troubles(run)) if batches else (),
    )
