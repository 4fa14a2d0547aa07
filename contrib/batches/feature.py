"""Register batches of judge calls: their hooks, runs with due batches, health problems and a gauge."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet, Sum
from django.db.models.functions import Now
from prometheus_client.core import GaugeMetricFamily, Metric

from contrib.batches.ledger import State, due_batches, open_batches
from contrib.batches.models import JudgeBatch
from contrib.batches.runner import process_batches
from evaluation.extensions import BatchHooks, Feature, OpenBatches
from evaluation.models import JudgeVersion, Run


def summarize_open_batches(run: Run) -> OpenBatches | None:
    """Summarise the run's open batches whose file is written; ``None`` without one. One query."""
    batches = list(open_batches().filter(run=run).exclude(state=State.PREPARING).order_by("id"))
    if not batches:
        return None
    return OpenBatches(
        batches=len(batches),
        since=min(batch.sent_at or batch.created_at for batch in batches),
        lines=sum(batch.lines for batch in batches),
        done=sum(batch.done for batch in batches),
        failed=sum(batch.failed for batch in batches),
        next_at=min((batch.next_at for batch in batches if batch.next_at), default=None),
    )


def run_batches(run: Run) -> list[JudgeBatch]:
    """Return all batches of the run, oldest first."""
    return list(JudgeBatch.objects.filter(run=run).order_by("id"))


def batch_problems(run: Run) -> tuple[str, ...]:
    """Return the reasons of batches that ended badly, newest first."""
    ended = JudgeBatch.objects.filter(run=run, state__in=[State.ENDED, State.DROPPED, State.LOST])
    return tuple(batch.reason for batch in ended.exclude(reason="").order_by("-id")[:20])


def has_due_batch(run: Run, judge: JudgeVersion) -> bool:
    """Return whether a batch with calls to the judge's model is due, in a running or cancelled run."""
    states = [Run.State.RUNNING, Run.State.CANCELLED]
    due_for_model = due_batches().filter(run=run.pk, run__state__in=states, model=judge.model)
    return due_for_model.filter(endpoint=judge.endpoint_id).exists()


def due_runs() -> QuerySet[Run]:
    """Return the running or cancelled runs with a due batch."""
    due_batches_of_run = due_batches().filter(run_id=OuterRef("pk"))
    return Run.objects.filter(Exists(due_batches_of_run), state__in=[Run.State.RUNNING, Run.State.CANCELLED])


def runs_with_overdue_batches() -> list[int]:
    """Return the running runs with a batch that is long overdue."""
    cutoff = Now() - timedelta(seconds=settings.CONCORD_WORKER_TIMEOUT_SECONDS)
    overdue = due_batches().filter(run__state=Run.State.RUNNING, next_at__lt=cutoff)
    return sorted(set(overdue.values_list("run_id", flat=True)))


def problems() -> list[str]:
    """Describe overdue batches, for the health page."""
    return [f"run {run_id} has a batch that is due, but no worker polls it" for run_id in runs_with_overdue_batches()]


def gauges(projects: Collection[int]) -> Iterator[Metric]:
    """Count the calls of these projects in open batches."""
    family = GaugeMetricFamily(
        "concord_calls_in_batches", "Calls in batches that have not ended, by the batch's state.", labels=["state"]
    )
    batches = open_batches().filter(run__project__in=projects)
    for state, lines in batches.values_list("state").order_by("state").annotate(n=Sum("lines")):
        family.add_metric([state], lines)
    yield family


FEATURE = Feature(
    name="batches",
    batches=BatchHooks(
        open_batches, has_due_batch, process_batches, run_batches, summarize_open_batches, batch_problems
    ),
    due_runs=due_runs,
    problems=problems,
    gauges=gauges,
)
