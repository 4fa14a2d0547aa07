"""After the rating: the judge beside it, and the expert's last word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language
from django.views.decorators.http import require_POST

from evaluation.core.errors import Refused
from evaluation.wording.messages import explain_refusal
from review.evidence.rating_input import PartGiven
from review.models import Assignment
from review.queues.access import own_assignment
from review.queues.progress import own_progress
from review.ratings.card import card
from review.ratings.reveals import finalise, reveal
from review.ratings.submitting import metrics_of
from review.web.forms.rating import held_fields, read_active_ms, read_changes
from review.web.pages.keys import keys_of
from review.web.pages.refusals import in_words
from review.web.pages.reveal import reveal_page
from review.web.views.people import person

NOTHING: Mapping[str, Mapping[str, str]] = {}
NO_PARTS: Mapping[str, Sequence[PartGiven]] = {}
SHOWN_IN_PLACE = {
    *("reason_needed", "unknown_reason", "off_scale", "one_value", "comment_too_long"),
    *("parts_undecided", "unknown_verdict", "no_parts", "too_many_parts"),
}


def show_reveal(
    request: HttpRequest,
    assignment: Assignment,
    *,
    entered: Mapping[str, Mapping[str, str]] = NOTHING,
    decided: Mapping[str, Sequence[PartGiven]] = NO_PARTS,
    error: str = "",
    status: int = 200,
) -> HttpResponse:
    """The reveal screen; from here on the first rating stands."""
    said = reveal(assignment)
    own = own_progress(assignment.item.queue, person(request))
    keys = keys_of(person(request))
    shown = card(assignment, get_language() or "en")
    page = reveal_page(shown, said, own, keys, entered=entered, decided=decided, error=error)
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
        if refused.code not in SHOWN_IN_PLACE:
            messages.error(request, explain_refusal(refused))
            return redirect("review-item", assignment.pk)
        error = in_words(refused, [row.metric for row in metrics])
        held = held_fields(request.POST, metrics)
        decided = {name: change.parts for name, change in changes.items() if change.parts}
        return show_reveal(request, assignment, entered=held, decided=decided, error=error, status=409)
    return redirect("review-next", assignment.item.queue_id)
