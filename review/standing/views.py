"""Page of the standing score over the releases of a system."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_get
from evaluation.core.roles import Action
from evaluation.models import Run
from review.figure_cache.selectors import standing_figures
from review.standing.pages import standing_page


@signed_in_get
def run_standing(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the standing score of each release of the run's system over its question set."""
    rows = Run.objects.select_related("answer_set__question_set", Run.NAME_RELATION)
    run = access.fetch(rows, request.user, Action.VIEW, pk)
    cached = standing_figures(run)
    if cached.value is None:
        return render(request, "review/reports/computing.html", {"title": run})
    may_review = access.may(request.user, run.project_id, Action.MANAGE_REVIEW)
    context = {"run": run, "page": standing_page(cached.value), "cached_value": cached, "leads": may_review}
    return render(request, "review/standing/standing.html", context)
