"""Progress of a run (units by state, pace), the status of its calls, and their cost: in total, by rubric and by answer,
savings by cached replies, and the expected cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime, timedelta
from decimal import Decimal
from operator import attrgetter
from typing import Any

from django.db.models import Count, F, Max, Q, QuerySet, Sum
from django.utils import timezone

from evaluation.extensions import OpenBatches, batch_hooks
from evaluation.models import Attempt, Endpoint, Preflight, Reply, Run, System, WorkUnit
from evaluation.models.judges import PreflightRow
from evaluation.worker.endpoint_quota import active_quota_leases
from evaluation.worker.lifecycle import RunConfig, collects_answers
from evaluation.worker.units import HELD_STATES

# Used instead of a rubric's name for the cost of embeddings.
EMBEDDINGS = "embeddings"
# Used instead of a rubric's name for the cost of preflights.
PREFLIGHT = "preflight"
# Used instead of a rubric's name for questions to the system.
ASKING = "asking"
# The outcome of attempts that a stored reply answered.
CACHED = "cached"
# Outcomes of attempts without a call.
UNSENT = ("not_sent", CACHED)
_OPEN_STATES = (WorkUnit.State.BLOCKED, WorkUnit.State.TODO, *HELD_STATES)
_ENDED_STATES = (WorkUnit.State.DONE, WorkUnit.State.FAILED)


@dataclass(frozen=True, slots=True)
class Spending:
    """The cost of calls in US dollars; the offline baseline makes none. If ``unknown_calls`` is above 0, the true cost
    is at least ``known``, because a price or an outcome is unknown. Token counts omit unknown ones too; cached tokens
    are part of ``tokens_in``, reasoning tokens of ``tokens_out``. ``hits`` are calls that a stored reply answered;
    ``saved`` is the original cost of those replies, except for ``unpriced_hits``, whose cost is unknown."""

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
        """Return whether the known cost is only a lower bound."""
        return self.unknown_calls > 0

    @property
    def saved_at_least(self) -> bool:
        """Return whether the known saving is only a lower bound."""
        return self.unpriced_hits > 0


def spending(run: Run) -> Spending:
    """The cost of the whole run with its preflights. Two queries."""
    return spending_by_run([run.pk])[run.pk]


def spending_by_run(runs: Collection[int]) -> dict[int, Spending]:
    """The cost of several runs with their preflights, by id. Two queries."""
    rows = _attempts(unit__run__in=runs).values("unit__run_id").order_by().annotate(**_SUMS)
    run_calls = {row["unit__run_id"]: _to_spending(row) for row in rows}
    preflight = preflight_spending(runs)
    return {run: total_spending(by_run[run] for by_run in (run_calls, preflight) if run in by_run) for run in runs}


def spending_of(attempts: QuerySet[Any]) -> Spending:
    """The cost of the calls behind rows of an attempt table. One query."""
    return _to_spending(attempts.aggregate(**_SUMS))


def total_spending(parts: Iterable[Spending]) -> Spending:
    """The sum over disjoint calls; zero for none."""
    return sum(parts, Spending())


def spending_by_rubric(run: Run) -> dict[str, Spending]:
    """The cost by rubric, ``embeddings``, ``asking`` and ``preflight``. A call shared by several metrics counts once,
    for their rubric. Two queries."""
    names = _attempts(unit__run=run).values("unit__kind", "unit__run_judge__rubric_version__family")
    by_name = {PREFLIGHT: total_spending(preflight_spending([run.pk]).values())}
    for row in names.order_by().annotate(**_SUMS):
        judged = row["unit__kind"] == WorkUnit.Kind.JUDGE
        name_without_rubric = ASKING if row["unit__kind"] == WorkUnit.Kind.ASK else EMBEDDINGS
        name = row["unit__run_judge__rubric_version__family"] if judged else name_without_rubric
        by_name[name] = by_name.get(name, Spending()) + _to_spending(row)
    return {name: spending for name, spending in sorted(by_name.items()) if spending.calls or spending.hits}


def spending_by_answer(run: Run) -> dict[int, Spending]:
    """The cost by answer id, for answers with calls. One query."""
    sent = _attempts(unit__run=run).exclude(reply__outcome__in=UNSENT).exclude(unit__answer=None)
    rows = sent.values("unit__answer_id").order_by().annotate(**_SUMS)
    return {row["unit__answer_id"]: _to_spending(row) for row in rows}


def expected_cost(run: Run) -> Decimal | None:
    """The expected total cost of the run in US dollars: the known cost so far, and for each open unit the mean of the
    paid, ended units of its judge and rubric. For embeddings, which are fetched for many units at once, the mean of all
    ended units. ``None`` if open units need a call and none of their kind has a known cost. Three queries."""
    known_cost = Q(reply__cost__isnull=False) & _SENT
    paid: Iterable[Mapping[str, Any]] = (
        _attempts(unit__run=run)
        .values("unit__run_judge_id", "unit__kind")
        .order_by()
        .annotate(**_SUMS, units=Count("unit", distinct=True, filter=known_cost))
    )
    sums_by_kind = {(row["unit__kind"], row["unit__run_judge_id"]): row for row in paid}
    total = sum((row["known"] or Decimal(0) for row in sums_by_kind.values()), Decimal(0))
    total += total_spending(preflight_spending([run.pk]).values()).known
    open_work = WorkUnit.objects.filter(run=run).exclude(_free_units(run))
    counts = {
        "open": Count("id", filter=Q(state__in=_OPEN_STATES)),
        "ended": Count("id", filter=Q(state__in=_ENDED_STATES)),
    }
    rows: Iterable[Mapping[str, Any]] = open_work.values("kind", "run_judge_id").order_by().annotate(**counts)
    for row in rows:
        ended_units = sums_by_kind.get((row["kind"], row["run_judge_id"]))
        if not row["open"]:
            continue
        if ended_units is None or not ended_units["units"]:
            return None
        is_shared = row["kind"] == WorkUnit.Kind.EMBED
        unit_count = max(row["ended"], ended_units["units"]) if is_shared else ended_units["units"]
        total += row["open"] * (ended_units["known"] or Decimal(0)) / unit_count
    return total


def _free_units(run: Run) -> Q:
    """Units that never cost anything: rules, those of the offline baseline, and embeddings by a local model."""
    free = Q(kind=WorkUnit.Kind.JUDGE, run_judge__judge_version__endpoint=None)
    free |= Q(kind__in=[WorkUnit.Kind.RULES, WorkUnit.Kind.OWN])
    local = not (run.config.get("embedding") or {}).get("endpoint")
    return free | Q(kind=WorkUnit.Kind.EMBED) if local else free


def calls_of_servers(unit: str) -> Q:
    """A filter for calls to endpoints and systems, without those of the offline baseline. ``unit`` is the path to the
    unit."""
    of_endpoint = Q(**{f"{unit}__run_judge__judge_version__endpoint__isnull": False})
    return Q(**{f"{unit}__run_judge": None}) | of_endpoint


def _attempts(**conditions: Any) -> QuerySet[Attempt]:
    return Attempt.objects.filter(calls_of_servers("unit"), **conditions)


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


def preflight_spending(runs: Collection[int]) -> dict[int, Spending]:
    """The cost of the runs' preflights, by run; runs without one are left out. One query."""
    by_run: dict[int, Spending] = {}
    for row in Preflight.objects.filter(run__in=runs):
        by_run[row.run_id] = by_run.get(row.run_id, Spending()) + spending_of_preflight(row)
    return by_run


