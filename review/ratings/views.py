"""The reviewer's path: the next item, the item, rating it or putting it down without a rating, the judge beside it and
the expert's last word, and on to the next; the person's past ratings, which may be given again; the keys of the screen.

The screen's own script has the next card already; the answer to it tells which one it is and what to say, so that
nothing is shown that is not held.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.translation import get_language, gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evaluation.accounts.access import person, signed_in_form, signed_in_get, signed_in_post
from evaluation.core.errors import Refused, UnknownName
from evaluation.messages.sentences import explain_refusal
from review.evidence.rating_input import Change
from review.models import Assignment, ReviewQueue
from review.queues.access import own_assignment, own_rated, queue_for_rating
from review.queues.progress import own_progress, undoable
from review.ratings.card import CODES, DEFAULTS, card, checked_keys
from review.ratings.forms import (
    draft_payload,
    held_fields,
    in_words,
    metrics_in,
    read_active_ms,
    read_changes,
    read_given,
)
from review.ratings.leases import assignment_ahead, extend, next_assignment
from review.ratings.pages.card import chosen_keys, keys_of, own_ratings, review_page
from review.ratings.pages.reveal import Decided, again_page, past_rating, reveal_page
from review.ratings.reveals import (
    adjudicated_metrics,
    finalise,
    rate_again,
    reveal,
    standing_by_assignment,
    standing_ratings,
)
from review.ratings.submitting import asked_of, escalate, flag, save_draft, skip, submit, undo

State = Assignment.State
MOST_LISTED = 50
SHOWN_IN_PLACE = {
    *("reason_needed", "unknown_reason", "off_scale", "one_value", "comment_too_long"),
    *("parts_undecided", "unknown_verdict", "no_parts", "too_many_parts"),
}


@login_required
@never_cache
@require_safe
def next_item(request: HttpRequest, pk: int) -> HttpResponse:
    """The item the person should rate now, without a second request for it (the screen's script puts its own address
    into the address bar), or a page that says why there is none."""
    queue = queue_for_rating(request.user, pk)
    try:
        assignment = next_assignment(queue, person(request))
    except Refused as refused:
        return render(request, "review/ratings/waiting.html", {"queue": queue, "reason": explain_refusal(refused)})
    if assignment is not None:
        return _screen(request, assignment)
    me = person(request)
    own = own_progress(queue, me)
    return render(
        request, "review/ratings/waiting.html", {"queue": queue, "own": own, "undo": undoable(queue, me, own)}
    )


@login_required
@never_cache
@require_safe
def item_ahead(request: HttpRequest, pk: int) -> HttpResponse:
    """The card that follows the one in hand, reserved and ready to be shown; 204 where there is none."""
    current = own_assignment(request.user, pk)
    following = assignment_ahead(current.item.queue, person(request), current)
    if following is None:
        return HttpResponse(status=204)
    return _screen(request, own_assignment(request.user, following.pk, shown=True), ahead=True)


@login_required
@never_cache
@require_safe
def item(request: HttpRequest, pk: int) -> HttpResponse:
    """The item as its state asks: to be rated, compared with the judge, or looked back at."""
    assignment = own_assignment(request.user, pk, shown=True)
    if assignment.state in {State.SUBMITTED, State.REVEALED}:
        return _reveal(request, assignment)
    if assignment.state == State.FINISHED:
        shown = card(assignment, get_language() or "en")
        return render(request, "review/ratings/finished.html", {"card": shown, "ratings": own_ratings(shown)})
    if assignment.state in {State.SKIPPED, State.FLAGGED}:
        return render(request, "review/ratings/passed_on.html", {"assignment": assignment})
    return _screen(request, assignment)


@signed_in_post
def submit_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Store the rating; on to the judge where it is to be shown, else to the next item."""
    assignment = own_assignment(request.user, pk)
    metrics = asked_of(assignment.item)
    try:
        submitted = submit(
            assignment,
            read_given(request.POST, metrics),
            idempotency_key=request.POST.get("form_key", ""),
            by=person(request),
            active_ms=read_active_ms(request.POST),
            comment=request.POST.get("comment", ""),
            suggestion=request.POST.get("suggestion", ""),
        )
    except Refused as refused:
        return _refused(request, assignment, refused)
    if submitted.stale:
        messages.warning(request, gettext("The item was withdrawn meanwhile. Your rating is kept for what you saw."))
    if submitted.reveal:
        return _to_item(request, assignment.pk)
    return _onward(request, assignment.item.queue)


