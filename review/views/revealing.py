"""After the rating: the judge beside it, and the expert's last word."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language
from django.views.decorators.http import require_POST

from evaluation.errors import Refused
from evaluation.messages import explain_refusal
from review.access import own_assignment
from review.forms.rating import read_active_ms, read_changes
from review.models.queues import Assignment
from review.pages.refusals import in_words
from review.pages.reveal import reveal_page
from review.queues.card import card
from review.queues.progress import own_progress
from review.ratings import metrics_of
from review.reveals import finalise, reveal
from review.views.people import person

NOTHING: Mapping[str, Mapping[str, str]] = {}


def show_reveal(
    request: HttpRequest,
    assignment: Assignment,
    *,
    entered: Mapping[str, Mapping[str, str]] = NOTHING,
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    """The reveal screen; from here on the first rating stands."""
    said = reveal(assignment)
    own = own_progress(assignment.item.queue, person(request))
    page = reveal_page(card(assignment, get_language() or "en"), said, own, entered=entered, error=error)
    return render(request, "review/reveal.html", {"page": page}, status=status)


@login_required
@require_POST
def finalise_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep or change the rating, then on to the next item."""
    assignment = own_assignment(request.user, pk)
    metrics = metrics_of(assignment.item.queue)
    changes = read_changes(request.POST, metrics, keep=request.POST.get("decision") != "change")
    try:
        finalise(assignment, changes, by=person(request), active_ms=read_active_ms(request.POST))
    except Refused as refused:
        if refused.code not in {"reason_needed", "unknown_reason", "off_scale", "one_value", "comment_too_long"}:
            messages.error(request, explain_refusal(refused))
            return redirect("review-item", assignment.pk)
        error = in_words(refused, [row.metric for row in metrics])
        held = {
            row.metric.name: {
                part: request.POST.get(f"{part}:{row.metric.name}", "") for part in ("value", "reason", "comment")
            }
            for row in metrics
        }
        return show_reveal(request, assignment, entered=held, error=error, status=409)
    return redirect("review-next", assignment.item.queue_id)
