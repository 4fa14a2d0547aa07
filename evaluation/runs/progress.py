"""How far a run is (units by state, and pace), what its calls are doing right now, and what they cost: in all, by
rubric and by answer, what the cache saved, and what open ones will cost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any

from django.db.models import Count, F, Max, Q, QuerySet, Sum
from django.utils import timezone

from evaluation.extensions import BatchesOut, batch_hooks
from evaluation.models import Attempt, Endpoint, Preflight, Reply, Run, System, WorkUnit
from evaluation.models.judges import PreflightRow
from evaluation.worker.lifecycle import RunConfig, is_asking
from evaluation.worker.shares import live_shares
from evaluation.worker.units import HELD

EMBEDDINGS = "embeddings"  # in place of a rubric's name, for what was paid for vectors
PREFLIGHT = "preflight"  # likewise, for the small calls before the run
ASKING = "asking"  # likewise, for questions to the system
CACHED = "cached"  # outcome of attempts that the ledger answered
UNSENT = ("not_sent", CACHED)  # outcomes of attempts for which no call was made
_OPEN = (WorkUnit.State.BLOCKED, WorkUnit.State.TODO, *HELD)
_ENDED = (WorkUnit.State.DONE, WorkUnit.State.FAILED)


@dataclass(frozen=True, slots=True)
class Spending:
    """What some calls cost, in US dollars. Where ``unknown_calls`` is above 0 the true cost is at least ``known``:
    their price or their outcome is unknown. Token counts likewise leave unknown ones out; cached ones are part of
    ``tokens_in``, reasoning ones of ``tokens_out``. ``hits`` are calls that were not made because the ledger had the
    reply; ``saved`` is what those replies had cost, but for ``unpriced_hits``, whose cost nobody knows."""

    calls: int = 0
    known: Decimal = Decimal(0)
    unknown_calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    tokens_reasoning: int = 0
    hits: int = 0
    saved: Decimal = Decimal(0)
    unpriced_hits: int = 0

    def __add__(self, other: Spending) -> Spending:
        return Spending(**{name: getattr(self, name) + getattr(other, name) for name in _NAMES})

    @property
    def at_least(self) -> bool:
        """Whether the known cost is only a lower bound."""
        return self.unknown_calls > 0

    @property
    def saved_at_least(self) -> bool:
        """Whether the known saving is only a lower bound."""
        return self.unpriced_hits > 0


def spending(run: Run) -> Spending:
    """Of the whole run with its preflights, in two queries."""
    return spending_by_run([run.pk])[run.pk]


def spending_by_run(runs: Collection[int]) -> dict[int, Spending]:
    """Of several runs by id, with their preflights, still in two queries."""
    rows = Attempt.objects.filter(unit__run__in=runs).values("unit__run_id").order_by().annotate(**_SUMS)
    work = {row["unit__run_id"]: _spending(row) for row in rows}
    before = preflights(runs)
    return {run: altogether(part[run] for part in (work, before) if run in part) for run in runs}


def spending_of(attempts: QuerySet[Any]) -> Spending:
    """Of the calls behind some rows of a ledger of attempts, in one query."""
    return _spending(attempts.aggregate(**_SUMS))


def altogether(parts: Iterable[Spending]) -> Spending:
    """The sum of what disjoint calls cost; of none, nothing."""
    return sum(parts, Spending())


def spending_by_rubric(run: Run) -> dict[str, Spending]:
    """By the rubric whose metrics the calls were for, ``embeddings``, ``asking`` and ``preflight``; a call that several
    metrics share counts once, for their rubric. Two queries."""
    names = Attempt.objects.filter(unit__run=run).values("unit__kind", "unit__run_judge__rubric_version__family")
    found = {PREFLIGHT: altogether(preflights([run.pk]).values())}
    for row in names.order_by().annotate(**_SUMS):
        judged = row["unit__kind"] == WorkUnit.Kind.JUDGE
        other = ASKING if row["unit__kind"] == WorkUnit.Kind.ASK else EMBEDDINGS
        name = row["unit__run_judge__rubric_version__family"] if judged else other
        found[name] = found.get(name, Spending()) + _spending(row)
    return {name: part for name, part in sorted(found.items()) if part.calls or part.hits}


def spending_by_answer(run: Run) -> dict[int, Spending]:
    """By the answer's id, for answers that something was called for. One query."""
    sent = Attempt.objects.filter(unit__run=run).exclude(reply__outcome__in=UNSENT).exclude(unit__answer=None)
    rows = sent.values("unit__answer_id").order_by().annotate(**_SUMS)
    return {row["unit__answer_id"]: _spending(row) for row in rows}


