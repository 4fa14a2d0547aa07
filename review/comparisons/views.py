"""Comparison page of runs, and the quality page of a question set."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_get
from evaluation.core.canonical import parse_int
from evaluation.core.roles import Action
from evaluation.messages.markdown import language_of
from evaluation.models import QuestionSet, Run
from review.comparisons.answers import answer_pairs
from review.comparisons.comparison import with_margin
from review.comparisons.forms import MarginForm
from review.comparisons.pages import Show, answers_card, compare_page
from review.comparisons.set_quality import set_quality
from review.evidence.answers import record_answer_exposure, record_exposure
from review.figure_cache.selectors import cached_comparison
from review.releases.selectors import suggested_size
from review.releases.views import pair_queue_form

MAX_COMPARED = 10
MAX_CHOICES = 30


@signed_in_get
def compare_runs(request: HttpRequest) -> HttpResponse:
    """Compare runs with the first of them. The page reveals judge scores of questions, so exposure is recorded."""
    runs = _requested_runs(request)
    cached = cached_comparison(runs)
    if cached.value is None:
        return render(request, "review/reports/computing.html", {"title": gettext("Compare runs")})
    form = MarginForm(request.GET)
    margin = form.cleaned_data["margin"] if form.is_valid() else None
    comparison = with_margin(cached.value, margin)
    page = compare_page(comparison, _comparable_runs(request, runs))
    answers = pair_form = None
    if len(runs) == 2:
        release = comparison.differences[0].release
        if release and release.plans and access.may(request.user, runs[1].project_id, Action.MANAGE_REVIEW):
            pair_form = pair_queue_form(runs[1].project_id, size=suggested_size(release))
        show = Show(shown) if (shown := request.GET.get("show")) in Show.values else Show.ALL
        page_number = parse_int(request.GET.get("page", "1"), 6) or 1
        answers = answers_card(comparison.differences[0], runs[1], runs[0], show, page_number)
    for run in runs if len(runs) > 1 else ():
        record_exposure(request.user, run, "comparison")
    kept_query = request.GET.copy()
    for name in ("show", "page"):
        kept_query.pop(name, None)
    context = {
        "page": page,
        "cached_value": cached,
        "form": form,
        "answers": answers,
        "query": kept_query.urlencode(),
        "pair_form": pair_form,
    }
    return render(request, "review/comparisons/compare.html", context)


@signed_in_get
def compare_run_answers(request: HttpRequest) -> HttpResponse:
    """Show the answers of two runs to one question."""
    runs = _requested_runs(request)
    if len(runs) > 2:
        raise Http404
    baseline, current = runs[0], runs[-1]
    question_id = request.GET.get("question", "")
    if not (pairs := answer_pairs(current, baseline, [question_id]).get(question_id)):
        raise Http404
    record_answer_exposure(
        request.user, [answer.answer_id for pair in pairs for answer in (pair.current, pair.baseline)], "comparison"
    )
    pairs_with_language = [(pair, language_of("".join(stretch.text for stretch in pair.stretches))) for pair in pairs]
    context = {"current": current, "baseline": baseline, "first": pairs[0].current, "pairs": pairs_with_language}
    return render(request, "review/comparisons/compare_answers.html", context)


def _requested_runs(request: HttpRequest) -> list[Run]:
    """Return the runs named by ``runs=1,2`` or ``runs=1&runs=2``, without duplicates, if the user may see all."""
    run_ids = [part for value in request.GET.getlist("runs") for part in value.split(",")]
    if not run_ids or not all(part.isascii() and part.isdigit() and len(part) <= 18 for part in run_ids):
        raise Http404
    keys = list(dict.fromkeys(int(part) for part in run_ids))[:MAX_COMPARED]
    return [access.fetch(Run.objects.select_related(*Run.LIST_RELATIONS), request.user, Action.VIEW, pk) for pk in keys]


def _comparable_runs(request: HttpRequest, runs: list[Run]) -> list[Run]:
    """Return the newest runs over any version of the same question set."""
    names = {run.answer_set.question_set.name for run in runs}
    rows = access.visible(Run.objects.select_related(*Run.LIST_RELATIONS), request.user).filter(
        project_id=runs[0].project_id, answer_set__question_set__name__in=names
    )
    return list(rows.exclude(state__in=[Run.State.DRAFT, Run.State.CANCELLED]).order_by("-id")[:MAX_CHOICES])


MAX_ROWS = 50


@signed_in_get
def set_quality_page(request: HttpRequest, pk: int) -> HttpResponse:
    """Show the quality of a set's questions. It reveals rule scores and expert opinion on references only."""
    question_set = access.fetch(QuestionSet.objects.all(), request.user, Action.VIEW, pk)
    context = {"question_set": question_set, "quality": set_quality(question_set), "most": MAX_ROWS}
    return render(request, "review/comparisons/set_quality.html", context)
