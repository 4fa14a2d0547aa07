"""What the calls of a run cost, in all, by rubric and by answer, what the cache saved, and what open ones will cost."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from functools import reduce
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from evaluation.models import Attempt, Preflight, Run, WorkUnit
from evaluation.models.judges import PreflightRow
from evaluation.work.units import HELD

EMBEDDINGS = "embeddings"  # in place of a rubric's name, for what was paid for vectors
PREFLIGHT = "preflight"  # likewise, for the small calls before the run
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
    before = _preflights(runs)
    return {run: altogether(part[run] for part in (work, before) if run in part) for run in runs}


def spending_of(attempts: QuerySet[Any]) -> Spending:
    """Of the calls behind some rows of a ledger of attempts, in one query."""
    return _spending(attempts.aggregate(**_SUMS))


def altogether(parts: Iterable[Spending]) -> Spending:
    """The sum of what disjoint calls cost; of none, nothing."""
    return reduce(_added, parts, Spending())


def spending_by_rubric(run: Run) -> dict[str, Spending]:
    """By the rubric whose metrics the calls were for, ``embeddings`` and ``preflight``; a call that several metrics
    share counts once, for their rubric. Two queries."""
    names = Attempt.objects.filter(unit__run=run).values("unit__kind", "unit__run_judge__rubric_version__family")
    found = {PREFLIGHT: altogether(_preflights([run.pk]).values())}
    for row in names.order_by().annotate(**_SUMS):
        judged = row["unit__kind"] == WorkUnit.Kind.JUDGE
        name = row["unit__run_judge__rubric_version__family"] if judged else EMBEDDINGS
        found[name] = altogether([found.get(name, Spending()), _spending(row)])
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
    total += altogether(_preflights([run.pk]).values()).known
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


def _preflights(runs: Collection[int]) -> dict[int, Spending]:
    """What the small calls before the runs cost, by run. One query."""
    found: dict[int, Spending] = {}
    for row in Preflight.objects.filter(run__in=runs):
        found[row.run_id] = altogether([found.get(row.run_id, Spending()), spending_before(row)])
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
    return Spending(**{name: row[name] or getattr(_NOTHING, name) for name in _NAMES})


def _added(one: Spending, other: Spending) -> Spending:
    return Spending(**{name: getattr(one, name) + getattr(other, name) for name in _NAMES})


_NOTHING = Spending()
