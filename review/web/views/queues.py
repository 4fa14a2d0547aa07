"""Queues: the list, the page of one, and what a lead does with one under way: its people, its
items one by one, and the questions in doubt."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib import messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext, ngettext

from evaluation.accounts import access
from evaluation.accounts.access import person, signed_in_form, signed_in_get, signed_in_post
from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.models import RoleGrant, Run, User
from evaluation.runs.exports import download, take_export
from evaluation.wording.messages import explain_refusal
from review.decisions.cases import open_cases
from review.evidence.answers import expose_queue
from review.models import QueueMember, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.queues.access import cases_for_lead, leads, queue_for_lead, queue_for_reading, queues_of
from review.queues.directing import extend_all, invite, name_people, reassign, release_all, set_deadline
from review.queues.progress import (
    doubtful_questions,
    own_progress,
    own_progresses,
    paces,
    queue_progress,
    ratings_given,
)
from review.ratings.submitting import metrics_of
from review.reports.item_export import ITEM_EXPORTS, export_items
from review.reports.provenance_facts import strategy_title
from review.results.variation import consistency
from review.web.forms.queue import ids_of, moment_of
from review.web.pages.adjudication import case_rows

MOST_LISTED = 50
ITEMS_ON_A_PAGE = 50


@signed_in_get
def queue_list(request: HttpRequest) -> HttpResponse:
    """The queues I lead or am a member of, newest first."""
    me = person(request)
    led = set(access.projects_with(me, Action.MANAGE_REVIEW).values_list("pk", flat=True))
    queues = list(queues_of(me)[:MOST_LISTED])
    members = set(QueueMember.objects.filter(reviewer=me, queue__in=queues).values_list("queue_id", flat=True))
    own = own_progresses([queue for queue in queues if queue.pk in members], me)
    given = ratings_given([queue for queue in queues if queue.project_id in led])
    rows = [
        (queue, own.get(queue.pk), ratings := given.get(queue.pk), _percent(*ratings or (0, 0))) for queue in queues
    ]
    return render(request, "review/queue_list.html", {"rows": rows, "leads": bool(led)})


def _percent(given: int, needed: int) -> int:
    """Ratings given of those needed, 0 to 100."""
    return min(100, round(100 * given / needed)) if needed else 0


@signed_in_get
def queue(request: HttpRequest, pk: int) -> HttpResponse:
    """A queue: everybody's progress for its leads, the own one for its members."""
    found, me = queue_for_reading(request.user, pk), person(request)
    shown = {
        "queue": found,
        "metrics": metrics_of(found),
        "own": own_progress(found, me) if QueueMember.objects.filter(queue=found, reviewer=me).exists() else None,
        "lead": _lead(found, me) if leads(me, found) else None,
    }
    return render(request, "review/queue.html", shown)


@signed_in_post
def queue_set(request: HttpRequest, pk: int, step: Callable[..., None]) -> HttpResponse:
    """Close a queue, so that it serves nothing more, or open it again."""
    found = queue_for_lead(request.user, pk)
    step(found, by=person(request))
    return redirect("queue", found.pk)


@signed_in_get
def queue_people(request: HttpRequest, pk: int) -> HttpResponse:
    """Everybody's progress, pace and agreement."""
    return _people(request, queue_for_lead(request.user, pk))


def _step(step: Callable[[HttpRequest, ReviewQueue], str]) -> Callable[[HttpRequest, int], HttpResponse]:
    """Do a step with a queue and go back to its people, or say on their page why it is refused."""

    @signed_in_post
    @wraps(step)
    def done(request: HttpRequest, pk: int) -> HttpResponse:
        queue = queue_for_lead(request.user, pk)
        try:
            said = step(request, queue)
        except Refused as refused:
            return _people(request, queue, explain_refusal(refused))
        messages.success(request, said)
        return redirect("queue-people", queue.pk)

    return done


@_step
def queue_reassign(request: HttpRequest, queue: ReviewQueue) -> str:
    """Give what a person has not rated yet to another."""
    count = reassign(queue, _named(request, "giver"), _named(request, "taker"), by=person(request)).moved
    return ngettext("%(count)d answer changed hands.", "%(count)d answers changed hands.", count) % {"count": count}


@_step
def queue_release(request: HttpRequest, queue: ReviewQueue) -> str:
    """Give back what a person has in hand."""
    count = release_all(queue, _named(request, "giver"), by=person(request))
    return ngettext("%(count)d answer given back.", "%(count)d answers given back.", count) % {"count": count}