def spending_of_preflight(row: PreflightRow) -> Spending:
    parts = [_probe_spending(call) for call in row.detail]
    # Older rows have no cost for each call.
    if row.detail and "cost" not in row.detail[0]:
        unknown = len(row.detail) if row.cost is None else 0
        parts.append(Spending(known=row.cost or Decimal(0), unknown_calls=unknown))
    return total_spending(parts)


def _probe_spending(call: Mapping[str, Any]) -> Spending:
    tokens: dict[str, Any] = {name: call.get(name) or 0 for name in _NAMES if name.startswith("tokens_")}
    cost = call.get("cost")
    unknown = "cost" in call and cost is None
    return Spending(calls=1, known=Decimal(cost or 0), unknown_calls=int(unknown), **tokens)


def _to_spending(row: Mapping[str, Any]) -> Spending:
    return Spending(**{name: row[name] for name in _NAMES if row[name]})


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of a run's units, and the cost of its calls, including preflights.

    ``pace`` is units per second since the start, ``seconds_left`` the estimate from it. Both are ``None`` while
    unknown; the estimate also while calls are out in batches."""

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
        return self.waiting + self.ended

    @property
    def ended(self) -> int:
        """Units that are done, failed or skipped."""
        return self.done + self.failed + self.skipped

    @property
    def share(self) -> float:
        """Share of ended units, 0 to 1; 1 for a run without units."""
        return self.ended / self.total if self.total else 1.0


def progress(run: Run) -> Progress:
    return progress_by_run([run])[run.pk]


def progress_by_run(runs: Collection[Run]) -> dict[int, Progress]:
    """The progress of several runs by id. Three queries."""
    ids = [run.pk for run in runs]
    states = {state: Count("id", filter=Q(state=state)) for state in WorkUnit.State.values}
    units = WorkUnit.objects.filter(run__in=ids).order_by().values("run_id").annotate(last=Max("finished_at"), **states)
    units_of: dict[int, Mapping[str, Any]] = {row["run_id"]: row for row in units}
    spent = spending_by_run(ids)
    return {run.pk: _build_progress(run, units_of.get(run.pk, {}), spent[run.pk]) for run in runs}


def _build_progress(run: Run, row: Mapping[str, Any], spent: Spending) -> Progress:
    progress_now = Progress(**{state: int(row.get(state, 0)) for state in WorkUnit.State.values}, spent=spent)
    if not run.started_at or not progress_now.ended:
        return progress_now
    now = timezone.now()
    until = now if progress_now.waiting else (row.get("last") or run.finished_at or now)
    pace = progress_now.ended / max((until - run.started_at).total_seconds(), 0.001)
    seconds_left = progress_now.waiting / pace if progress_now.waiting and not progress_now.batched else None
    return replace(progress_now, pace=pace, seconds_left=seconds_left)


RECENT_SECONDS = 30
GOOD_OUTCOMES = ("ok", *UNSENT)


@dataclass(frozen=True, slots=True)
class CallStatus:
    """The calls of a run. ``pace`` is the number of calls that ended per second over the last half minute;
    ``in_flight`` is up to a second old. ``limit`` is the number of calls that the run's workers allow at once, or
    that its endpoints take if nobody works on it (``None`` without an endpoint).

    ``resting`` is the endpoint or system with the latest cooldown. ``troubles`` counts failed calls by outcome; most
    were retried. ``expected`` is the expected cost in US dollars, ``None`` while unknown. ``open_batches`` are the
    calls in open batches, ``batch_troubles`` the reasons of failed ones."""

    pace: float
    in_flight: int
    limit: int | None
    resting: Endpoint | System | None
    troubles: Mapping[str, int]
    expected: Decimal | None
    open_batches: OpenBatches | None = None
    batch_troubles: tuple[str, ...] = ()

    @property
    def resting_until(self) -> datetime | None:
        """The end of the longest cooldown."""
        return self.resting.cooldown_until if self.resting else None


def call_status(run: Run) -> CallStatus:
    """The current calls of the run. At most nine queries, two more if it has batches."""
    now = timezone.now()
    replies = Reply.objects.filter(calls_of_servers("attempt__unit"), attempt__unit__run=run)
    recent = replies.filter(created_at__gt=now - timedelta(seconds=RECENT_SECONDS)).exclude(outcome__in=UNSENT).count()
    open_calls = _attempts(unit__run=run, unit__state=WorkUnit.State.LEASED, fence=F("unit__fence"), reply__isnull=True)
    reported = active_quota_leases().filter(run=run).aggregate(out=Sum("in_flight"), limit=Sum("limit"))
    failed_replies = (
        replies.exclude(outcome__in=GOOD_OUTCOMES).values_list("outcome").order_by().annotate(count=Count("id"))
    )
    endpoints = list(Endpoint.objects.filter(judges__in=run.judges.values("judge_version")).distinct())
    batches = batch_hooks() if RunConfig.model_validate(run.config).batch else None
    endpoints_and_systems: list[Endpoint | System] = [
        *endpoints,
        *([run.answer_set.system_version.system] if collects_answers(run) else []),
    ]
    resting = [
        endpoint
        for endpoint in endpoints_and_systems
        if endpoint.cooldown_until and (endpoint.down_since or endpoint.cooldown_until > now)
    ]
    return CallStatus(
        pace=recent / RECENT_SECONDS,
        in_flight=open_calls.count() if reported["out"] is None else reported["out"],
        limit=(reported["limit"] or sum(endpoint.max_concurrency for endpoint in endpoints)) if endpoints else None,
        resting=max(resting, key=attrgetter("cooldown_until"), default=None),
        troubles=dict(sorted(failed_replies, key=lambda outcome_count: (-outcome_count[1], outcome_count[0]))),
        expected=expected_cost(run),
        open_batches=batches.summarize_open(run) if batches else None,
        batch_troubles=tuple(batches.failure_reasons(run)) if batches else (),
    )
