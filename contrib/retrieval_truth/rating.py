"""Access to repairs, and blind rating of passages.

All raters share one pool, each in an own random order, so that the rated part is a random sample at any time."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import NamedTuple

from django.db import transaction
from django.db.models import Count, Exists, Min, OuterRef, Q
from django.utils import timezone

from contrib.retrieval_truth.models import PassageRating, PooledPassage, RepairMember, RetrievalRepair
from evaluation.accounts import access, audit
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.models import Answer, User
from review.evidence.invalidation import invalidate_figures
from review.queues.access import MemberAccess

MAX_REASON_LENGTH = 5000
CANNOT_JUDGE = PassageRating.Grade.CANNOT


REPAIRS = MemberAccess(RetrievalRepair.objects)


def set_open(repair: RetrievalRepair, *, is_open: bool, by: User) -> None:
    """Open or close a repair for ratings."""
    repair.closed_at = None if is_open else timezone.now()
    repair.save(update_fields=["closed_at"])
    audit.record(by, "repair_reopened" if is_open else "repair_closed", repair)


class PassageCard(NamedTuple):
    """A passage as a rater sees it, without system, rank or judge.

    ``grade``, ``reason`` and ``rating_id`` are those of the rater's own rating (``rating_id`` 0 without one); ``rated``
    of ``drawn`` passages have a grade by anybody."""

    passage: PooledPassage
    question: str
    grade: str
    reason: str
    rated: int
    drawn: int
    rating_id: int = 0


def next_card(repair: RetrievalRepair, person: User, passage_id: int | None = None) -> PassageCard | None:
    """Return the requested passage, else the next ungraded one in the person's own order; ``None`` without one.

    Three queries."""
    keys = repair.passages.filter(sampled=True).values_list("pk", flat=True)
    order = sorted(keys, key=lambda key: _stable_number(repair.seed, key, person.pk))
    ratings = latest_ratings(repair)
    graded = {passage for (passage, _), row in ratings.items() if row.grade != CANNOT_JUDGE}
    own_ratings = {passage: row for (passage, rater), row in ratings.items() if rater == person.pk}
    candidates = [
        key for key in order if (key == passage_id if passage_id else key not in graded and key not in own_ratings)
    ]
    if not candidates:
        return None
    passage = PooledPassage.objects.select_related("question").get(pk=candidates[0])
    own_rating = own_ratings.get(passage.pk)
    grade_and_reason = (own_rating.grade, own_rating.reason) if own_rating else ("", "")
    return PassageCard(
        passage, passage.question.text, *grade_and_reason, len(graded), len(order), own_rating.pk if own_rating else 0
    )


def latest_ratings(repair: RetrievalRepair) -> dict[tuple[int, int], PassageRating]:
    """Return the ratings that count, by passage and rater."""
    rows = PassageRating.objects.filter(passage__repair=repair).select_related("rater").order_by("round", "pk")
    return {(row.passage_id, row.rater_id): row for row in rows}


def count_ratings_since(repair: RetrievalRepair, at: datetime) -> int:
    """Count the ratings given after ``at``."""
    return PassageRating.objects.filter(passage__repair=repair, created_at__gt=at).count()


def last_rated_passage(repair: RetrievalRepair, person: User) -> int | None:
    """Return the passage that the person rated last."""
    rows = PassageRating.objects.filter(passage__repair=repair, rater=person).order_by("-pk")
    return rows.values_list("passage_id", flat=True).first()


@transaction.atomic
def rate_passage(
    repair: RetrievalRepair,
    passage: PooledPassage,
    person: User,
    grade: str,
    *,
    reason: str = "",
    seconds: float | None = None,
) -> PassageRating:
    """Store a grade. Repeating it changes nothing; a different grade is a new row that counts instead.

    :raises DomainError: ``repair_closed``, ``password_by_others_link``, ``not_drawn``, ``unknown_grade``,
    ``reason_too_long``."""
    # The lock serialises requests of the same person.
    RepairMember.objects.select_for_update().get(repair=repair, reviewer=person)
    if RetrievalRepair.objects.values_list("closed_at", flat=True).get(pk=repair.pk) is not None:
        raise DomainError("repair_closed")
    if person.is_distrusted:
        raise DomainError("password_by_others_link")
    if passage.repair_id != repair.pk or not passage.sampled:
        raise DomainError("not_drawn")
    if grade not in PassageRating.Grade.values:
        raise DomainError("unknown_grade")
    if len(reason) > MAX_REASON_LENGTH:
        raise DomainError("reason_too_long", length=len(reason), limit=MAX_REASON_LENGTH)
    previous = PassageRating.objects.filter(passage=passage, rater=person).order_by("-round").first()
    if previous is not None and (previous.grade, previous.reason) == (grade, reason):
        return previous
    invalidate_corrected_figures(repair)
    return PassageRating.objects.create(
        passage=passage,
        rater=person,
        grade=grade,
        reason=reason,
        seconds=seconds,
        round=previous.round + 1 if previous else 0,
    )


def invalidate_corrected_figures(repair: RetrievalRepair) -> None:
    """Invalidate the figures of runs over the repaired version and over versions that accepted its labels."""
    versions = list(repair.accepted.order_by("pk").values_list("question_set", flat=True))
    rows = Answer.objects.filter(answer_set__question_set__in=[*versions, repair.question_set_id] if versions else [])
    first_answers = rows.order_by().values("answer_set__question_set").annotate(first=Min("pk"))
    invalidate_figures(list(first_answers.values_list("first", flat=True)))


def _stable_number(*parts: int) -> int:
    return int.from_bytes(hashlib.sha256(repr(parts).encode()).digest()[:8], "big")


class RemainingPassages(NamedTuple):
    """Number of passages of an open repair that a person can still rate."""

    repair_id: int
    name: str
    passage_count: int


def remaining_passages(person: User) -> list[RemainingPassages]:
    """Return the open repairs with drawn passages that are ungraded and that the person has not rated. One query."""
    graded = PassageRating.objects.filter(~Q(grade=CANNOT_JUDGE) | Q(rater=person), passage=OuterRef("pk"))
    repairs = RetrievalRepair.objects.filter(closed_at=None, members__reviewer=person)
    repairs = repairs.filter(project__in=access.projects_with(person, Action.RATE).values("pk"))
    unrated = PooledPassage.objects.filter(~Exists(graded), sampled=True, repair__in=repairs.values("pk"))
    rows = unrated.order_by("repair").values_list("repair", "repair__name").annotate(left=Count("pk"))
    return [RemainingPassages(repair, name, count) for repair, name, count in rows]