def expected_cost(run: Run) -> Decimal | None:
    """US dollars that the run will have cost in the end: what is known so far, and for each open unit the mean of the
    ended ones of its judge and rubric that something was paid for; of embeddings, which are fetched for many units at
    once, the mean of all ended ones. ``None`` while open units need a call and none of their kind has a known cost.
    Three queries."""
    known = Q(reply__cost__isnull=False) & _SENT
    paid: Iterable[Mapping[str, Any]] = (
        Attempt.objects.filter(unit__run=run)
        .values("unit__run_judge_id", "unit__kind")
        .order_by()
        .annotate(**_SUMS, units=Count("unit", distinct=True, filter=known))
    )
    spent = {(row["unit__kind"], row["unit__run_judge_id"]): row for row in paid}
    total = sum((row["known"] or Decimal(0) for row in spent.values()), Decimal(0))
    total += altogether(preflights([run.pk]).values()).known
    work = WorkUnit.objects.filter(run=run).exclude(kind=WorkUnit.Kind.RULES).exclude(_unpaid(run))
    counts = {"open": Count("id", filter=Q(state__in=_OPEN)), "ended": Count("id", filter=Q(state__in=_ENDED))}
    rows: Iterable[Mapping[str, Any]] = work.values("kind", "run_judge_id").order_by().annotate(**counts)
    for row in rows:
        before = spent.get((row["kind"], row["run_judge_id"]))
        if not row["open"]:
            continue
        if before is None or not before["units"]:
            return None
        shared = row["kind"] == WorkUnit.Kind.EMBED
        among = max(row["ended"], before["units"]) if shared else before["units"]
        total += row["open"] * (before["known"] or Decimal(0)) / among
    return total


def _unpaid(run: Run) -> Q:
    """Units that never cost anything: of the offline baseline, and embedded by a local model."""
    free = Q(kind=WorkUnit.Kind.JUDGE, run_judge__judge_version__endpoint=None)
    local = not (run.config.get("embedding") or {}).get("endpoint")
    return free | Q(kind=WorkUnit.Kind.EMBED) if local else free


_SENT = Q(reply__isnull=True) | ~Q(reply__outcome__in=UNSENT)
_HIT = Q(reply__outcome=CACHED)
_SUMS = {
    "calls": Count("id", filter=_SENT),
    "known": Sum("reply__cost"),
    "unknown_calls": Count("id", filter=_SENT & (Q(reply__isnull=True) | Q(reply__cost__isnull=True))),
    "tokens_in": Sum("reply__tokens_in"),
    "tokens_out": Sum("reply__tokens_out"),
    "tokens_cached": Sum("reply__tokens_cached"),
    "tokens_reasoning": Sum("reply__tokens_reasoning"),
    "hits": Count("id", filter=_HIT),
    "saved": Sum("reply__saved"),
    "unpriced_hits": Count("id", filter=_HIT & Q(reply__saved__isnull=True)),
}
_NAMES = tuple(field.name for field in fields(Spending))


