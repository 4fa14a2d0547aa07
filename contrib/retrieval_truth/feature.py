"""Extensions of the core: addresses, to-dos, and corrected retrieval figures of runs on repaired question sets."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from contrib.retrieval_truth.accepting import corrected_retrieval, repaired_retrieval
from contrib.retrieval_truth.rating import left_for
from evaluation.extensions import Waiting
from evaluation.models import User
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
    urls="contrib.retrieval_truth.views",
    api_urls="contrib.retrieval_truth.api",
    waiting=passages_left,
    retrieval=corrected_retrieval,
    repaired=repaired_retrieval,
)
