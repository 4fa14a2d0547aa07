"""What repairs of retrieval truth do for the core: their addresses, and what waits for a person."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from evaluation.accounts import access
from evaluation.core.roles import Action
from evaluation.models import User
from evaluation.work.plugins import Extra, Waiting
from review.extras.retrieval_truth.rating import left_for
from review.models import RetrievalRepair


def passages_left(user: User) -> list[Waiting]:
    """Open repairs with passages that the person could still rate."""
    mine = RetrievalRepair.objects.filter(closed_at=None, members__reviewer=user)
    mine = mine.filter(project__in=access.projects_with(user, Action.RATE).values("pk"))
    counted = [(one, left_for(one, user)) for one in mine.order_by("pk")]
    return [_waiting(one, left) for one, left in counted if left]


def _waiting(found: RetrievalRepair, left: int) -> Waiting:
    return Waiting(
        count=left,
        what=ngettext("retrieved passage waits to be rated", "retrieved passages wait to be rated", left),
        name=found.name,
        href=reverse("truth-rate", args=[found.pk]),
        action=gettext("Rate passages"),
    )


EXTRA = Extra(
    name="retrieval_truth",
    urls="review.extras.retrieval_truth.views",
    api_urls="review.extras.retrieval_truth.api",
    waiting=passages_left,
)
