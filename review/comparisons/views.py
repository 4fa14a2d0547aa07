"""Comparison page of runs, and the quality page of a question set."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_get
from evaluation.core.roles import Action
from evaluation.messages.markdown import language_of
from evaluation.models import QuestionSet, Run
from review.comparisons.answers import answer_pairs
from review.comparisons.forms import MarginForm
from review.comparisons.pages import compare_page
from review.comparisons.set_quality import set_quality
from review.comparisons.whole import with_margin
from review.evidence.answers import expose, expose_answers
from review.figure_cache.reading import compared
from review.reports.pages.run_list import LISTED

MOST_COMPARED = 10
MOST_OFFERED = 30


@signed_in_get
def run_compare(request: HttpRequest) -> HttpResponse:
    """Runs compared with the first of them. It tells how judges scored single questions, which is recorded."""
    runs = _compared(request)
    kept = compared(runs)
    if kept.value is None:
        return render(request, "review/reports/in_making.html", {"title": gettext("Compare runs")})
    form = MarginForm(request.GET)
    margin = form.cleaned_data["margin"] if form.is_valid() else None
    page = compare_page(with_margin(kept.value, margin), _others(request, runs))
    for one in runs if len(runs) > 1 else ():
        expose(request.user, one, "comparison")
    return render(request, "review/comparisons/compare.html", {"page": page, "kept": kept, "form": form})


@signed_in_get
def run_compare_answers(request: HttpRequest) -> HttpResponse:
    """The answers of two runs to one question; of one run alone there is nothing that differs."""
    runs = _compared(request)
    if len(runs) > 2:
        raise Http404
    baseline, ours = runs[0], runs[-1]
    pairs = answer_pairs(ours, baseline, request.GET.get("question", ""))
    if not pairs:
        raise Http404
    expose_answers(request.user, [one.answer_id for pair in pairs for one in (pair.ours, pair.baseline)], "comparison")
    told = [(pair, language_of("".join(stretch.text for stretch in pair.stretches))) for pair in pairs]
    shown = {"ours": ours, "baseline": baseline, "first": pairs[0].ours, "pairs": told}
    return render(request, "review/comparisons/compare_answers.html", shown)


def _compared(request: HttpRequest) -> list[Run]:
    """The runs that ``runs=1,2`` or ``runs=1&runs=2`` names, each once, all of which the person may see."""
    named = [part for value in request.GET.getlist("runs") for part in value.split(",")]
    if not named or not all(part.isascii() and part.isdigit() and len(part) <= 18 for part in named):
        raise Http404
    keys = list(dict.fromkeys(int(part) for part in named))[:MOST_COMPARED]
    return [access.fetch(Run.objects.select_related(*LISTED), request.user, Action.VIEW, pk) for pk in keys]


def _others(request: HttpRequest, runs: list[Run]) -> list[Run]:
    """What could be compared: the newest runs that answered a version of the same question set."""
    names = {run.answer_set.question_set.name for run in runs}
    rows = access.visible(Run.objects.select_related(*LISTED), request.user).filter(
        project_id=runs[0].project_id, answer_set__question_set__name__in=names
    )
    return list(rows.exclude(state__in=[Run.State.DRAFT, Run.State.CANCELLED]).order_by("-id")[:MOST_OFFERED])


MOST_SHOWN = 50


@signed_in_get
def set_quality_page(request: HttpRequest, pk: int) -> HttpResponse:
    """How good the questions of a set are. Of scores it tells those of rules alone, and what experts said
    of expected answers."""
    found = access.fetch(QuestionSet.objects.all(), request.user, Action.VIEW, pk)
    shown = {"found": found, "quality": set_quality(found), "most": MOST_SHOWN}
    return render(request, "review/comparisons/set_quality.html", shown)
