"""Which criteria a queue asks for: those that are named, else those that its ``coverage`` calls for."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Exists, OuterRef

from evaluation.core.errors import Refused
from evaluation.core.metric_specs import JUDGED
from evaluation.core.samples import Status
from evaluation.judges.shipping import definitions
from evaluation.models import MetricDefinition, Run, Score
from evaluation.profiles.spec import ProfileSpec
from review.models.queue_spec import FEW, Coverage, QueueSpec
from review.queues.draws import steering_metrics


def criteria_of(runs: Sequence[Run], spec: QueueSpec, names: Sequence[str] = ()) -> list[MetricDefinition]:
    """The named metrics; without names every judged part of the first run's overall score that applies to any of its
    answers (all that a judge scored, where none is a part of it), or the few of most weight.

    :raises Refused: ``no_metrics`` where there is none.
    :raises UnknownName: for a name that nothing defines.
    """
    if names:
        return metrics_of(runs, names)
    if not (found := judged_parts(runs[0])):
        raise Refused("no_metrics")
    return found[:FEW] if spec.coverage == Coverage.FEWEST else found


def judged_parts(run: Run) -> list[MetricDefinition]:
    """The judged parts of the overall score that apply to any answer, those of most weight first; all that a judge
    scored where none of it is a part; what was scored otherwise where there is no judge."""
    scored = steering_metrics(run)
    found = [metric for metric in scored if metric.kind in JUDGED] or scored
    of_run = run.scores.order_by().values_list("metric", flat=True).distinct()
    nowhere = set(of_run) - set(of_run.filter(status=Status.SCORED))
    found, weight = [metric for metric in found if metric.pk not in nowhere], weights(run)
    parts = [metric for metric in found if weight.get(metric.name)]
    return sorted(parts, key=lambda metric: -weight[metric.name]) or found


def weights(run: Run) -> dict[str, float]:
    """The weight of each metric in the run's overall score."""
    return {part.metric: part.weight for part in ProfileSpec.model_validate(run.profile_version.spec).parts}


def metrics_of(runs: Sequence[Run], names: Sequence[str]) -> list[MetricDefinition]:
    """The named metrics in the versions the runs were scored with, others in their newest version.

    :raises Refused: ``no_metrics``.
    :raises UnknownName: for a name that nothing defines.
    """
    if not names:
        raise Refused("no_metrics")
    scored = MetricDefinition.objects.filter(
        Exists(Score.objects.filter(run__in=runs, metric=OuterRef("pk"))), name__in=names
    )
    known = {metric.name: metric for metric in scored.order_by("version")}
    known |= definitions(name for name in names if name not in known)
    return [known[name] for name in dict.fromkeys(names)]
