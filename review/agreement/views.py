"""Agreement page of a run."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_get
from evaluation.core.roles import Action
from evaluation.models import Run
from review.agreement.pages import agreement_page
from review.agreement.plots import trend_context
from review.comparisons.trend import load_trends
from review.figure_cache.selectors import agreement_figures, agreement_without_waiting


@signed_in_get
def run_agreement(request: HttpRequest, pk: int) -> HttpResponse:
    """Show every agreement figure of a run. Intervals that are not computed yet are fetched later."""
    run = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    cached, waiting = agreement_without_waiting(run)
    if cached.value is None:
        return render(request, "review/reports/computing.html", {"title": run})
    page = agreement_page(run, cached.value.figures, examples=cached.value.examples, waiting=waiting)
    return render(request, "review/agreement/agreement.html", {"page": page, "cached_value": cached})


@signed_in_get
def run_agreement_intervals(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the figures with their intervals, which takes seconds the first time."""
    run = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    cached = agreement_figures(run)
    if cached.value is None:
        raise Http404
    page = agreement_page(run, cached.value.figures, examples=cached.value.examples, waiting=False)
    return render(request, "review/agreement/_figures.html", {"page": page})


@signed_in_get
def run_agreement_over_time(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the agreement of earlier runs over the same question set; request the missing figures."""
    run = access.fetch(Run.objects.select_related("answer_set__question_set"), request.user, Action.VIEW, pk)
    trends = load_trends(run)
    for earlier_run in trends.skipped_runs:
        agreement_figures(earlier_run)
    return render(request, "review/agreement/_over_time.html", trend_context(trends))
