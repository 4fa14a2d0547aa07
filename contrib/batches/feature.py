"""Extensions of the core: another way to make a run's calls, runs to enqueue, problems, and a monitoring figure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from datetime import timedelta

from django.conf import settings
from django.db.models import Exists, OuterRef, QuerySet, Sum
from django.db.models.functions import Now
from prometheus_client.core import GaugeMetricFamily, Metric

from contrib.batches.batching import work_in_batches
from contrib.batches.ledger import State, due, open_batches
from contrib.batches.models import JudgeBatch
from evaluation.extensions import BatchesOut, BatchHooks, Feature
from evaluation.models import JudgeVersion, Run


def batches_out(run: Run) -> BatchesOut | None:
    """The run's open batches whose files are written; ``None`` where it has none. One query."""
    found = list(open_batches().filter(run=run).exclude(state=State.MADE).order_by("id"))
    if not found:
        return None
    return BatchesOut(
        batches=len(found),
        since=min(batch.sent_at or batch.created_at for batch in found),
        lines=sum(batch.lines for batch in found),
        done=sum(batch.done for batch in found),
        failed=sum(batch.failed for batch in found),
        next_at=min((batch.next_at for batch in found if batch.next_at), default=None),
    )


def batches_of(run: Run) -> list[JudgeBatch]:
    """All batches of the run, oldest first."""
    return list(JudgeBatch.objects.filter(run=run).order_by("id"))


def troubled_batches(run: Run) -> tuple[str, ...]:
    """Why batches of the run did not end as they should have, the newest first."""
    ended = JudgeBatch.objects.filter(run=run, state__in=[State.ENDED, State.DROPPED, State.LOST])
    return tuple(batch.reason for batch in ended.exclude(reason="").order_by("-id")[:20])


def has_due(run: Run, judge: JudgeVersion) -> bool:
    """Whether a batch with calls to the judge's model has to be seen to, in a run that goes on or was cancelled."""
    states = [Run.State.RUNNING, Run.State.CANCELLED]
    mine = due().filter(run=run.pk, run__state__in=states, model=judge.model)
    return mine.filter(endpoint=judge.endpoint_id).exists()


def due_runs() -> QuerySet[Run]:
    """Runs with a batch that somebody has to see to, also where they were cancelled."""
    out = due().filter(run_id=OuterRef("pk"))
    return Run.objects.filter(Exists(out), state__in=[Run.State.RUNNING, Run.State.CANCELLED])


def neglected_batches() -> list[int]:
    """Running runs with a batch that should long have been seen to."""
    quiet = Now() - timedelta(seconds=settings.CONCORD_WEDGED_SECONDS)
    late = due().filter(run__state=Run.State.RUNNING, next_at__lt=quiet)
    return sorted(set(late.values_list("run_id", flat=True)))


def problems() -> list[str]:
    """What is wrong, in words."""
    return [f"run {run_id} has a batch that is due and nobody asks about it" for run_id in neglected_batches()]


def gauges(projects: Collection[int]) -> Iterator[Metric]:
    """Calls of these projects that are out."""
    family = GaugeMetricFamily(
        "concord_calls_in_batches", "Calls in batches that have not ended, by the batch's state.", labels=["state"]
    )
    ours = open_batches().filter(run__project__in=projects)
    for state, lines in ours.values_list("state").order_by("state").annotate(n=Sum("lines")):
        family.add_metric([state], lines)
    yield family


FEATURE = Feature(
    name="batches",
    batches=BatchHooks(open_batches, has_due, work_in_batches, batches_of, batches_out, troubled_batches),
    due_runs=due_runs,
    problems=problems,
    gauges=gauges,
)
