"""What a lead does with a queue under way: its people, its items one by one, and the questions in doubt."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluation.core.errors import Refused
from evaluation.core.whole_numbers import whole_number
from evaluation.models import RoleGrant, User
from evaluation.runs.exports import take_export
from evaluation.wording.messages import explain_refusal
from review.evidence.exposures import expose_queue
from review.models import ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.queues.access import leads, queue_for_lead, queue_for_reading
from review.queues.directing import extend_all, invite, name_people, reassign, release_all, set_deadline
from review.queues.progress import paces, queue_progress
from review.queues.questions import doubtful_questions
from review.reports.item_export import FORMATS, export_items
from review.results.consistency import consistency
from review.web.forms.leading import MOMENT, ids_of, moment_of
from review.web.pages.queue_items import queue_items_page, queue_questions_page
from review.web.pages.queue_people import queue_people_page
from review.web.views.people import person

LISTED = 50


@login_required
@require_safe
def queue_people(request: HttpRequest, pk: int) -> HttpResponse:
    """Everybody's progress, pace and agreement."""
    return _people(request, queue_for_lead(request.user, pk))


@login_required
@require_POST
def queue_reassign(request: HttpRequest, pk: int) -> HttpResponse:
    """Give what a person has not rated yet to another."""
    queue = queue_for_lead(request.user, pk)

    def step() -> str:
        moved = reassign(queue, _named(request, "giver"), _named(request, "taker"), by=person(request))
        return ngettext("%(count)d answer changed hands.", "%(count)d answers changed hands.", moved.moved) % {
            "count": moved.moved
        }

    return _done(request, queue, step)


@login_required
@require_POST
def queue_release(request: HttpRequest, pk: int) -> HttpResponse:
    """Give back what a person has in hand."""
    queue = queue_for_lead(request.user, pk)

    def step() -> str:
        count = release_all(queue, _named(request, "giver"), by=person(request))
        return ngettext("%(count)d answer given back.", "%(count)d answers given back.", count) % {"count": count}

    return _done(request, queue, step)


@login_required
@require_POST
def queue_extend(request: HttpRequest, pk: int) -> HttpResponse:
    """Prolong what a person has in hand."""
    queue = queue_for_lead(request.user, pk)

    def step() -> str:
        count = extend_all(queue, _named(request, "giver"), by=person(request))
        return ngettext("%(count)d reservation prolonged.", "%(count)d reservations prolonged.", count) % {
            "count": count
        }

    return _done(request, queue, step)


@login_required
@require_POST
def queue_deadline(request: HttpRequest, pk: int) -> HttpResponse:
    """Move the deadline, or take it away."""
    queue = queue_for_lead(request.user, pk)

    def step() -> str:
        set_deadline(queue, moment_of(request.POST.get("deadline", "")), by=person(request))
        return gettext("The deadline was changed.")

    return _done(request, queue, step)


@login_required
@require_POST
def queue_invite(request: HttpRequest, pk: int) -> HttpResponse:
    """Let more people rate."""
    queue = queue_for_lead(request.user, pk)

    def step() -> str:
        chosen = list(_newcomers(queue).filter(pk__in=ids_of(request.POST, "people")))
        invite(queue, chosen, by=person(request))
        return gettext("They see the queue on their start page from now on.")

    return _done(request, queue, step)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def queue_items(request: HttpRequest, pk: int) -> HttpResponse:
    """Who has which answer; people can be named for some."""
    queue = queue_for_lead(request.user, pk)
    error = ""
    if request.method == "POST":
        people = [one for one in _members(queue) if one.pk in ids_of(request.POST, "people")]
        try:
            count = name_people(queue, ids_of(request.POST, "items"), people, by=person(request))
        except Refused as refused:
            error = explain_refusal(refused)
        else:
            said = ngettext("%(count)d answer is kept for them.", "%(count)d answers are kept for them.", count)
            messages.success(request, said % {"count": count})
            return redirect(request.get_full_path())
    return _items(request, queue, error)


@login_required
@require_safe
def queue_questions(request: HttpRequest, pk: int) -> HttpResponse:
    """The questions that may be at fault themselves."""
    queue = queue_for_lead(request.user, pk)
    page = queue_questions_page(queue, doubtful_questions(queue))
    return render(request, "review/queue/questions.html", {"page": page})


@login_required
@require_safe
def queue_export(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """The items as a file: for leads all that was said, for members the own ratings of own items."""
    queue, me = queue_for_reading(request.user, pk), person(request)
    lead = leads(me, queue)
    if request.GET.get("format", "csv") not in FORMATS:
        raise Http404
    take_export(me)
    made = export_items(queue, request.GET.get("format", "csv"), None if lead else me)
    if lead:
        expose_queue(me, queue)
    response = StreamingHttpResponse(made.chunks, content_type=made.media_type)
    response["Content-Disposition"] = f'attachment; filename="{made.file_name}"'
    return response


def _people(request: HttpRequest, queue: ReviewQueue, error: str = "") -> HttpResponse:
    deadline = timezone.localtime(queue.deadline).strftime(MOMENT) if queue.deadline else ""
    page = queue_people_page(
        queue,
        queue_progress(queue),
        paces(queue),
        consistency(queue),
        _newcomers(queue),
        deadline_field=deadline,
        error=error,
    )
    return render(request, "review/queue/people.html", {"page": page}, status=409 if error else 200)


def _items(request: HttpRequest, queue: ReviewQueue, error: str) -> HttpResponse:
    waiting = request.GET.get("waiting", "") == "1"
    rows = queue.items.filter(occasion=FIRST_OCCASION).select_related("answer__question").order_by("shuffle_key")
    if waiting:
        rows = rows.filter(reserved=True, reservations__isnull=True)
    asked = request.GET.get("page", "1")
    number = whole_number(asked, 6) or 1
    start = (number - 1) * LISTED
    found = list(rows.prefetch_related("reservations__reviewer", "assignments__reviewer")[start : start + LISTED + 1])
    kept = "&waiting=1" if waiting else ""
    page = queue_items_page(
        queue,
        found[:LISTED],
        _members(queue),
        waiting=waiting,
        back=f"?page={number - 1}{kept}" if number > 1 else "",
        on=f"?page={number + 1}{kept}" if len(found) > LISTED else "",
        error=error,
    )
    return render(request, "review/queue/items.html", {"page": page}, status=409 if error else 200)


def _done(request: HttpRequest, queue: ReviewQueue, step: Callable[[], str]) -> HttpResponse:
    """Do a step and go back to the people, or say on their page why it is refused."""
    try:
        said = step()
    except Refused as refused:
        return _people(request, queue, explain_refusal(refused))
    messages.success(request, said)
    return redirect(reverse("queue-people", args=[queue.pk]))


def _members(queue: ReviewQueue) -> list[User]:
    return list(User.objects.filter(queue_memberships__queue=queue).order_by("username"))


def _newcomers(queue: ReviewQueue) -> QuerySet[User]:
    granted = RoleGrant.objects.filter(project_id=queue.project_id, user__is_active=True).values("user")
    return User.objects.filter(pk__in=granted).exclude(queue_memberships__queue=queue).order_by("username")


def _named(request: HttpRequest, field: str) -> User:
    """The person a form names.

    :raises Refused: ``nobody_named``.
    """
    found = User.objects.filter(pk__in=ids_of(request.POST, field)).first()
    if found is None:
        raise Refused("nobody_named")
    return found
