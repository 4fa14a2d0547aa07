"""Budgets: the cost limit of a run's calls, and when its workers stop.

Workers check the budget before each claim. Calls in flight count as the mean of the calls with a known cost. A run
therefore exceeds its budget at most by what the calls in flight cost above that mean, or by their whole cost while no
cost is known. The cost of questions to the system is unknown and not included."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import Count, Q, Sum

from evaluation.accounts import audit
from evaluation.core.errors import DomainError
from evaluation.judges.prices import price_table
from evaluation.models import Attempt, JudgeVersion, Run, User, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.runs.progress import UNSENT, preflight_spending, total_spending
from evaluation.worker.lifecycle import RunConfig

# The reason of a paused run.
BUDGET_USED_UP = "budget"
# The reason of a run paused because replies arrive whose cost is unknown.
COST_UNKNOWN = "budget_untold"
LONGEST_INTERVAL_SECONDS = 1.0
# The minimum number of checks within the time the budget lasts at the current pace.
CHECKS_PER_REMAINDER = 4


def check_budget(budget: Decimal | None, judges: Iterable[JudgeVersion], config: RunConfig) -> None:
    """Refuse a budget that cannot be enforced.

    :raises DomainError: ``budget_of_batches``, because a batch is paid for as a whole; ``budget_unpriced`` for models
        without a price."""
    if budget is None:
        return
    if config.batch:
        raise DomainError("budget_of_batches")
    models = {judge.model for judge in judges if judge.endpoint_id}
    if config.embedding is not None and config.embedding.endpoint is not None:
        models.add(config.embedding.model)
    today = datetime.now(UTC).date()
    if unpriced := sorted(model for model in models if price_table().price(model, today) is None):
        raise DomainError("budget_unpriced", models=unpriced)


def estimated_spending(run: Run) -> tuple[Decimal, str]:
    """The estimated US dollars spent on judges and embeddings. Calls in flight count as the mean known cost of their
    judge.

    The second value is :data:`COST_UNKNOWN` if a judge gave good replies and none has a known cost. Two queries."""
    sent = Q(reply__isnull=True) | ~Q(reply__outcome__in=UNSENT)
    paid = Attempt.objects.filter(unit__run=run).exclude(unit__kind=WorkUnit.Kind.ASK)
    rows = paid.values("unit__kind", "unit__run_judge__judge_version").order_by()
    total, cost_unknown = total_spending(preflight_spending([run.pk]).values()).known, False
    for row in rows.annotate(
        known=Sum("reply__cost"),
        priced=Count("id", filter=sent & Q(reply__cost__isnull=False)),
        unpriced=Count("id", filter=sent & Q(reply__cost__isnull=True)),
        unpriced_replies=Count("id", filter=Q(reply__outcome=Outcome.OK, reply__cost__isnull=True)),
    ):
        known_cost = row["known"] or Decimal(0)
        mean = known_cost / row["priced"] if row["priced"] else Decimal(0)
        total += known_cost + mean * row["unpriced"]
        cost_unknown = cost_unknown or (row["unpriced_replies"] > 0 and not row["priced"])
    return total, COST_UNKNOWN if cost_unknown else ""


def set_budget(run: Run, budget: Decimal | None, by: User | None) -> None:
    """Change the budget of a run; ``None`` keeps it.

    :raises DomainError: ``budget_used_up`` if that much is already spent; see also :func:`check_budget`."""
    with transaction.atomic():
        if budget is not None and budget != run.budget:
            judges = JudgeVersion.objects.filter(pk__in=run.judges.values("judge_version"))
            check_budget(budget, judges, RunConfig.model_validate(run.config))
            audit.record(by, "run.budget", run, before=str(run.budget), after=str(budget))
            run.budget = budget
            run.save(update_fields=["budget"])
        if run.budget is not None and (dollars := estimated_spending(run)[0]) >= run.budget:
            raise DomainError("budget_used_up", spent=f"{dollars:.4f}", budget=f"{run.budget:.4f}")


class BudgetGuard:
    """A worker's check of a run's budget. It queries as often as the pace of spending requires."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._next_check_at = float("-inf")
        self._first_reading: tuple[float, Decimal] | None = None

    def stop_reason(self) -> str:
        """The reason not to claim more units; empty if the budget allows more."""
        budget, now = self._run.budget, time.monotonic()
        if budget is None or now < self._next_check_at:
            return ""
        dollars, cost_problem = estimated_spending(self._run)
        if dollars >= budget:
            return BUDGET_USED_UP
        first_at, first_spent = self._first_reading = self._first_reading or (now, dollars)
        dollars_per_second = float(dollars - first_spent) / (now - first_at) if now > first_at else 0.0
        self._next_check_at = (
            now + min(LONGEST_INTERVAL_SECONDS, float(budget - dollars) / dollars_per_second / CHECKS_PER_REMAINDER)
            if dollars_per_second
            else now
        )
        return cost_problem


def budget_guard(run: Run) -> BudgetGuard | None:
    """The guard of the run's budget, if it has one."""
    return BudgetGuard(run) if run.budget is not None else None