def preflights(runs: Collection[int]) -> dict[int, Spending]:
    """What the small calls before the runs cost, by run; a run without any is left out. One query."""
    found: dict[int, Spending] = {}
    for row in Preflight.objects.filter(run__in=runs):
        found[row.run_id] = found.get(row.run_id, Spending()) + spending_before(row)
    return found


def spending_before(row: PreflightRow) -> Spending:
    """What the small calls of one preflight cost."""
    parts = [_probe(call) for call in row.detail]
    if row.detail and "cost" not in row.detail[0]:  # written before each call told its own
        unknown = len(row.detail) if row.cost is None else 0
        parts.append(Spending(known=row.cost or Decimal(0), unknown_calls=unknown))
    return altogether(parts)


def _probe(call: Mapping[str, Any]) -> Spending:
    tokens: dict[str, Any] = {name: call.get(name) or 0 for name in _NAMES if name.startswith("tokens_")}
    cost = call.get("cost")
    unknown = "cost" in call and cost is None
    return Spending(calls=1, known=Decimal(cost or 0), unknown_calls=int(unknown), **tokens)


def _spending(row: Mapping[str, Any]) -> Spending:
    return Spending(**{name: row[name] for name in _NAMES if row[name]})


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
    pace: float | None = None
    seconds_left: float | None = None

    @property
    def waiting(self) -> int:
        """Units that are not finished."""
        return self.blocked + self.todo + self.leased + self.batched

    @property
    def total(self) -> int:
        """All units of the run."""
        return self.waiting + self.ended

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
    found = Progress(**{state: int(row.get(state, 0)) for state in WorkUnit.State.values}, spent=spent)
    if not run.started_at or not found.ended:
        return found
    now = timezone.now()
    until = now if found.waiting else (row.get("last") or run.finished_at or now)
    pace = found.ended / max((until - run.started_at).total_seconds(), 0.001)
    left = found.waiting / pace if found.waiting and not found.batched else None
    return replace(found, pace=pace, seconds_left=left)


RECENT_SECONDS = 30
FINE = ("ok", *UNSENT)  # of a call's outcomes


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a run. ``pace`` is calls that ended per second over the last half minute, ``in_flight`` those sent
    and not answered a second ago, ``limit`` how many the run's workers let out at once, or what its endpoints take
    where nobody works on it (``None`` without an endpoint).
    ``rests`` is the endpoint, or the system that is asked, that may be called again last of those that do not answer or
    asked for a rest. ``troubles`` counts the calls that ended
    badly by outcome; most of them were made again. ``expected`` is the cost in the end in US dollars, ``None`` while
    unknown. ``out`` are the calls in open batches, ``batch_troubles`` why others ended badly."""

    pace: float
    in_flight: int
    limit: int | None
    rests: Endpoint | System | None
    troubles: Mapping[str, int]
    expected: Decimal | None
    out: BatchesOut | None = None
    batch_troubles: tuple[str, ...] = ()

    @property
    def resting_until(self) -> datetime | None:
        """When everybody may be called again."""
        return self.rests.cooldown_until if self.rests else None


def calls_of(run: Run) -> Calls:
    """The run's calls now. Nine queries at most, two more where it has batches."""
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
    called: list[Endpoint | System] = [*endpoints, *([run.answer_set.system_version.system] if is_asking(run) else [])]
    resting = [one for one in called if one.cooldown_until and (one.down_since or one.cooldown_until > now)]
    return Calls(
        pace=recent / RECENT_SECONDS,
        in_flight=open_calls.count() if told["out"] is None else told["out"],
        limit=(told["limit"] or sum(one.max_concurrency for one in endpoints)) if endpoints else None,
        rests=max(resting, key=attrgetter("cooldown_until"), default=None),
        troubles=dict(sorted(bad, key=lambda each: (-each[1], each[0]))),
        expected=expected_cost(run),
        out=batches.out(run) if batches else None,
        batch_troubles=tuple(batches.troubles(run)) if batches else (),
    )
