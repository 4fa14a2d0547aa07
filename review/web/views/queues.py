"""The list of queues, the page of one, and closing and opening it."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from evaluation.accounts import access
from evaluation.core.roles import Action
from evaluation.models import Run, User
from review.decisions.cases import open_cases
from review.models import QueueMember, ReviewQueue
from review.queues.access import cases_for_lead, leads, queue_for_lead, queue_for_reading, queues_of
from review.queues.making import close, reopen
from review.queues.progress import OwnProgress, own_progress, own_progresses, queue_progress, ratings_given
from review.ratings.submitting import metrics_of
from review.web.pages.adjudication import case_rows
from review.web.pages.queues import LeadView, QueueListPage, lead_view, queue_page, queue_row
from review.web.pages.strategies import strategy_title
from review.web.views.people import person

MOST_LISTED = 50


@login_required
@require_safe
def queue_list(request: HttpRequest) -> HttpResponse:
    """The queues I lead or am a member of, newest first."""
    me = person(request)
    led = set(access.projects_with(me, Action.MANAGE_REVIEW).values_list("pk", flat=True))
    queues = list(queues_of(me)[:MOST_LISTED])
    members = set(QueueMember.objects.filter(reviewer=me, queue__in=queues).values_list("queue_id", flat=True))
    own = own_progresses([queue for queue in queues if queue.pk in members], me)
    given = ratings_given([queue for queue in queues if queue.project_id in led])
    rows = [queue_row(queue, own.get(queue.pk), given.get(queue.pk)) for queue in queues]
    return render(request, "review/queue_list.html", {"page": QueueListPage(tuple(rows), bool(led))})


@login_required
@require_safe
def queue(request: HttpRequest, pk: int) -> HttpResponse:
    """A queue: everybody's progress for its leads, the own one for its members."""
    found = queue_for_reading(request.user, pk)
    me = person(request)
    lead = _lead(found, me) if leads(me, found) else None
    page = queue_page(found, metrics_of(found), _own(found, me), lead)
    return render(request, "review/queue.html", {"page": page})


@login_required
@require_POST
def queue_close(request: HttpRequest, pk: int) -> HttpResponse:
    """Serve nothing more from the queue."""
    return _set(request, pk, close)


@login_required
@require_POST
def queue_reopen(request: HttpRequest, pk: int) -> HttpResponse:
    """Serve a closed queue again."""
    return _set(request, pk, reopen)


def _set(request: HttpRequest, pk: int, step: Callable[..., None]) -> HttpResponse:
    found = queue_for_lead(request.user, pk)
    step(found, by=person(request))
    return redirect("queue", found.pk)


def _own(found: ReviewQueue, me: User) -> OwnProgress | None:
    member = QueueMember.objects.filter(queue=found, reviewer=me).exists()
    return own_progress(found, me) if member else None


def _lead(found: ReviewQueue, me: User) -> LeadView:
    draws = list(found.draws.select_related(f"run__{Run.NAMED_BY}").order_by("pk"))
    runs = dict.fromkeys((one.run_id, str(one.run)) for one in draws)
    return lead_view(
        queue_progress(found),
        case_rows(open_cases(cases_for_lead(me).filter(queue=found)), me),
        list(runs),
        [
            gettext("%(strategy)s, seed %(seed)s") % {"strategy": strategy_title(one.strategy), "seed": one.seed}
            for one in draws
        ],
    )
