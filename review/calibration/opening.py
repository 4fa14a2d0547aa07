"""Opening the sealed labels of a project for one lead, which is recorded and bars that person from drafting prompts."""

from __future__ import annotations

from django.db import transaction
from django.db.models import QuerySet

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.errors import Refused
from evaluation.models import HoldOutOpening, Project, User
from review.calibration.overview import families_in
from review.evidence.seals import live_sets
from review.models import GoldSet


def openings_of(gold_set: GoldSet) -> QuerySet[HoldOutOpening]:
    """The openings of the lineage, newest first, with the person."""
    rows = HoldOutOpening.objects.filter(project=gold_set.project_id, lineage=gold_set.name)
    return rows.select_related("created_by").order_by("-pk")


@transaction.atomic
def open_hold_outs(project: Project, *, by: User) -> list[HoldOutOpening]:
    """Let a lead read the full form of all figures of the project: open every lineage that is not retired. The caller
    has checked that the person is a lead.

    :raises Refused: ``nothing_sealed`` where no gold set is in use.
    """
    lock_project(project.pk)
    newest = {one.name: one for one in live_sets().filter(project=project).order_by("version")}
    if not newest:
        raise Refused("nothing_sealed")
    openings = []
    for name, gold_set in sorted(newest.items()):
        opening, is_new = HoldOutOpening.objects.get_or_create(
            project=project, lineage=name, created_by=by, defaults={"families": families_in(gold_set)}
        )
        if is_new:
            audit.record(by, "gold.opened", gold_set, hash=gold_set.content_hash)
        openings.append(opening)
    return openings
