"""The reviewer's pages: next item, rating, skip, flag, escalate, reveal, final rating, own past ratings, and keys.

The screen's script has already fetched the next card. The JSON response names the item to show and the messages, so
that nothing is shown that is not leased."""

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

from evaluation.accounts.access import signed_in_form, signed_in_get, signed_in_post, signed_in_user
from evaluation.core.errors import DomainError, UnknownName
from evaluation.messages.explanations import explain_refusal
from review.evidence.rating_input import RatingUpdate
from review.models import Assignment, ReviewQueue
from review.queues.access import own_assignment, own_rated_assignments, queue_for_rating
from review.queues.progress import own_progress, undoable_assignment
from review.ratings.card import DEFAULT_KEYS, KEY_LABELS, build_card, checked_keys
from review.ratings.forms import (
    draft_payload,
    read_active_ms,
    read_changes,
    read_rating_inputs,
    refusal_sentence,
    refused_metrics,
    typed_fields,
)
from review.ratings.leases import extend_lease, next_assignment, prefetch_assignment
from review.ratings.pages.card import chosen_keys, own_ratings, review_page, user_keys
from review.ratings.pages.reveal import EnteredParts, past_rating, rerate_page, reveal_page
from review.ratings.reveals import (
    adjudicated_metrics,
    current_ratings,
    current_ratings_by_assignment,
    finalise,
    rate_again,
    reveal,
)
from review.ratings.submitting import escalate, flag, item_metrics, save_draft, skip, submit, undo

State = Assignment.State
MAX_LISTED = 50
INLINE_REFUSALS = {
    *("reason_needed", "unknown_reason", "off_scale", "one_value", "comment_too_long"),
    *("parts_undecided", "unknown_verdict", "no_parts", "too_many_parts"),
}


@login_required
@never_cache
@require_safe
def next_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the item to rate now without a redirect (the script sets the address bar), or say why there is none."""
    queue = queue_for_rating(request.user, pk)
    try:
        assignment = next_assignment(queue, signed_in_user(request))
    except DomainError as refusal:
        return render(request, "review/ratings/waiting.html", {"queue": queue, "reason": explain_refusal(refusal)})
    if assignment is not None:
        return _item_page(request, assignment)
    user = signed_in_user(request)
    progress = own_progress(queue, user)
    return render(
        request,
        "review/ratings/waiting.html",
        {"queue": queue, "own": progress, "undo": undoable_assignment(queue, user, progress)},
    )


@login_required
@never_cache
@require_safe
def prefetch_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Lease and render the next card in advance; 204 if there is none."""
    current = own_assignment(request.user, pk)
    following = prefetch_assignment(current.item.queue, signed_in_user(request), current)
    if following is None:
        return HttpResponse(status=204)
    return _item_page(request, own_assignment(request.user, following.pk, with_card=True), prefetched=True)


