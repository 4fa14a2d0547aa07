"""Budgets: what calls of a run may cost, and when its workers stop making them.

A budget is looked at before anything is claimed. What is out counts as the mean of the calls whose cost is known, so
that a run ends at its budget, and beyond it by no more than the calls that are out cost above their mean (or at all,
while no cost is known yet). What questions to the system cost is not known here and is no part of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import Count, Q, Sum

from evaluation.accounts import audit
from evaluation.core.errors import Refused
from evaluation.judges.prices import price_table
from evaluation.models import Attempt, JudgeVersion, Run, User, WorkUnit
from evaluation.network.outcomes import Outcome
from evaluation.runs.progress import UNSENT, altogether, preflights
from evaluation.worker.lifecycle import RunConfig

USED_UP = "budget"  # why a run is paused
UNTOLD = "budget_untold"  # likewise, where replies come and nobody can tell what they cost
LONGEST = 1.0  # seconds between two looks
CAUTION = 4  # looks at least in the time that is left at the present pace


def check_budget(budget: Decimal | None, judges: Iterable[JudgeVersion], config: RunConfig) -> None:
    """Refuse a budget that could not be kept.

    :raises Refused: ``budget_of_batches``, since a batch is paid for as a whole; ``budget_unpriced`` for models that
        the table of prices does not name.
    """
    if budget is None:
        return
    if config.batch:
        raise Refused("budget_of_batches")
    models = {judge.model for judge in judges if judge.endpoint_id}
    if config.embedding is not None and config.embedding.endpoint is not None:
        models.add(config.embedding.model)
    today = datetime.now(UTC).date()
    if unpriced := sorted(model for model in models if price_table().price(model, today) is None):
        raise Refused("budget_unpriced", models=unpriced)


def spent(run: Run) -> tuple[Decimal, str]:
    """US dollars of the calls to judges and for embeddings, those that are out at the mean of what is known of their
    judge; and :data:`UNTOLD` where good replies of a judge came and none of them has a known cost. What questions to
    the system cost is not known and is no part of it. Two queries."""
    sent = Q(reply__isnull=True) | ~Q(reply__outcome__in=UNSENT)
    paid = Attempt.objects.filter(unit__run=run).exclude(unit__kind=WorkUnit.Kind.ASK)
    rows = paid.values("unit__kind", "unit__run_judge__judge_version").order_by()
    total, untold = altogether(preflights([run.pk]).values()).known, False
    for row in rows.annotate(
        known=Sum("reply__cost"),
        priced=Count("id", filter=sent & Q(reply__cost__isnull=False)),
        unpriced=Count("id", filter=sent & Q(reply__cost__isnull=True)),
        untold=Count("id", filter=Q(reply__outcome=Outcome.OK, reply__cost__isnull=True)),
    ):
        known = row["known"] or Decimal(0)
        mean = known / row["priced"] if row["priced"] else Decimal(0)
        total += known + mean * row["unpriced"]
        untold = untold or (row["untold"] > 0 and not row["priced"])
    return total, UNTOLD if untold else ""


def set_budget(run: Run, budget: Decimal | None, by: User | None) -> None:
    """Change what a run may cost; ``None`` leaves it as it is.

    :raises Refused: ``budget_used_up`` where it is spent already; see also :func:`check_budget`.
    """
    with transaction.atomic():
        if budget is not None and budget != run.budget:
            judges = JudgeVersion.objects.filter(pk__in=run.judges.values("judge_version"))
            check_budget(budget, judges, RunConfig.model_validate(run.config))
            audit.record(by, "run.budget", run, before=str(run.budget), after=str(budget))
            run.budget = budget
            run.save(update_fields=["budget"])
        if run.budget is not None and (so_far := spent(run)[0]) >= run.budget:
            raise Refused("budget_used_up", spent=f"{so_far:.4f}", budget=f"{run.budget:.4f}")


class Purse:
    """One worker's look at a run's budget, often enough for the pace at which all workers spend it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._next = float("-inf")
        self._first: tuple[float, Decimal] | None = None

    def stops(self) -> str:
        """Why nothing may be claimed any more; empty while something may."""
        budget, now = self._run.budget, time.monotonic()
        if budget is None or now < self._next:
            return ""
        so_far, untold = spent(self._run)
        if so_far >= budget:
            return USED_UP
        began, then = self._first = self._first or (now, so_far)
        pace = float(so_far - then) / (now - began) if now > began else 0.0
        self._next = now + min(LONGEST, float(budget - so_far) / pace / CAUTION) if pace else now
        return untold


def purse_of(run: Run) -> Purse | None:
    """The look at the run's budget, where it has one."""
    return Purse(run) if run.budget is not None else None
