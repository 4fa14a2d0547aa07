"""The start page."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluation.accounts import access
from evaluation.accounts.site_roles import roles_anywhere
from evaluation.core.roles import Action, allowed
from evaluation.models import Project, Run
from review.comparisons.attention import attention
from review.comparisons.summaries import headlines
from review.web.pages.home import HomePage
from review.web.pages.run_list import LISTED, run_rows
from review.web.views.people import person

NEWEST = 6


@login_required
@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """What needs me now, then the newest runs of my projects."""
    me = person(request)
    roles = roles_anywhere(me)
    runs = None
    if allowed(roles, Action.VIEW):
        rows = access.visible(Run.objects.select_related(*LISTED), me).order_by("-pk")[:NEWEST]
        runs = run_rows(list(rows), headlines(list(rows)))
    fresh = me.is_superuser and not (runs and runs.rows) and not Project.objects.exists()
    evaluates = allowed(roles, Action.EVALUATE)
    page = HomePage(attention(me), runs, member=bool(roles), evaluates=evaluates, fresh=fresh)
    return render(request, "review/home.html", {"page": page})
