"""Retiring a gold set: nobody looks at it any more, and what its looks saw of the hold-out is told from then on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.errors import Refused
from evaluation.criteria.rubrics import LONGEST_REASON
from evaluation.models import HoldOutOpening, User
from review.calibration.accepting import compared_on, hold_out_items, sealed_verdicts
from review.calibration.freezing import is_retired
from review.evidence.changes import touch_project
from review.evidence.seals import Form, in_form, readable
from review.models import GoldRetirement, GoldSet, Look
from review.statistics.acceptance import Compared


@transaction.atomic
def retire(gold_set: GoldSet, *, by: User | None, reason: str) -> GoldRetirement:
    """Retire the lineage for good. Its answers stay locked for drafts; licences stand.

    :raises Refused: ``reason_required``, ``reason_too_long``, ``gold_retired``; ``look_open`` while one is under way.
    """
    lock_project(gold_set.project_id)
    reason = reason.strip()
    if not reason:
        raise Refused("reason_required")
    if len(reason) > LONGEST_REASON:
        raise Refused("reason_too_long", length=len(reason), limit=LONGEST_REASON)
    if is_retired(gold_set.project_id, gold_set.name):
        raise Refused("gold_retired", gold=gold_set.name)
    waiting = _looks(gold_set).filter(result=None).first()
    if waiting is not None:
        raise Refused("look_open", look=str(waiting), rubric=str(waiting.candidate))
    made = GoldRetirement.objects.create(project=gold_set.project, lineage=gold_set.name, reason=reason, created_by=by)
    openings = HoldOutOpening.objects.filter(project=gold_set.project_id, lineage=gold_set.name)
    openings.update(ended_at=timezone.now())
    touch_project(gold_set.project)
    audit.record(by, "gold.retired", gold_set, hash=gold_set.content_hash)
    return made


@dataclass(frozen=True, slots=True)
class HeldOut:
    """What a look saw of a metric: the mean squared distances to the labels of both versions on ``answers`` hold-out
    answers in ``groups``, and by how much lower the candidate's is, with the 95% interval (t over groups; the ends
    ``None`` where nothing varies). A missing verdict of the candidate counts as the scale's width squared, as in the
    look."""

    look: str
    candidate: str
    against: str
    outcome: str
    metric: str
    answers: int
    groups: int
    candidate_loss: float
    against_loss: float
    lower_by: float
    low: float | None
    high: float | None


def hold_out_figures(gold_set: GoldSet) -> list[HeldOut]:
    """What every look saw, the oldest first.

    :raises Refused: ``gold_not_retired`` while looks may still be taken.
    """
    if not is_retired(gold_set.project_id, gold_set.name):
        raise Refused("gold_not_retired", gold=gold_set.name)
    looks = _looks(gold_set).filter(result__isnull=False).order_by("number")
    return [one for look in looks for one in _seen_by(look)]


def _looks(gold_set: GoldSet) -> QuerySet[Look]:
    names = ("gold_set", "candidate", "active", "best", "against__candidate", "against__judge_version", "result")
    rows = Look.objects.filter(project=gold_set.project_id, lineage=gold_set.name)
    return rows.select_related(*names)


def _seen_by(look: Look) -> list[HeldOut]:
    ours = sealed_verdicts(look, look.candidate)
    before = look.against
    theirs = sealed_verdicts(before, before.candidate) if before else sealed_verdicts(look, look.active)
    against = f"{before.judge_version.name}: {before.candidate}" if before else str(look.active)
    with in_form(Form.OPEN):
        # Another gold set can still lock some of the answers.
        shown = set(readable(look.gold_set.items.all()).values_list("pk", flat=True))
    found = []
    for name, items in hold_out_items(look.gold_set, look.candidate, look.since).items():
        kept = [one for one in items if one.pk in shown and (not before or one.answer_id in theirs)]
        compared, _ = compared_on(kept, ours, theirs, theirs, items[0].metric)
        if len(compared.groups):
            found.append(_told(look, against, name, compared))
    return found


def _told(look: Look, against: str, metric: str, one: Compared) -> HeldOut:
    gain = one.gain
    low, high = gain.interval
    return HeldOut(
        look=str(look),
        candidate=str(look.candidate),
        against=against,
        outcome=str(look.result.outcome),
        metric=metric,
        answers=len(one.groups),
        groups=gain.groups,
        candidate_loss=one.loss,
        against_loss=float(np.average(one.active, weights=one.weights)),
        lower_by=float(gain.mean),
        low=low,
        high=high,
    )
