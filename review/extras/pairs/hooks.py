"""What comparisons side by side do for the core: their addresses, what waits for a person, their calls, and a part of
the demo."""

from __future__ import annotations

from collections.abc import Collection

from django.db.models import Count, Q
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from evaluation.accounts import access
from evaluation.core.roles import Action
from evaluation.models import User
from evaluation.work.plugins import Calls, Extra, Waiting
from review.extras.pairs.demo import compare_side_by_side
from review.models import PairReply, PairSet


def calls_about_pairs(projects: Collection[int]) -> Calls:
    """The calls of the comparisons of these projects."""
    return Calls("pairs", PairReply.objects.filter(attempt__judging__pair_set__project__in=projects))


def pairs_left(user: User) -> list[Waiting]:
    """Open comparisons with pairs that the person has still to compare."""
    mine = PairSet.objects.filter(closed_at=None, members__reviewer=user)
    mine = mine.filter(project__in=access.projects_with(user, Action.RATE).values("pk"))
    rated = Count("pairs", distinct=True, filter=Q(pairs__preferences__rater=user))
    counted = mine.annotate(size=Count("pairs", distinct=True), rated=rated).order_by("pk")
    return [_waiting(one, one.size - one.rated) for one in counted if one.size > one.rated]


def _waiting(found: PairSet, left: int) -> Waiting:
    return Waiting(
        count=left,
        what=ngettext("pair of answers waits to be compared", "pairs of answers wait to be compared", left),
        name=found.name,
        href=reverse("pairs-rate", args=[found.pk]),
        action=gettext("Compare side by side"),
    )


EXTRA = Extra(
    name="pairs",
    urls="review.extras.pairs.urls",
    api_urls="review.extras.pairs.api_urls",
    calls=calls_about_pairs,
    waiting=pairs_left,
    demo=compare_side_by_side,
)
