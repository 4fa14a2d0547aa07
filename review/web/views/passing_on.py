"""Putting an item down without a rating, and keeping it for longer."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext
from django.views.decorators.http import require_POST

from evaluation.core.errors import Refused, UnknownName
from evaluation.wording.messages import explain_refusal
from review.queues.access import own_assignment
from review.ratings.leases import extend
from review.ratings.leaving import escalate, flag, skip
from review.web.views.onward import onward, to_item


@login_required
@require_POST
def skip_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Pass the item on to somebody else."""
    assignment = own_assignment(request.user, pk)
    try:
        skip(assignment)
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    return onward(request, assignment.item.queue)


@login_required
@require_POST
def flag_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Say that something is wrong with the item itself."""
    assignment = own_assignment(request.user, pk)
    try:
        flag(assignment, request.POST.get("kind", ""), request.POST.get("flag_comment", ""))
        messages.success(request, gettext("Flagged. A lead will look at it."))
    except UnknownName:
        messages.error(request, gettext("Choose what is wrong with the item."))
        return to_item(request, assignment.pk)
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    return onward(request, assignment.item.queue)


@login_required
@require_POST
def escalate_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Hand the item to a lead."""
    assignment = own_assignment(request.user, pk)
    try:
        escalate(assignment, request.POST.get("escalate_comment", ""))
        messages.success(request, gettext("A lead has your question and will decide."))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    return onward(request, assignment.item.queue)


@login_required
@require_POST
def extend_item(request: HttpRequest, pk: int) -> HttpResponse:
    """Keep the item for the queue's time from now: 204, or 409 where somebody else has taken it."""
    try:
        extend(own_assignment(request.user, pk))
    except Refused as refused:
        return HttpResponse(explain_refusal(refused), status=409, content_type="text/plain; charset=utf-8")
    return HttpResponse(status=204)
