"""What repairs of retrieval truth do for the core: their addresses, what waits for a person, and figures of runs on
sets that took labels over."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from evaluation.extensions import Waiting
from evaluation.models import User
from review.extras.retrieval_truth.accepting import corrected_retrieval, repaired_retrieval
from review.extras.retrieval_truth.rating import left_for
from review.reports.retrieval import ReviewFeature


def passages_left(user: User) -> list[Waiting]:
    """Open repairs with passages that the person could still rate."""
    return [
        Waiting(
            count=row.passages,
            what=ngettext("retrieved passage waits to be rated", "retrieved passages wait to be rated", row.passages),
            name=row.name,
            href=reverse("truth-rate", args=[row.repair]),
            action=gettext("Rate passages"),
        )
        for row in left_for(user)
    ]


FEATURE = ReviewFeature(
    name="retrieval_truth",
    urls="review.extras.retrieval_truth.views",
    api_urls="review.extras.retrieval_truth.api",
    waiting=passages_left,
    retrieval=corrected_retrieval,
    repaired=repaired_retrieval,
)
