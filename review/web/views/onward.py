"""Where a reviewer goes after an item: a redirect, or for the screen's own script the address and what to say.

The script has the next card already; the answer tells it which one it is, so that nothing is shown that is not held.
"""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect
from django.template.loader import render_to_string
from django.urls import reverse

from evaluation.core.errors import Refused
from review.models import ReviewQueue
from review.queues.progress import own_progress, undoable
from review.ratings.leases import next_assignment
from review.web.pages.item_head import item_head
from review.web.views.people import person


def wants_json(request: HttpRequest) -> bool:
    """Whether the screen's script asks."""
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def onward(request: HttpRequest, queue: ReviewQueue) -> HttpResponse:
    """On to the next item of the queue."""
    if not wants_json(request):
        return redirect("review-next", queue.pk)
    me = person(request)
    try:
        following = next_assignment(queue, me)
    except Refused:
        following = None
    path = reverse("review-item", args=[following.pk]) if following else reverse("review-next", args=[queue.pk])
    own = own_progress(queue, me)
    last = undoable(queue, me, own)
    head = item_head(queue, own)
    return JsonResponse(
        {
            "next": path,
            "undo": reverse("review-undo", args=[last]) if last else "",
            "head": render_to_string("review/item/_header.html", {"page": head}, request),
            "says": [str(message) for message in messages.get_messages(request)] if following else [],
        }
    )


def to_item(request: HttpRequest, pk: int, *, refused: bool = False) -> HttpResponse:
    """To an item of the person's own: to the reveal, or back to one that was opened again. Where what they sent was
    ``refused``, as of a second window, the browser goes on keeping it: it is there when the item is brought back."""
    if not wants_json(request):
        return redirect("review-item", pk)
    return JsonResponse(
        {"next": reverse("review-item", args=[pk]), "undo": "", "head": "", "says": [], "refused": refused}
    )