@signed_in_post
def save(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep the draft: 204, or 409 where the item was rated meanwhile."""
    assignment = own_assignment(request.user, pk)
    return _kept(lambda: save_draft(assignment, draft_payload(request.POST, asked_of(assignment.item))))


@signed_in_post
def skip_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Pass the item on to somebody else."""
    return _put_down(request, pk, skip)


@signed_in_post
def flag_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Say that something is wrong with the item itself."""
    kind, comment = request.POST.get("kind", ""), request.POST.get("flag_comment", "")
    done = gettext("Flagged. A lead will look at it.")
    try:
        return _put_down(request, pk, lambda held: flag(held, kind, comment), done)
    except UnknownName:
        messages.error(request, gettext("Choose what is wrong with the item."))
        return _to_item(request, pk)


@signed_in_post
def escalate_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Hand the item to a lead."""
    comment, done = request.POST.get("escalate_comment", ""), gettext("A lead has your question and will decide.")
    return _put_down(request, pk, lambda held: escalate(held, comment), done)


@signed_in_post
def extend_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep the item for the queue's time from now: 204, or 409 where somebody else has taken it."""
    assignment = own_assignment(request.user, pk)
    return _kept(lambda: extend(assignment))


@signed_in_post
def undo_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Open the last item again."""
    assignment = own_assignment(request.user, pk)
    try:
        undo(assignment, by=person(request))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("review-next", assignment.item.queue_id)
    return redirect("review-item", assignment.pk)


def _reveal(request: HttpRequest, assignment: Assignment, **held: Any) -> HttpResponse:
    """The reveal screen, or with what a refused form ``held``; from here on the first rating stands."""
    me, said = person(request), reveal(assignment)
    own = own_progress(assignment.item.queue, me)
    page = reveal_page(card(assignment, get_language() or "en"), said, own, keys_of(me), **held)
    return render(request, "review/ratings/reveal.html", {"page": page}, status=409 if held else 200)


@signed_in_post
def finalise_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep or change the rating, then on to the next item."""
    assignment = own_assignment(request.user, pk)
    metrics = asked_of(assignment.item)
    changes = read_changes(request.POST, metrics, keep=request.POST.get("decision") != "change")
    try:
        finalise(assignment, changes, by=person(request), active_ms=read_active_ms(request.POST))
    except Refused as refused:
        error = in_words(refused, [row.metric for row in metrics])
        if refused.code not in SHOWN_IN_PLACE or assignment.revealed_at is None:  # a refusal shows nobody the judge
            messages.error(request, error)
            return redirect("review-item", assignment.pk)
        held = held_fields(request.POST, metrics)
        return _reveal(request, assignment, entered=held, decided=_parts(changes), error=error)
    return redirect("review-next", assignment.item.queue_id)


@signed_in_get
def my_ratings(request: HttpRequest) -> HttpResponse:
    """What I rated last, newest first."""
    mine = list(own_rated(request.user)[:MOST_LISTED])
    standing, closed = standing_by_assignment(mine)
    rows = [
        past_rating(one, list(standing.get(one.pk, {}).values()), closed.get(one.item.answer_id, ())) for one in mine
    ]
    return render(request, "review/ratings/my_ratings.html", {"ratings": rows})


@signed_in_form
def rate_item_again(request: HttpRequest, pk: int) -> HttpResponse:
    """The finished item as a form; what is changed there is stored beside what was said before."""
    assignment = own_assignment(request.user, pk)
    if assignment.state != Assignment.State.FINISHED:
        return redirect("review-item", assignment.pk)
    if request.method != "POST":
        return _again(request, assignment)
    metrics = asked_of(assignment.item)
    changes, key = read_changes(request.POST, metrics, keep=False), request.POST.get("form_key", "")
    looked = read_active_ms(request.POST)
    try:
        done = rate_again(assignment, changes, by=person(request), idempotency_key=key, active_ms=looked)
    except Refused as refused:
        if refused.code == "queue_closed":
            messages.error(request, explain_refusal(refused))
            return redirect("my-ratings")
        error, entered = in_words(refused, [row.metric for row in metrics]), held_fields(request.POST, metrics)
        return _again(request, assignment, entered=entered, decided=_parts(changes), form_key=key, error=error)
    said = gettext("Nothing was changed.")
    if done.changed:
        said = gettext("Your new rating counts; the first one is kept.")
    messages.success(request, said)
    return redirect("my-ratings")


def _again(request: HttpRequest, assignment: Assignment, **held: Any) -> HttpResponse:
    """The form with what stands, or with what a refused one ``held``."""
    shown = card(assignment, get_language() or "en")
    page = again_page(shown, standing_ratings(assignment), adjudicated_metrics(assignment), **held)
    return render(request, "review/ratings/again.html", {"page": page}, status=409 if held else 200)


def _parts(changes: Mapping[str, Change]) -> Decided:
    """The verdicts on parts that a refused form held."""
    return {name: change.parts for name, change in changes.items() if change.parts}


@signed_in_form
def keys(request: HttpRequest) -> HttpResponse:
    """Choose the keys from a closed list, go back to the usual ones, or switch single keys off."""
    me = person(request)
    if request.method != "POST":
        return _keys(request, {})
    wanted = {} if "usual" in request.POST else _chosen(request.POST)
    try:
        me.keymap = checked_keys(wanted)
    except Refused as refused:
        return _keys(request, wanted, explain_refusal(refused))
    me.keys_off = "off" in request.POST
    me.save(update_fields=["keymap", "keys_off"])
    messages.success(request, gettext("Your keys are kept."))
    return redirect("review-keys")


@signed_in_post
def switch_keys(request: HttpRequest) -> HttpResponse:
    """Switch single keys off or on again, from the help of the screen."""
    me = person(request)
    me.keys_off = request.POST.get("off") == "1"
    me.save(update_fields=["keys_off"])
    return HttpResponse(status=204)


def _keys(request: HttpRequest, entered: dict[str, str], error: str = "") -> HttpResponse:
    me = person(request)
    shown = {"rows": chosen_keys(me, entered), "codes": CODES, "off": me.keys_off, "error": error}
    return render(request, "review/ratings/keys.html", shown, status=409 if error else 200)


def _refused(request: HttpRequest, assignment: Assignment, refused: Refused) -> HttpResponse:
    """The screen again with the reason beside the fields and everything that was entered."""
    if refused.code in {"already_rated", "not_held"}:
        messages.error(request, explain_refusal(refused))
        return _to_item(request, assignment.pk, refused=True)
    metrics = asked_of(assignment.item)
    return _screen(
        request,
        assignment,
        draft=draft_payload(request.POST, metrics),
        error=in_words(refused, [row.metric for row in metrics]),
        form_key=request.POST.get("form_key", ""),
        missing=metrics_in(refused),
        status=409,
    )


def _screen(
    request: HttpRequest,
    assignment: Assignment,
    *,
    draft: dict[str, Any] | None = None,
    error: str = "",
    form_key: str = "",
    missing: Collection[str] = (),
    status: int = 200,
    ahead: bool = False,
) -> HttpResponse:
    """The screen of an item, with its stored draft unless another one is given."""
    me, queue, shown = person(request), assignment.item.queue, card(assignment, get_language() or "en")
    own = own_progress(queue, me)
    page = review_page(
        shown,
        own,
        draft=shown.draft if draft is None else draft,
        keys=keys_of(me),
        undo=undoable(queue, me, own),
        error=error,
        form_key=form_key,
        missing=missing,
        ahead=ahead,
    )
    return render(request, "review/ratings/review.html", {"page": page}, status=status)


def _put_down(request: HttpRequest, pk: int, step: Callable[[Assignment], object], done: str = "") -> HttpResponse:
    """Put the item down without a rating, say so where it is worth saying, and go on."""
    assignment = own_assignment(request.user, pk)
    try:
        step(assignment)
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    else:
        if done:
            messages.success(request, done)
    return _onward(request, assignment.item.queue)


def _kept(step: Callable[[], object]) -> HttpResponse:
    """204 once the step is done, 409 with the reason where it is refused."""
    try:
        step()
    except Refused as refused:
        return HttpResponse(explain_refusal(refused), status=409, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204)


def _onward(request: HttpRequest, queue: ReviewQueue) -> HttpResponse:
    """On to the next item of the queue."""
    if not _wants_json(request):
        return redirect("review-next", queue.pk)
    me = person(request)
    try:
        following = next_assignment(queue, me)
    except Refused:
        following = None
    path = reverse("review-item", args=[following.pk]) if following else reverse("review-next", args=[queue.pk])
    own = own_progress(queue, me)
    last = undoable(queue, me, own)
    head = {"queue_id": queue.pk, "queue_name": queue.name, "own": own, "help": True}
    return JsonResponse(
        {
            "next": path,
            "undo": reverse("review-undo", args=[last]) if last else "",
            "head": render_to_string("review/ratings/_header.html", head, request),
            "says": [str(message) for message in messages.get_messages(request)] if following else [],
        }
    )


def _to_item(request: HttpRequest, pk: int, *, refused: bool = False) -> HttpResponse:
    """To an item of the person's own: to the reveal, or back to one that was opened again. Where what they sent was
    ``refused``, as of a second window, the browser goes on keeping it: it is there when the item is brought back."""
    if not _wants_json(request):
        return redirect("review-item", pk)
    return JsonResponse(
        {"next": reverse("review-item", args=[pk]), "undo": "", "head": "", "says": [], "refused": refused}
    )


def _wants_json(request: HttpRequest) -> bool:
    """Whether the screen's script asks."""
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def _chosen(data: QueryDict) -> dict[str, str]:
    """The chosen key of every action that the form holds."""
    found = {str(action): data.get(f"key:{action}", "") for action in DEFAULTS}
    return {action: code for action, code in found.items() if code}
