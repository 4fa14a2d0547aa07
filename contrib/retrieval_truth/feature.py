"""Register URLs, to-dos, and corrected retrieval figures of runs on repaired question sets."""

from __future__ import annotations

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from contrib.retrieval_truth.acceptance import corrected_retrieval, repaired_retrieval
from contrib.retrieval_truth.rating import remaining_passages
from evaluation.extensions import TodoItem
from evaluation.models import User
from review.reports.retrieval import ReviewFeature


def rating_todos(user: User) -> list[TodoItem]:
    """Return the open repairs with passages that the user can still rate."""
    return [
        TodoItem(
            count=row.passage_count,
            label=ngettext("retrieved passage to rate", "retrieved passages to rate", row.passage_count),
            name=row.name,
            href=reverse("truth-rate", args=[row.repair_id]),
            action=gettext("Rate passages"),
        )
        for row in remaining_passages(user)
    ]


FEATURE = ReviewFeature(
    name="retrieval_truth",
    urls="contrib.retrieval_truth.views",
    api_urls="contrib.retrieval_truth.api",
    todo_items=rating_todos,
    corrected_retrieval=corrected_retrieval,
    repaired_retrieval=repaired_retrieval,
)