@_step
def queue_extend(request: HttpRequest, queue: ReviewQueue) -> str:
    """Prolong what a person has in hand."""
    count = extend_all(queue, _named(request, "giver"), by=person(request))
    said = ngettext("%(count)d reservation prolonged.", "%(count)d reservations prolonged.", count)
    return said % {"count": count}


@_step
def queue_deadline(request: HttpRequest, queue: ReviewQueue) -> str:
    """Move the deadline, or take it away."""
    set_deadline(queue, moment_of(request.POST.get("deadline", "")), by=person(request))
    return gettext("The deadline was changed.")


@_step
def queue_invite(request: HttpRequest, queue: ReviewQueue) -> str:
    """Let more people rate."""
    chosen = list(_newcomers(queue).filter(pk__in=ids_of(request.POST, "people")))
    invite(queue, chosen, by=person(request))
    return gettext("They see the queue on their start page from now on.")


@signed_in_form
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


@signed_in_get
def queue_questions(request: HttpRequest, pk: int) -> HttpResponse:
    """The questions that may be at fault themselves."""
    queue = queue_for_lead(request.user, pk)
    shown = {"queue": queue, "rows": doubtful_questions(queue)}
    return render(request, "review/queue/questions.html", shown)


@signed_in_get
def queue_export(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """The items as a file: for leads all that was said, for members the own ratings of own items."""
    queue, me = queue_for_reading(request.user, pk), person(request)
    lead = leads(me, queue)
    if request.GET.get("format", "csv") not in ITEM_EXPORTS.names:
        raise Http404
    take_export(me)
    made = export_items(queue, request.GET.get("format", "csv"), None if lead else me)
    if lead:
        expose_queue(me, queue)
    return download(made)


def _lead(found: ReviewQueue, me: User) -> dict[str, Any]:
    """What only leads see of a queue. ``disputes`` wait for a decision; nothing in them tells who said what. ``runs``
    are key and name of what the answers were drawn from, ``draws`` say how."""
    draws = list(found.draws.select_related(f"run__{Run.NAMED_BY}").order_by("pk"))
    return {
        "progress": queue_progress(found),
        "disputes": case_rows(open_cases(cases_for_lead(me).filter(queue=found)), me),
        "runs": list(dict.fromkeys((one.run_id, str(one.run)) for one in draws)),
        "draws": list(
            dict.fromkeys(
                gettext("%(strategy)s, seed %(seed)s") % {"strategy": strategy_title(one.strategy), "seed": one.seed}
                for one in draws
            )
        ),
    }


def _people(request: HttpRequest, queue: ReviewQueue, error: str = "") -> HttpResponse:
    """The people of a queue in the order of their names and never by a figure: how far and how fast each is (no pace
    for who has rated nothing), and by name how far they agree."""
    members, pace = queue_progress(queue).reviewers, paces(queue)
    names = {one.reviewer.pk: one.reviewer.known_as for one in members}
    shown = {
        "queue": queue,
        "people": [(one, pace.get(one.reviewer.pk)) for one in members],
        "agreement": [(names.get(one.reviewer_id, "–"), one) for one in consistency(queue)],
        "newcomers": list(_newcomers(queue)),
        "error": error,
    }
    return render(request, "review/queue/people.html", shown, status=409 if error else 200)


def _items(request: HttpRequest, queue: ReviewQueue, error: str) -> HttpResponse:
    waiting = request.GET.get("waiting", "") == "1"
    rows = queue.items.filter(occasion=FIRST_OCCASION).select_related("answer__question").order_by("shuffle_key")
    if waiting:
        rows = rows.filter(reserved=True, reservations__isnull=True)
    number = whole_number(request.GET.get("page", "1"), 6) or 1
    start = (number - 1) * ITEMS_ON_A_PAGE
    keys = list(rows.values_list("pk", flat=True)[start : start + ITEMS_ON_A_PAGE + 1])  # texts are not sorted
    people = rows.prefetch_related("reservations__reviewer", "assignments__reviewer")
    found = list(people.filter(pk__in=keys))
    kept = "&waiting=1" if waiting else ""
    shown = {
        "queue": queue,
        "rows": found[:ITEMS_ON_A_PAGE],
        "people": _members(queue),
        "waiting": waiting,  # only those that are for nobody yet
        "back": f"?page={number - 1}{kept}" if number > 1 else "",
        "on": f"?page={number + 1}{kept}" if len(found) > ITEMS_ON_A_PAGE else "",
        "error": error,
    }
    return render(request, "review/queue/items.html", shown, status=409 if error else 200)


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
