"""Metric definitions in the database for the metrics that code declares, and their lookup by name."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from evaluation.core.errors import UnknownName
from evaluation.core.registry import MetricSpec
from evaluation.embedding.catalogue import EMBEDDING_METRICS
from evaluation.judging.catalogue import judge_metrics
from evaluation.metrics.catalogue import RULE_METRICS
from evaluation.models import MetricDefinition
from evaluation.profiles.derived import ANSWER_OVERALL, DERIVED_METRICS


def declared() -> dict[str, MetricSpec]:
    """Every metric that code declares, by name."""
    rules = (metric.spec for metric in RULE_METRICS)
    derived = (*(metric.spec for metric in DERIVED_METRICS), ANSWER_OVERALL)
    return {spec.name: spec for spec in (*rules, *EMBEDDING_METRICS, *judge_metrics(), *derived)}


def define(spec: MetricSpec) -> MetricDefinition:
    """The row of a declared metric, made on first use."""
    found = MetricDefinition.objects.filter(name=spec.name, version=spec.version).first()
    if found:
        return found
    with transaction.atomic():
        made, _ = MetricDefinition.objects.get_or_create(
            name=spec.name,
            version=spec.version,
            defaults={
                "kind": spec.kind,
                "scale": str(spec.scale),
                "direction": spec.direction,
                "review_form": spec.review_form,
                "rubric_family": spec.rubric_family,
                "title": {"en": spec.title.en, "ko": spec.title.ko},
                "content_hash": spec.definition_hash,
            },
        )
    return made


def definitions(names: Iterable[str]) -> dict[str, MetricDefinition]:
    """Rows of the named metrics: declared ones made on first use, others by their newest version.

    :raises UnknownName: for a name that neither code nor an import has defined.
    """
    known = declared()
    found: dict[str, MetricDefinition] = {}
    for name in names:
        row = (
            define(known[name])
            if name in known
            else MetricDefinition.objects.filter(name=name).order_by("-version").first()
        )
        if row is None:
            raise UnknownName("metric", name, [*known, *MetricDefinition.objects.values_list("name", flat=True)])
        found[name] = row
    return found
