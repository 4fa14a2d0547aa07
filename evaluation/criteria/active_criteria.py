"""Which criteria are in force in a project."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Exists, OuterRef, QuerySet

from evaluation.judging.rubric import FAMILY_PREFIX, is_criterion
from evaluation.models import Criterion, CriterionEvent, MetricDefinition, RubricVersion


def newest_events() -> QuerySet[CriterionEvent]:
    """The event that tells how each criterion stands."""
    later = CriterionEvent.objects.filter(criterion=OuterRef("criterion"), seq__gt=OuterRef("seq"))
    return CriterionEvent.objects.filter(~Exists(later))


def active(project_id: int) -> QuerySet[CriterionEvent]:
    """The activations in force in a project, by name of the criterion."""
    return active_in([project_id])


def active_in(project_ids: Iterable[int]) -> QuerySet[CriterionEvent]:
    """The same of several projects."""
    events = newest_events().filter(criterion__project__in=list(project_ids), verb=CriterionEvent.Verb.ACTIVATED)
    return events.select_related("criterion", "version", "metric", "rubric_en", "rubric_ko").order_by("criterion__name")


def active_by_name(project_id: int, names: Iterable[str]) -> dict[str, CriterionEvent]:
    """The activations of the named criteria that are in force in the project."""
    return {event.criterion.name: event for event in active(project_id).filter(criterion__name__in=list(names))}


def idle_names(project_id: int, names: Iterable[str]) -> list[str]:
    """Those of the names that are criteria of the project and not in force."""
    named = Criterion.objects.filter(project_id=project_id, name__in=list(names))
    return sorted(set(named.values_list("name", flat=True)) - set(active_by_name(project_id, names)))


def standing(criterion: Criterion) -> CriterionEvent | None:
    """The newest event of a criterion; ``None`` while no version was ever activated."""
    return criterion.events.select_related("version").order_by("-seq").first()


def rubrics_of_others(project_ids: Iterable[int]) -> QuerySet[RubricVersion]:
    """Rubrics of criteria of other projects than these: what a project wrote is not everybody's."""
    foreign = Criterion.objects.exclude(project_id__in=list(project_ids)).values_list("name", flat=True)
    return RubricVersion.objects.filter(family__in=[FAMILY_PREFIX + name for name in foreign])


def rubric_of(metric: MetricDefinition, language: str) -> RubricVersion | None:
    """The newest rubric of a criterion's metric in a language, else in the other one; ``None`` for other metrics."""
    if not is_criterion(metric.rubric_family):
        return None
    event = (
        CriterionEvent.objects.filter(metric=metric, verb=CriterionEvent.Verb.ACTIVATED)
        .select_related("rubric_en", "rubric_ko")
        .order_by("-seq")
        .first()
    )
    return event.rubric(language) if event else None
