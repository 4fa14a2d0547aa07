"""After the rating: the judge beside it, and the expert's last word; and a reviewer's own past ratings, which may be
given again."""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext

from evaluation.accounts.access import person, signed_in_form, signed_in_get, signed_in_post
from evaluation.core.errors import Refused
from evaluation.wording.messages import explain_refusal
from review.evidence.rating_input import Change
from review.models import Assignment
from review.queues.access import own_assignment, own_rated
from review.queues.progress import own_progress
from review.ratings.card import card
from review.ratings.reveals import (
    adjudicated_metrics,
    finalise,
    rate_again,
    reveal,
    standing_by_assignment,
    standing_ratings,
)
from review.ratings.submitting import metrics_of
from review.web.forms.rating import held_fields, in_words, read_active_ms, read_changes
from review.web.pages.reveal import Decided, Entered, MyRatingsPage, again_page, past_rating, reveal_page
from review.web.pages.review_card import keys_of

MOST_LISTED = 50
NOTHING: Entered = {}
NO_PARTS: Decided = {}
SHOWN_IN_PLACE = {
    *("reason_needed", "unknown_reason", "off_scale", "one_value", "comment_too_long"),
    *("parts_undecided", "unknown_verdict", "no_parts", "too_many_parts"),
}


def show_reveal(
    request: HttpRequest,
    assignment: Assignment,
    *,
    entered: Entered = NOTHING,
    decided: Decided = NO_PARTS,
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


@signed_in_post
def finalise_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep or change the rating, then on to the next item."""
    assignment = own_assignment(request.user, pk)
    metrics = metrics_of(assignment.item.queue)
    changes = read_changes(request.POST, metrics, keep=request.POST.get("decision") != "change")
    try:
        finalise(assignment, changes, by=person(request), active_ms=read_active_ms(request.POST))
    except Refused as refused:
        error = in_words(refused, [row.metric for row in metrics])
        if refused.code not in SHOWN_IN_PLACE or assignment.revealed_at is None:  # a refusal shows nobody the judge
            messages.error(request, error)
            return redirect("review-item", assignment.pk)
        held = held_fields(request.POST, metrics)
        return show_reveal(request, assignment, entered=held, decided=_parts(changes), error=error, status=409)
    return redirect("review-next", assignment.item.queue_id)


@signed_in_get
def my_ratings(request: HttpRequest) -> HttpResponse:
    """What I rated last, newest first."""
    mine = list(own_rated(request.user)[:MOST_LISTED])
    standing, closed = standing_by_assignment(mine)
    rows = [
        past_rating(one, list(standing.get(one.pk, {}).values()), closed.get(one.item.answer_id, ())) for one in mine
    ]
    return render(request, "review/my_ratings.html", {"page": MyRatingsPage(tuple(rows))})


@signed_in_form
def rate_item_again(request: HttpRequest, pk: int) -> HttpResponse:
    """The finished item as a form; what is changed there is stored beside what was said before."""
    assignment = own_assignment(request.user, pk)
    if assignment.state != Assignment.State.FINISHED:
        return redirect("review-item", assignment.pk)
    if request.method != "POST":
        shown = card(assignment, get_language() or "en")
        page = again_page(shown, standing_ratings(assignment), adjudicated_metrics(assignment))
        return render(request, "review/again.html", {"page": page})
    metrics = metrics_of(assignment.item.queue)
    changes = read_changes(request.POST, metrics, keep=False)
    key = request.POST.get("form_key", "")
    try:
        done = rate_again(
            assignment, changes, by=person(request), idempotency_key=key, active_ms=read_active_ms(request.POST)
        )
    except Refused as refused:
        if refused.code == "queue_closed":
            messages.error(request, explain_refusal(refused))
            return redirect("my-ratings")
        page = again_page(
            card(assignment, get_language() or "en"),
            standing_ratings(assignment),
            adjudicated_metrics(assignment),
            entered=held_fields(request.POST, metrics),
            decided=_parts(changes),
            form_key=key,
            error=in_words(refused, [row.metric for row in metrics]),
        )
        return render(request, "review/again.html", {"page": page}, status=409)
    said = (
        gettext("Your new rating counts; the first one is kept.") if done.changed else gettext("Nothing was changed.")
    )
    messages.success(request, said)
    return redirect("my-ratings")


def _parts(changes: Mapping[str, Change]) -> Decided:
    """The verdicts on parts that a refused form held."""
    return {name: change.parts for name, change in changes.items() if change.parts}
