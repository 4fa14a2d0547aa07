"""Agreement page of a run."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_get
from evaluation.core.roles import Action
from evaluation.models import Run
from review.agreement.pages import agreement_page
from review.agreement.plots import over_time
from review.comparisons.trend import trends_of
from review.figure_cache.reading import agreement_at_once, agreement_figures


@signed_in_get
def run_agreement(request: HttpRequest, pk: int) -> HttpResponse:
    """Every agreement figure of a run; with intervals where they have been computed, else they are fetched later."""
    found = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    kept, waiting = agreement_at_once(found)
    if kept.value is None:
        return render(request, "review/reports/in_making.html", {"title": found})
    page = agreement_page(found, kept.value.figures, examples=kept.value.examples, waiting=waiting)
    return render(request, "review/agreement/agreement.html", {"page": page, "kept": kept})


@signed_in_get
def run_agreement_intervals(request: HttpRequest, pk: int) -> HttpResponse:
    """The figures of the page with their intervals, which takes seconds the first time."""
    found = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    kept = agreement_figures(found)
    if kept.value is None:
        raise Http404
    page = agreement_page(found, kept.value.figures, examples=kept.value.examples, waiting=False)
    return render(request, "review/agreement/_figures.html", {"page": page})


@signed_in_get
def run_agreement_over_time(request: HttpRequest, pk: int) -> HttpResponse:
    """The agreement of earlier runs over the same question set; a worker is asked for what is missing."""
    found = access.fetch(Run.objects.select_related("answer_set__question_set"), request.user, Action.VIEW, pk)
    trends = trends_of(found)
    for one in trends.left_out:
        agreement_figures(one)
    return render(request, "review/agreement/_over_time.html", over_time(trends))
