"""Comparing runs, and two answers to one question."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluation.accounts import access
from evaluation.core.roles import Action
from evaluation.models import Run
from review.comparisons.answers import answer_pairs
from review.comparisons.whole import compare
from review.evidence.exposures import expose, expose_answers
from review.web.pages.comparison import compare_answers_page, compare_page
from review.web.pages.run_list import LISTED

MOST_ON_A_PAGE = 10
OFFERED = 30


@login_required
@require_safe
def run_compare(request: HttpRequest) -> HttpResponse:
    """Runs compared with the first of them. It tells how judges scored single questions, which is recorded."""
    runs = _runs(request)
    page = compare_page(compare(runs), _others(request, runs))
    for one in runs if len(runs) > 1 else ():
        expose(request.user, one, "comparison")
    return render(request, "review/compare.html", {"page": page})


@login_required
@require_safe
def run_compare_answers(request: HttpRequest) -> HttpResponse:
    """The answers of two runs to one question; of one run alone there is nothing that differs."""
    runs = _runs(request)
    if len(runs) > 2:
        raise Http404
    baseline, ours = runs[0], runs[-1]
    pairs = answer_pairs(ours, baseline, request.GET.get("question", ""))
    if not pairs:
        raise Http404
    expose_answers(request.user, [one.answer_id for pair in pairs for one in (pair.ours, pair.baseline)], "comparison")
    return render(request, "review/compare_answers.html", {"page": compare_answers_page(ours, baseline, pairs)})


def _runs(request: HttpRequest) -> list[Run]:
    """The runs that ``runs=1,2`` or ``runs=1&runs=2`` names, each once, all of which the person may see."""
    named = [part for value in request.GET.getlist("runs") for part in value.split(",")]
    if not named or not all(part.isascii() and part.isdigit() and len(part) <= 18 for part in named):
        raise Http404
    keys = list(dict.fromkeys(int(part) for part in named))[:MOST_ON_A_PAGE]
    return [access.fetch(Run.objects.select_related(*LISTED), request.user, Action.VIEW, pk) for pk in keys]


def _others(request: HttpRequest, runs: list[Run]) -> list[Run]:
    """What could be compared: the newest runs that answered a version of the same question set."""
    names = {run.answer_set.question_set.name for run in runs}
    rows = access.visible(Run.objects.select_related(*LISTED), request.user).filter(
        project_id=runs[0].project_id, answer_set__question_set__name__in=names
    )
    return list(rows.exclude(state__in=[Run.State.DRAFT, Run.State.CANCELLED]).order_by("-id")[:OFFERED])
