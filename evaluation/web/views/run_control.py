"""The buttons of a run: start, pause, resume, cancel, retry."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_POST

from evaluation.accounts import access
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.models import Run, User
from evaluation.wording.messages import explain_refusal
from evaluation.work import lifecycle

Step = Callable[[Run, User | None], bool]


@login_required
@require_POST
def start(request: HttpRequest, pk: int) -> HttpResponse:
    """Start a draft run; started twice it is started once."""
    return _step(request, pk, lifecycle.start)


@login_required
@require_POST
def pause(request: HttpRequest, pk: int) -> HttpResponse:
    """Stop claiming work; calls in flight end and are kept."""
    return _step(request, pk, lifecycle.pause)


@login_required
@require_POST
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Go on with a paused run."""
    return _step(request, pk, lifecycle.resume)


@login_required
@require_POST
def cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """End a run for good."""
    return _step(request, pk, lifecycle.cancel)


@login_required
@require_POST
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Put what failed back to work."""
    run = access.fetch(Run.objects.all(), request.user, Action.EVALUATE, pk)
    try:
        count = lifecycle.retry_failed(run, _user(request))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    else:
        text = ngettext("%(count)d failed step is tried again.", "%(count)d failed steps are tried again.", count)
        messages.success(request, text % {"count": count})
    return redirect("run", run.pk)


def _step(request: HttpRequest, pk: int, step: Step) -> HttpResponse:
    run = access.fetch(Run.objects.all(), request.user, Action.EVALUATE, pk)
    try:
        if not step(run, _user(request)):
            messages.warning(request, gettext("The run was in another state already; nothing was changed."))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    return redirect("run", run.pk)


def _user(request: HttpRequest) -> User | None:
    return request.user if isinstance(request.user, User) else None