@login_required
@never_cache
@require_safe
def item(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the item by its state: to rate, to compare with the judge, or finished."""
    assignment = own_assignment(request.user, pk, with_card=True)
    if assignment.state in {State.SUBMITTED, State.REVEALED}:
        return _reveal_page(request, assignment)
    if assignment.state == State.FINISHED:
        item_card = build_card(assignment, get_language() or "en")
        return render(request, "review/ratings/finished.html", {"card": item_card, "ratings": own_ratings(item_card)})
    if assignment.state in {State.SKIPPED, State.FLAGGED}:
        return render(request, "review/ratings/skipped.html", {"assignment": assignment})
    return _item_page(request, assignment)


@signed_in_post
def submit_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Store the rating; go on to the reveal or the next item."""
    assignment = own_assignment(request.user, pk)
    metrics = item_metrics(assignment.item)
    try:
        submitted = submit(
            assignment,
            read_rating_inputs(request.POST, metrics),
            idempotency_key=request.POST.get("form_key", ""),
            by=signed_in_user(request),
            active_ms=read_active_ms(request.POST),
            comment=request.POST.get("comment", ""),
            suggestion=request.POST.get("suggestion", ""),
        )
    except DomainError as refusal:
        return _refused_page(request, assignment, refusal)
    if submitted.stale:
        messages.warning(
            request, gettext("The item was withdrawn in the meantime. Your rating is kept for the version you saw.")
        )
    if submitted.reveal:
        return _item_response(request, assignment.pk)
    return _next_response(request, assignment.item.queue)


@signed_in_post
def save_item_draft(request: HttpRequest, pk: int) -> HttpResponse:
    """Save the draft: 204, or 409 if the item was rated meanwhile."""
    assignment = own_assignment(request.user, pk)
    return _no_content(lambda: save_draft(assignment, draft_payload(request.POST, item_metrics(assignment.item))))


@signed_in_post
def skip_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Skip the item."""
    return _pass_on(request, pk, skip)


@signed_in_post
def flag_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Flag a problem with the item itself."""
    kind, comment = request.POST.get("kind", ""), request.POST.get("flag_comment", "")
    message = gettext("Flagged. A lead will look at it.")
    try:
        return _pass_on(request, pk, lambda assignment: flag(assignment, kind, comment), message)
    except UnknownName:
        messages.error(request, gettext("Choose what is wrong with the item."))
        return _item_response(request, pk)


@signed_in_post
def escalate_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Escalate the item to a lead."""
    comment, message = request.POST.get("escalate_comment", ""), gettext("Sent to a lead, who will decide.")
    return _pass_on(request, pk, lambda assignment: escalate(assignment, comment), message)


@signed_in_post
def extend_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Extend the lease: 204, or 409 if another reviewer took the item."""
    assignment = own_assignment(request.user, pk)
    return _no_content(lambda: extend_lease(assignment))


@signed_in_post
def undo_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Reopen the last item."""
    assignment = own_assignment(request.user, pk)
    try:
        undo(assignment, by=signed_in_user(request))
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
        return redirect("review-next", assignment.item.queue_id)
    return redirect("review-item", assignment.pk)


def _reveal_page(request: HttpRequest, assignment: Assignment, **form_values: Any) -> HttpResponse:
    """Render the reveal, with ``form_values`` of a refused form. From here on the first rating cannot be undone."""
    user, comparisons = signed_in_user(request), reveal(assignment)
    progress = own_progress(assignment.item.queue, user)
    page = reveal_page(
        build_card(assignment, get_language() or "en"), comparisons, progress, user_keys(user), **form_values
    )
    return render(request, "review/ratings/reveal.html", {"page": page}, status=409 if form_values else 200)


@signed_in_post
def finalise_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep or change the rating, then go on to the next item."""
    assignment = own_assignment(request.user, pk)
    metrics = item_metrics(assignment.item)
    changes = read_changes(request.POST, metrics, reasons_only=request.POST.get("decision") != "change")
    try:
        finalise(assignment, changes, by=signed_in_user(request), active_ms=read_active_ms(request.POST))
    except DomainError as refusal:
        error = refusal_sentence(refusal, [row.metric for row in metrics])
        # A refusal never shows the judge to somebody who has not seen it.
        if refusal.code not in INLINE_REFUSALS or assignment.revealed_at is None:
            messages.error(request, error)
            return redirect("review-item", assignment.pk)
        entered = typed_fields(request.POST, metrics)
        return _reveal_page(request, assignment, entered=entered, entered_parts=_changed_parts(changes), error=error)
    return redirect("review-next", assignment.item.queue_id)


@signed_in_get
def my_ratings(request: HttpRequest) -> HttpResponse:
    """List the user's last ratings, newest first."""
    assignments = list(own_rated_assignments(request.user)[:MAX_LISTED])
    ratings_by_assignment, decided_metrics = current_ratings_by_assignment(assignments)
    rows = [
        past_rating(
            assignment,
            list(ratings_by_assignment.get(assignment.pk, {}).values()),
            decided_metrics.get(assignment.item.answer_id, ()),
        )
        for assignment in assignments
    ]
    return render(request, "review/ratings/my_ratings.html", {"ratings": rows})


@signed_in_form
def rate_item_again(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a finished item as a form; changes are stored as new ratings."""
    assignment = own_assignment(request.user, pk)
    if assignment.state != Assignment.State.FINISHED:
        return redirect("review-item", assignment.pk)
    if request.method != "POST":
        return _rerate_page(request, assignment)
    metrics = item_metrics(assignment.item)
    changes, key = read_changes(request.POST, metrics, reasons_only=False), request.POST.get("form_key", "")
    active_ms = read_active_ms(request.POST)
    try:
        result = rate_again(assignment, changes, by=signed_in_user(request), idempotency_key=key, active_ms=active_ms)
    except DomainError as refusal:
        if refusal.code == "queue_closed":
            messages.error(request, explain_refusal(refusal))
            return redirect("my-ratings")
        error, entered = refusal_sentence(refusal, [row.metric for row in metrics]), typed_fields(request.POST, metrics)
        return _rerate_page(
            request, assignment, entered=entered, entered_parts=_changed_parts(changes), form_key=key, error=error
        )
    message = gettext("Nothing was changed.")
    if result.changed:
        message = gettext("Your new rating counts. The first one is kept.")
    messages.success(request, message)
    return redirect("my-ratings")


def _rerate_page(request: HttpRequest, assignment: Assignment, **form_values: Any) -> HttpResponse:
    """Render the form with the current ratings, or with ``form_values`` of a refused form."""
    item_card = build_card(assignment, get_language() or "en")
    page = rerate_page(item_card, current_ratings(assignment), adjudicated_metrics(assignment), **form_values)
    return render(request, "review/ratings/rerate.html", {"page": page}, status=409 if form_values else 200)


def _changed_parts(changes: Mapping[str, RatingUpdate]) -> EnteredParts:
    """Verdicts on parts in a refused form."""
    return {name: change.parts for name, change in changes.items() if change.parts}


@signed_in_form
def keys(request: HttpRequest) -> HttpResponse:
    """Choose keys from the list, reset them, or switch single keys off."""
    user = signed_in_user(request)
    if request.method != "POST":
        return _keys_page(request, {})
    keymap = {} if "usual" in request.POST else _posted_keys(request.POST)
    try:
        user.keymap = checked_keys(keymap)
    except DomainError as refusal:
        return _keys_page(request, keymap, explain_refusal(refusal))
    user.keys_off = "off" in request.POST
    user.save(update_fields=["keymap", "keys_off"])
    messages.success(request, gettext("Keys saved."))
    return redirect("review-keys")


@signed_in_post
def switch_keys(request: HttpRequest) -> HttpResponse:
    """Switch single keys off or on from the screen's help."""
    user = signed_in_user(request)
    user.keys_off = request.POST.get("off") == "1"
    user.save(update_fields=["keys_off"])
    return HttpResponse(status=204)


def _keys_page(request: HttpRequest, entered: dict[str, str], error: str = "") -> HttpResponse:
    user = signed_in_user(request)
    context = {"rows": chosen_keys(user, entered), "codes": KEY_LABELS, "off": user.keys_off, "error": error}
    return render(request, "review/ratings/keys.html", context, status=409 if error else 200)


def _refused_page(request: HttpRequest, assignment: Assignment, refused: DomainError) -> HttpResponse:
    """Render the screen with the reason of the refusal and all entered values."""
    if refused.code in {"already_rated", "key_reused", "not_held"}:
        messages.error(request, explain_refusal(refused))
        return _item_response(request, assignment.pk, refused=True)
    metrics = item_metrics(assignment.item)
    return _item_page(
        request,
        assignment,
        draft=draft_payload(request.POST, metrics),
        error=refusal_sentence(refused, [row.metric for row in metrics]),
        form_key=request.POST.get("form_key", ""),
        missing=refused_metrics(refused),
        status=409,
    )


def _item_page(
    request: HttpRequest,
    assignment: Assignment,
    *,
    draft: dict[str, Any] | None = None,
    error: str = "",
    form_key: str = "",
    missing: Collection[str] = (),
    status: int = 200,
    prefetched: bool = False,
) -> HttpResponse:
    """Render the screen of an item, with its stored draft unless another is given."""
    user, queue, item_card = (
        signed_in_user(request),
        assignment.item.queue,
        build_card(assignment, get_language() or "en"),
    )
    progress = own_progress(queue, user)
    page = review_page(
        item_card,
        progress,
        draft=item_card.draft if draft is None else draft,
        keys=user_keys(user),
        undo_id=undoable_assignment(queue, user, progress),
        error=error,
        form_key=form_key,
        missing=missing,
        prefetched=prefetched,
    )
    return render(request, "review/ratings/review.html", {"page": page}, status=status)


def _pass_on(request: HttpRequest, pk: int, action: Callable[[Assignment], object], message: str = "") -> HttpResponse:
    """Leave the item without a rating, and go on to the next one."""
    assignment = own_assignment(request.user, pk)
    try:
        action(assignment)
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
    else:
        if message:
            messages.success(request, message)
    return _next_response(request, assignment.item.queue)


def _no_content(action: Callable[[], object]) -> HttpResponse:
    """Run a step: 204, or 409 with the reason if it is refused."""
    try:
        action()
    except DomainError as refusal:
        return HttpResponse(explain_refusal(refusal), status=409, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204)


def _next_response(request: HttpRequest, queue: ReviewQueue) -> HttpResponse:
    """Redirect to the next item of the queue, or describe it as JSON for the script."""
    if not _wants_json(request):
        return redirect("review-next", queue.pk)
    user = signed_in_user(request)
    try:
        following = next_assignment(queue, user)
    except DomainError:
        following = None
    path = reverse("review-item", args=[following.pk]) if following else reverse("review-next", args=[queue.pk])
    progress = own_progress(queue, user)
    undo_id = undoable_assignment(queue, user, progress)
    header = {"queue_id": queue.pk, "queue_name": queue.name, "own": progress, "help": True}
    return JsonResponse(
        {
            "next": path,
            "undo": reverse("review-undo", args=[undo_id]) if undo_id else "",
            "head": render_to_string("review/ratings/_header.html", header, request),
            "says": [str(message) for message in messages.get_messages(request)] if following else [],
        }
    )


def _item_response(request: HttpRequest, pk: int, *, refused: bool = False) -> HttpResponse:
    """Redirect to an own item: its reveal, or an item that was reopened. With ``refused``, such as from a second
    window, the browser keeps its copy of the entered values."""
    if not _wants_json(request):
        return redirect("review-item", pk)
    return JsonResponse(
        {"next": reverse("review-item", args=[pk]), "undo": "", "head": "", "says": [], "refused": refused}
    )


def _wants_json(request: HttpRequest) -> bool:
    """Return whether the screen's script sent the request."""
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def _posted_keys(data: QueryDict) -> dict[str, str]:
    """Selected key of each action in the form."""
    codes = {str(action): data.get(f"key:{action}", "") for action in DEFAULT_KEYS}
    return {action: code for action, code in codes.items() if code}
