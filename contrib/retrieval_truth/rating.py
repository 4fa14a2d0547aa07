"""Finding and authorising repairs, and people rating passages: blind, everybody from one stack in an order of their
own, so that what was reached at any time is a random part of what was drawn."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, Exists, Min, OuterRef, Q
from django.utils import timezone

from contrib.retrieval_truth.models import PassageRating, PooledPassage, RepairMember, RetrievalRepair
from evaluation.accounts import access, audit
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.models import Answer, User
from review.evidence.changes import touch
from review.queues.access import NamedAccess

LONGEST_REASON = 5000
CANNOT = PassageRating.Grade.CANNOT


REPAIRS = NamedAccess(RetrievalRepair.objects)


def set_open(found: RetrievalRepair, *, is_open: bool, by: User) -> None:
    """Take ratings, or no further ones."""
    found.closed_at = None if is_open else timezone.now()
    found.save(update_fields=["closed_at"])
    audit.record(by, "repair_reopened" if is_open else "repair_closed", found)


class PassageCard(NamedTuple):
    """A passage as a rater sees it: no system, no rank, no judge. ``grade`` and ``reason`` are the rater's own so far
    and ``stands`` their row's key, 0 without one; ``rated`` of ``drawn`` passages have been rated, by anybody."""

    passage: PooledPassage
    question: str
    grade: str
    reason: str
    rated: int
    drawn: int
    stands: int = 0


def card_of(found: RetrievalRepair, person: User, passage_id: int | None = None) -> PassageCard | None:
    """The passage asked for (one the person has rated, or any that was drawn), else the next in the person's own order
    that nobody has a grade for yet and the person could still judge; ``None`` when there is none. Three queries."""
    keys = found.passages.filter(sampled=True).values_list("pk", flat=True)
    order = sorted(keys, key=lambda key: _number(found.seed, key, person.pk))
    given = newest_ratings(found)
    done = {passage for (passage, _), row in given.items() if row.grade != CANNOT}
    mine = {passage: row for (passage, rater), row in given.items() if rater == person.pk}
    wanted = [key for key in order if (key == passage_id if passage_id else key not in done and key not in mine)]
    if not wanted:
        return None
    passage = PooledPassage.objects.select_related("question").get(pk=wanted[0])
    own = mine.get(passage.pk)
    said = (own.grade, own.reason) if own else ("", "")
    return PassageCard(passage, passage.question.text, *said, len(done), len(order), own.pk if own else 0)


def newest_ratings(found: RetrievalRepair) -> dict[tuple[int, int], PassageRating]:
    """The rating that counts by passage and rater."""
    rows = PassageRating.objects.filter(passage__repair=found).select_related("rater").order_by("round", "pk")
    return {(row.passage_id, row.rater_id): row for row in rows}


def newest_since(found: RetrievalRepair, at: datetime) -> int:
    """How many ratings were given after that moment."""
    return PassageRating.objects.filter(passage__repair=found, created_at__gt=at).count()


def last_rated(found: RetrievalRepair, person: User) -> int | None:
    """The passage the person rated last, to change their mind."""
    rows = PassageRating.objects.filter(passage__repair=found, rater=person).order_by("-pk")
    return rows.values_list("passage_id", flat=True).first()


@transaction.atomic
def rate(
    found: RetrievalRepair,
    passage: PooledPassage,
    person: User,
    grade: str,
    *,
    reason: str = "",
    seconds: float | None = None,
) -> PassageRating:
    """Store a grade. The same one twice is one decision; another one is a new row that counts instead.

    :raises Refused: ``repair_closed``, ``not_drawn``, ``unknown_grade``, ``reason_too_long``.
    """
    RepairMember.objects.select_for_update().get(repair=found, reviewer=person)  # a person's requests take turns
    if RetrievalRepair.objects.values_list("closed_at", flat=True).get(pk=found.pk) is not None:
        raise Refused("repair_closed")
    if passage.repair_id != found.pk or not passage.sampled:
        raise Refused("not_drawn")
    if grade not in PassageRating.Grade.values:
        raise Refused("unknown_grade")
    if len(reason) > LONGEST_REASON:
        raise Refused("reason_too_long", length=len(reason), limit=LONGEST_REASON)
    before = PassageRating.objects.filter(passage=passage, rater=person).order_by("-round").first()
    if before is not None and (before.grade, before.reason) == (grade, reason):
        return before
    touch_corrected(found)
    return PassageRating.objects.create(
        passage=passage,
        rater=person,
        grade=grade,
        reason=reason,
        seconds=seconds,
        round=before.round + 1 if before else 0,
    )


def touch_corrected(found: RetrievalRepair) -> None:
    """Figures change of runs over versions that took labels over, and over the one they were found for."""
    versions = list(found.accepted.order_by("pk").values_list("question_set", flat=True))
    rows = Answer.objects.filter(answer_set__question_set__in=[*versions, found.question_set_id] if versions else [])
    each = rows.order_by().values("answer_set__question_set").annotate(first=Min("pk"))
    touch(list(each.values_list("first", flat=True)))


def _number(*parts: int) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


class Left(NamedTuple):
    """How many passages of an open repair wait for a person."""

    repair: int
    name: str
    passages: int


def left_for(person: User) -> list[Left]:
    """The open repairs with drawn passages that nobody has a grade for and the person has not touched. One query."""
    graded = PassageRating.objects.filter(~Q(grade=CANNOT) | Q(rater=person), passage=OuterRef("pk"))
    mine = RetrievalRepair.objects.filter(closed_at=None, members__reviewer=person)
    mine = mine.filter(project__in=access.projects_with(person, Action.RATE).values("pk"))
    waiting = PooledPassage.objects.filter(~Exists(graded), sampled=True, repair__in=mine.values("pk"))
    rows = waiting.order_by("repair").values_list("repair", "repair__name").annotate(left=Count("pk"))
    return [Left(repair, name, left) for repair, name, left in rows]
