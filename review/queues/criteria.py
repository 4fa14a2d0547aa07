"""Selection of a queue's criteria: the named ones, or those that its ``coverage`` requires."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import Exists, OuterRef

from evaluation.core.errors import DomainError
from evaluation.core.metric_specs import JUDGED_KINDS
from evaluation.core.samples import Status
from evaluation.judges.shipped import definitions
from evaluation.models import MetricDefinition, Run, Score
from evaluation.profiles.spec import ProfileSpec
from review.models.queue_spec import CRITERIA_PER_ANSWER, Coverage, QueueSpec
from review.queues.draws import steering_metrics


def select_criteria(runs: Sequence[Run], spec: QueueSpec, names: Sequence[str] = ()) -> list[MetricDefinition]:
    """Return the named metrics, else the judged metrics of the first run's overall score, all or the few of most
    weight.

    :raises DomainError: ``no_metrics`` if there is none.
    :raises UnknownName: for an undefined name."""
    if names:
        return named_metrics(runs, names)
    if not (metrics := judged_metrics(runs[0])):
        raise DomainError("no_metrics")
    return metrics[:CRITERIA_PER_ANSWER] if spec.coverage == Coverage.FEWEST else metrics


def judged_metrics(run: Run) -> list[MetricDefinition]:
    """Judged metrics of the overall score that apply to any answer, by descending weight. Falls back to all judged
    metrics, and without a judge to all scored ones."""
    scored_metrics = steering_metrics(run)
    candidates = [metric for metric in scored_metrics if metric.kind in JUDGED_KINDS] or scored_metrics
    run_metric_ids = run.scores.order_by().values_list("metric", flat=True).distinct()
    unscored_ids = set(run_metric_ids) - set(run_metric_ids.filter(status=Status.SCORED))
    candidates, weight_by_name = [metric for metric in candidates if metric.pk not in unscored_ids], metric_weights(run)
    weighted_metrics = [metric for metric in candidates if weight_by_name.get(metric.name)]
    return sorted(weighted_metrics, key=lambda metric: -weight_by_name[metric.name]) or candidates


def metric_weights(run: Run) -> dict[str, float]:
    """Weight of each metric in the run's overall score."""
    return {part.metric: part.weight for part in ProfileSpec.model_validate(run.profile_version.spec).parts}


def named_metrics(runs: Sequence[Run], names: Sequence[str]) -> list[MetricDefinition]:
    """Return the named metrics in the versions the runs were scored with, others in their newest version.

    :raises DomainError: ``no_metrics``.
    :raises UnknownName: for an undefined name."""
    if not names:
        raise DomainError("no_metrics")
    scored_metrics = MetricDefinition.objects.filter(
        Exists(Score.objects.filter(run__in=runs, metric=OuterRef("pk"))), name__in=names
    )
    metrics_by_name = {metric.name: metric for metric in scored_metrics.order_by("version")}
    metrics_by_name |= definitions(name for name in names if name not in metrics_by_name)
    return [metrics_by_name[name] for name in dict.fromkeys(names)]
