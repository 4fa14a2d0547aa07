"""Drafting a criterion: every edit is a version of its own, and content that was there before selects its version."""

from __future__ import annotations

from django.db import transaction

from evaluation.accounts import audit
from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused
from evaluation.core.registry import Kind
from evaluation.judges.definitions import declared
from evaluation.judging.criteria.spec import CriterionSpec
from evaluation.models import Criterion, CriterionVersion, MetricDefinition, Project, User


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
