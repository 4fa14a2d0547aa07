"""Opening a project's sealed labels for a lead. It is recorded, and bars that person from drafting prompts."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.errors import DomainError
from evaluation.models import HoldOutOpening, Project, User
from review.calibration.overview import labelled_families
from review.evidence.seals import live_sets
from review.models import GoldSet


def hold_out_openings(gold_set: GoldSet) -> QuerySet[HoldOutOpening]:
    """Return the openings of the lineage, newest first."""
    rows = HoldOutOpening.objects.filter(project=gold_set.project_id, lineage=gold_set.name)
    return rows.select_related("created_by").order_by("-pk")


@transaction.atomic
def open_hold_outs(project: Project, *, by: User) -> list[HoldOutOpening]:
    """Open all lineages of the project that are not retired, for one lead. The caller checks the role.

    :raises DomainError: ``nothing_sealed`` where no gold set is in use."""
    lock_project(project.pk)
    newest = {row.name: row for row in live_sets().filter(project=project).order_by("version")}
    if not newest:
        raise DomainError("nothing_sealed")
    openings = []
    for name, gold_set in sorted(newest.items()):
        opening, is_new = HoldOutOpening.objects.get_or_create(
            project=project, lineage=name, created_by=by, defaults={"families": labelled_families(gold_set)}
        )
        if is_new:
            audit.record(by, "gold.opened", gold_set, hash=gold_set.content_hash)
        openings.append(opening)
    return openings
