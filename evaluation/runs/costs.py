"""What the calls of a run cost, in all, by rubric and by answer, and what the open ones will."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum

from evaluation.runs.models import Run
from evaluation.work.models import Attempt, WorkUnit

EMBEDDINGS = "embeddings"  # in place of a rubric's name, for what was paid for vectors
UNSENT = ("not_sent", "cached")  # outcomes of attempts for which no call was made
_OPEN = (WorkUnit.State.BLOCKED, WorkUnit.State.TODO, WorkUnit.State.LEASED)


@dataclass(frozen=True, slots=True)
class Spending:
    """What some calls cost, in US dollars. Where ``unknown_calls`` is above 0 the true cost is at least ``known``:
    their price or their outcome is unknown. Token counts likewise leave unknown ones out; cached ones are part of
    ``tokens_in``, reasoning ones of ``tokens_out``."""

    calls: int
    known: Decimal
    unknown_calls: int
    tokens_in: int
    tokens_out: int
    tokens_cached: int
    tokens_reasoning: int

    @property
    def at_least(self) -> bool:
        """Whether the known cost is only a lower bound."""
        return self.unknown_calls > 0


def spending(run: Run) -> Spending:
    """Of the whole run, in one query."""
    return _spending(_sent(run).aggregate(**_SUMS))


def altogether(parts: Iterable[Spending]) -> Spending:
    """The sum of what disjoint calls cost; of none, nothing."""
    return reduce(_added, parts, Spending(0, Decimal(0), 0, 0, 0, 0, 0))


def spending_by_rubric(run: Run) -> dict[str, Spending]:
    """By the rubric whose metrics the calls were for, and ``embeddings``; a call that several metrics share counts
    once, for their rubric. One query."""
    rows = _sent(run).values("unit__kind", "unit__run_judge__rubric_version__family").order_by().annotate(**_SUMS)
    found: dict[str, Spending] = {}
    for row in rows:
        judged = row["unit__kind"] == WorkUnit.Kind.JUDGE
        name = row["unit__run_judge__rubric_version__family"] if judged else EMBEDDINGS
        found[name] = _added(found[name], _spending(row)) if name in found else _spending(row)
    return dict(sorted(found.items()))


def spending_by_answer(run: Run) -> dict[int, Spending]:
    """By the answer's id, for answers that something was called for. One query."""
    rows = _sent(run).exclude(unit__answer=None).values("unit__answer_id").order_by().annotate(**_SUMS)
    return {row["unit__answer_id"]: _spending(row) for row in rows}


def expected_cost(run: Run) -> Decimal | None:
    """US dollars that the run will have cost in the end: what is known so far, and for each open unit the mean of the
    ended ones of its judge and rubric. ``None`` while a judge with open units has no ended call of known cost. Two
    queries."""
    with_cost = Count("unit", distinct=True, filter=Q(reply__cost__isnull=False))
    paid: Iterable[Mapping[str, Any]] = (
        _sent(run).values("unit__run_judge_id", "unit__kind").order_by().annotate(**_SUMS, units=with_cost)
    )
    spent = {(row["unit__kind"], row["unit__run_judge_id"]): row for row in paid}
    open_units = WorkUnit.objects.filter(run=run, state__in=_OPEN).exclude(kind=WorkUnit.Kind.RULES)
    total = sum((row["known"] or Decimal(0) for row in spent.values()), Decimal(0))
    for row in open_units.values("kind", "run_judge_id").order_by().annotate(count=Count("id")):
        before = spent.get((row["kind"], row["run_judge_id"]))
        if before is None or not before["units"]:
            return None
        total += row["count"] * (before["known"] or Decimal(0)) / before["units"]
    return total


_SUMS = {
    "calls": Count("id"),
    "known": Sum("reply__cost"),
    "unknown": Count("id", filter=Q(reply__isnull=True) | Q(reply__cost__isnull=True)),
    "tokens_in": Sum("reply__tokens_in"),
    "tokens_out": Sum("reply__tokens_out"),
    "tokens_cached": Sum("reply__tokens_cached"),
    "tokens_reasoning": Sum("reply__tokens_reasoning"),
}


def _sent(run: Run) -> QuerySet[Attempt]:
    return Attempt.objects.filter(unit__run=run).exclude(reply__outcome__in=UNSENT)


def _spending(row: Mapping[str, Any]) -> Spending:
    return Spending(
        calls=row["calls"],
        known=row["known"] or Decimal(0),
        unknown_calls=row["unknown"],
        tokens_in=row["tokens_in"] or 0,
        tokens_out=row["tokens_out"] or 0,
        tokens_cached=row["tokens_cached"] or 0,
        tokens_reasoning=row["tokens_reasoning"] or 0,
    )


def _added(one: Spending, other: Spending) -> Spending:
    return Spending(
        calls=one.calls + other.calls,
        known=one.known + other.known,
        unknown_calls=one.unknown_calls + other.unknown_calls,
        tokens_in=one.tokens_in + other.tokens_in,
        tokens_out=one.tokens_out + other.tokens_out,
        tokens_cached=one.tokens_cached + other.tokens_cached,
        tokens_reasoning=one.tokens_reasoning + other.tokens_reasoning,
    )
