"""The agreement of a run in detail: at once without intervals, which are fetched afterwards, as is the past."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluation.accounts import access
from evaluation.core.roles import Action
from evaluation.models import Run
from review.comparisons.trend import trends_of
from review.evidence.experts import has_examples
from review.results.run_agreement import By, agreement_of
from review.results.run_agreement_cache import agreement_if_kept, kept_agreement
from review.web.pages.agreement import agreement_page
from review.web.pages.agreement_plots import trend_page


@login_required
@require_safe
def run_agreement(request: HttpRequest, pk: int) -> HttpResponse:
    """Every agreement figure of a run; with intervals where they have been computed, else they are fetched later."""
    found = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    kept = agreement_if_kept(found, by=By.CATEGORY)
    figures = agreement_of(found, by=By.CATEGORY).to_dict() if kept is None else kept
    page = agreement_page(found, figures, examples=has_examples(found.answer_set_id), waiting=kept is None)
    return render(request, "review/agreement.html", {"page": page})


@login_required
@require_safe
def run_agreement_intervals(request: HttpRequest, pk: int) -> HttpResponse:
    """The figures of the page with their intervals, which takes seconds the first time."""
    found = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    figures = kept_agreement(found, by=By.CATEGORY)
    page = agreement_page(found, figures, examples=has_examples(found.answer_set_id), waiting=False)
    return render(request, "review/agreement/_figures.html", {"page": page})


@login_required
@require_safe
def run_agreement_over_time(request: HttpRequest, pk: int) -> HttpResponse:
    """The agreement of earlier runs over the same question set."""
    found = access.fetch(Run.objects.select_related("answer_set__question_set"), request.user, Action.VIEW, pk)
    return render(request, "review/agreement/_over_time.html", {"page": trend_page(trends_of(found))})
