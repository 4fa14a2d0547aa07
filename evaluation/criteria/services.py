"""A criterion's life: drafted, named, put in force and taken out again, and which are in force.

Every edit is a version of its own; content that was there before selects its version. What was judged by a criterion
stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, QuerySet

from evaluation.accounts import audit
from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused, UnknownName
from evaluation.core.registry import Kind
from evaluation.judges.shipping import declared
from evaluation.judging.criteria.spec import CriterionSpec, criterion_rubric
from evaluation.judging.rubric import FAMILY_PREFIX, family_of_criterion, is_criterion
from evaluation.models import (
    Criterion,
    CriterionEvent,
    CriterionVersion,
    MetricDefinition,
    Project,
    RubricVersion,
    User,
)


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


def draft(project: Project, spec: CriterionSpec, *, by: User | None) -> CriterionVersion:
    """The version with exactly this content, made as the next version where there is none.

    :raises Refused: ``criterion_name_taken`` where the name is a metric's of the product, of an import or of a
        criterion of another project.
    """
    with transaction.atomic():
        criterion = _criterion(project, spec.name, by)
        digest = content_hash(spec.content())
        versions = CriterionVersion.objects.filter(criterion=criterion)
        if same := versions.filter(content_hash=digest).first():
            return same
        newest = versions.order_by("-version").first()
        made = CriterionVersion.objects.create(
            criterion=criterion,
            version=newest.version + 1 if newest else 1,
            spec=spec.model_dump(mode="json"),
            content_hash=digest,
            created_by=by,
        )
        audit.record(by, "criterion.drafted", made, hash=digest, version=made.version)
    return made


def name_is_free(project: Project, name: str) -> bool:
    """Whether a criterion of the project may have, or has, the name. A metric's name is the only one on the site."""
    if name in declared() or Criterion.objects.filter(name=name).exclude(project=project).exists():
        return False
    return not MetricDefinition.objects.filter(name=name).exclude(kind=Kind.CUSTOM).exists()


def _criterion(project: Project, name: str, by: User | None) -> Criterion:
    if not name_is_free(project, name):
        raise Refused("criterion_name_taken", name=name)
    found = Criterion.objects.select_for_update().filter(project=project, name=name).first()
    return found or Criterion.objects.create(project=project, name=name, created_by=by)


def check_metric_names(project_id: int, names: Iterable[str]) -> None:
    """Every name is a metric's or a criterion's; a criterion need not be in force yet. One query.

    :raises UnknownName: for the first name that is neither.
    """
    criteria = Criterion.objects.filter(project_id=project_id).values_list("name", flat=True)
    known = [*declared(), *criteria]
    for name in names:
        if name not in known:
            raise UnknownName("metric", name, known)


@transaction.atomic
def activate(version: CriterionVersion, *, by: User | None) -> CriterionEvent:
    """Judge new runs by this version. Its rubrics are made once; the metric is the earlier one where neither scale nor
    direction nor anchors have changed, so that figures stay comparable.

    :raises Refused: ``criterion_active`` when it is in force already, ``criterion_name_taken`` when an import took the
        name meanwhile.
    """
    criterion = Criterion.objects.select_for_update().get(pk=version.criterion_id)
    now = standing(criterion)
    if now is not None and now.verb == CriterionEvent.Verb.ACTIVATED and now.version_id == version.pk:
        raise Refused("criterion_active", criterion=str(version))
    spec = version.read()
    metric = _metric(spec)
    rubrics = {language: _rubric(version, spec, language, metric, by) for language in spec.languages}
    made = CriterionEvent.objects.create(
        criterion=criterion,
        seq=_next(criterion),
        version=version,
        verb=CriterionEvent.Verb.ACTIVATED,
        metric=metric,
        rubric_en=rubrics.get("en"),
        rubric_ko=rubrics.get("ko"),
        created_by=by,
    )
    audit.record(by, "criterion.activated", version, hash=version.content_hash, metric=metric.version)
    return made


@transaction.atomic
def deactivate(criterion: Criterion, *, by: User | None) -> CriterionEvent:
    """Judge no new run by the criterion. Scores, ratings and runs that have it stay and go on.

    :raises Refused: ``criterion_not_active`` when no version is in force.
    """
    criterion = Criterion.objects.select_for_update().get(pk=criterion.pk)
    now = standing(criterion)
    if now is None or now.verb != CriterionEvent.Verb.ACTIVATED:
        raise Refused("criterion_not_active", names=criterion.name)
    made = CriterionEvent.objects.create(
        criterion=criterion,
        seq=_next(criterion),
        version=now.version,
        verb=CriterionEvent.Verb.DEACTIVATED,
        created_by=by,
    )
    audit.record(by, "criterion.deactivated", now.version, hash=now.version.content_hash)
    return made


def _next(criterion: Criterion) -> int:
    newest: int | None = criterion.events.aggregate(newest=Max("seq"))["newest"]
    return (newest or 0) + 1


def _metric(spec: CriterionSpec) -> MetricDefinition:
    rows = MetricDefinition.objects.filter(name=spec.name)
    if rows.exclude(kind=Kind.CUSTOM).exists():
        raise Refused("criterion_name_taken", name=spec.name)
    if same := rows.filter(content_hash=spec.comparable_hash).first():
        return same
    newest = rows.order_by("-version").first()
    return MetricDefinition.objects.create(
        name=spec.name,
        version=newest.version + 1 if newest else 1,
        kind=Kind.CUSTOM,
        scale=str(spec.scale),
        direction=spec.direction,
        review_form=spec.review_form,
        rubric_family=family_of_criterion(spec.name),
        title={"en": spec.title_en, "ko": spec.title_ko},
        content_hash=spec.comparable_hash,
    )


def _rubric(
    version: CriterionVersion, spec: CriterionSpec, language: str, metric: MetricDefinition, by: User | None
) -> RubricVersion:
    rubric = criterion_rubric(spec, language, version=version.version, metric_version=metric.version)
    made, _ = RubricVersion.objects.get_or_create(
        family=rubric.family,
        language=language,
        version=version.version,
        defaults={
            "spec": rubric.model_dump(mode="json"),
            "content_hash": rubric.content_hash,
            "created_by": by,
        },
    )
    return made
