"""The start page, the list of runs, the page of a run, its report as a file and its progress; its agreement in detail,
at once without intervals, which are fetched afterwards, as is the past; comparisons of runs; and the judges."""

from __future__ import annotations

import json
from dataclasses import replace

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import gettext

from evaluation.accounts import access
from evaluation.accounts.access import person, roles_anywhere, signed_in_get, signed_in_post
from evaluation.core.canonical import whole_number
from evaluation.core.errors import Later, Refused
from evaluation.core.roles import Action, allowed
from evaluation.criteria.services import active_in
from evaluation.formats.export import ExportFile
from evaluation.formats.records import OWN, forms
from evaluation.judging.probing import Probed
from evaluation.messages.markdown import language_of
from evaluation.messages.sentences import explain_refusal
from evaluation.models import JudgeVersion, Project, Run
from evaluation.runs.exports import download, take_export, uncounted_if_later
from evaluation.runs.progress import calls_of, progress
from evaluation.scoring.aside import asked_once
from review.comparisons.answers import answer_pairs
from review.comparisons.summaries import attention
from review.comparisons.trend import judge_records, trends_of
from review.comparisons.whole import with_margin
from review.decisions.assumptions import set_accepted
from review.evidence.answers import expose, expose_answers
from review.evidence.scorers import titles_of
from review.kept.keeping import LEAST_WAIT
from review.kept.reading import (
    agreement_at_once,
    agreement_figures,
    compared,
    headlines_of,
    listed_lines,
    report_file,
    run_figures,
)
from review.plans.ahead import plan_json
from review.queues.access import queues_led_by
from review.queues.progress import under_way
from review.reports.exporting import BRIEF, PICTURED, REPORT_EXPORTS, export_kept
from review.reports.records import export_records
from review.reports.retrieval import corrected_retrieval, titled
from review.results.retrieval import retrieval_by_depth
from review.web.forms.comparison import MarginForm
from review.web.pages.agreement import agreement_page, agreement_pictures
from review.web.pages.agreement_plots import over_time
from review.web.pages.comparison import compare_page
from review.web.pages.judge_prompts import as_markdown, judge_prompts
from review.web.pages.judges import attacks_of, criterion_line, judge_card
from review.web.pages.retrieval import retrieval_page
from review.web.pages.run import progress_page, run_actions, run_page
from review.web.pages.run_list import LISTED, RunFilter, rules_beside, run_rows, without_rules_beside

NEWEST = 6


@signed_in_get
def home(request: HttpRequest) -> HttpResponse:
    """What needs me now, then the newest runs of my projects; a rules-only one folds into the judged one beside it."""
    me = person(request)
    roles = roles_anywhere(me)
    runs = None
    if allowed(roles, Action.VIEW):
        seen = access.visible(Run.objects.select_related(*LISTED), me)
        rows = list(without_rules_beside(seen).order_by("-pk")[:NEWEST])
        runs = run_rows(rows, headlines_of(rows), rules_beside(seen, rows))
    fresh = me.is_superuser and not (runs and runs.rows) and not Project.objects.exists()
    needs = attention(me)
    shown = {
        "needs": needs,
        "busy": bool(needs.queues or needs.others or needs.disputed or needs.drafts or needs.incomplete),
        "reviews": under_way(queues_led_by(me)) if allowed(roles, Action.MANAGE_REVIEW) else [],
        "runs": runs,  # none for people who see no runs
        "member": bool(roles),
        "evaluates": allowed(roles, Action.EVALUATE),  # whether the commands concern the person
        "fresh": fresh,  # there is no project to bring anything into
    }
    return render(request, "review/home.html", shown)


MOST_COMPARED = 10
MOST_OFFERED = 30


@signed_in_get
def run_list(request: HttpRequest) -> HttpResponse:
    """The runs of the person's projects, filtered."""
    visible = access.visible(Run.objects.select_related(*LISTED), request.user)
    asked = RunFilter(request.GET, visible)
    shown = {"runs": run_rows(asked.rows, headlines_of(asked.rows)), "asked": asked}
    return render(request, "review/run_list.html", shown)


@signed_in_get
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """The page of a run. The lists of answers on it tell what the judge said, which is recorded."""
    found = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    kept = run_figures(found)
    now = progress(found)
    live = None if found.state in Run.ENDED else progress_page(found, now, calls_of(found))
    if kept.value is None:
        return render(request, "review/in_making.html", {"title": found, "progress": live})
    actions = run_actions(found.state, access.roles_in(request.user, found.project_id), failed_units=bool(now.failed))
    page = run_page(kept.value.report, actions, live, kept.value.plan)
    expose_answers(request.user, page.answers_shown, "run page")
    return render(request, "review/run.html", {"page": page, "kept": kept})


@signed_in_post
def run_assume(request: HttpRequest, pk: int) -> HttpResponse:
    """Accept for the parts that nobody rated that the judge is off as where it was rated, or take that back."""
    found = access.fetch(Run.objects.all(), request.user, Action.OVERRIDE, pk)
    if (accepted := request.POST.get("accepted")) not in {"0", "1"}:
        return HttpResponseBadRequest()
    set_accepted(found, accepted=accepted == "1", by=person(request))
    return redirect("run", pk=found.pk)


@signed_in_get
def run_retrieval(request: HttpRequest, pk: int) -> HttpResponse:
    """What a run retrieved, by depth. It tells no value of a judge."""
    rows = Run.objects.select_related("answer_set__question_set", "answer_set__system_version__system")
    found = access.fetch(rows, request.user, Action.VIEW, pk)
    by = "hops" if request.GET.get("by") == "hops" else "category"
    corrected = corrected_retrieval(found)
    shown = {
        "page": retrieval_page(found, retrieval_by_depth(found), by),
        "corrected": corrected,
        "rows": titled(corrected) if corrected else (),
        "leads": corrected is not None and access.may(request.user, found.project_id, Action.MANAGE_REVIEW),
    }
    return render(request, "review/run/retrieval.html", shown)


@signed_in_get
def run_report(request: HttpRequest, pk: int) -> HttpResponseBase:
    """The report as a file. It tells the judge's values, which is recorded."""
    found = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    if (format_name := request.GET.get("format", "html")) not in REPORT_EXPORTS.names:
        raise Http404
    taken = take_export(person(request))
    try:
        with uncounted_if_later(taken):
            made = _brief_report(found, format_name) if format_name in BRIEF else report_file(found, format_name)
    except Later:
        return render(request, "review/in_making.html", {"title": found, "file": True})
    expose(request.user, found, "report")
    return download(made)


def _brief_report(found: Run, format_name: str) -> ExportFile:
    """The report in a format that is made of what is kept.

    :raises Later: while that is being made.
    """
    figures, drawn = run_figures(found), format_name in PICTURED
    agreement = agreement_figures(found).value if drawn else None
    kept = figures.value
    if kept is None or (drawn and agreement is None):
        raise Later("figures_in_making", LEAST_WAIT)
    lines, pictures = (listed_lines(found), agreement_pictures(found, agreement.figures)) if agreement else ((), "")
    made = export_kept(found, format_name, kept.report, lines, plan=plan_json(kept.plan), pictures=pictures)
    return replace(made, made_at=figures.made_at)


@signed_in_get
def run_records(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Questions, answers, scores and ratings in the form of another tool. It tells what judges and people said, which
    is recorded."""
    found = access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, pk)
    if (form := request.GET.get("form", OWN)) not in forms():
        raise Http404
    take_export(person(request))
    expose(request.user, found, "records")
    return download(export_records(found, form))


@signed_in_get
def run_progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The progress fragment; when the run has ended the whole page is loaded again."""
    found = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    page = progress_page(found, progress(found), calls_of(found))
    response = render(request, "review/_progress.html", {"progress": page})
    if not page.live:
        response.headers["HX-Refresh"] = "true"
    return response


@signed_in_get
def run_agreement(request: HttpRequest, pk: int) -> HttpResponse:
    """Every agreement figure of a run; with intervals where they have been computed, else they are fetched later."""
    found = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    kept, waiting = agreement_at_once(found)
    if kept.value is None:
        return render(request, "review/in_making.html", {"title": found})
    page = agreement_page(found, kept.value.figures, examples=kept.value.examples, waiting=waiting)
    return render(request, "review/agreement.html", {"page": page, "kept": kept})


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


@signed_in_get
def run_compare(request: HttpRequest) -> HttpResponse:
    """Runs compared with the first of them. It tells how judges scored single questions, which is recorded."""
    runs = _compared(request)
    kept = compared(runs)
    if kept.value is None:
        return render(request, "review/in_making.html", {"title": gettext("Compare runs")})
    form = MarginForm(request.GET)
    margin = form.cleaned_data["margin"] if form.is_valid() else None
    page = compare_page(with_margin(kept.value, margin), _others(request, runs))
    for one in runs if len(runs) > 1 else ():
        expose(request.user, one, "comparison")
    return render(request, "review/compare.html", {"page": page, "kept": kept, "form": form})


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
    return render(request, "review/compare_answers.html", shown)


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


PER_PAGE = 10
OF_PROJECT = "project_id"


@signed_in_get
def judge_list(request: HttpRequest) -> HttpResponse:
    """Every judge version, the newest first, with the criteria in force."""
    projects = list(access.projects_with(request.user, Action.EVALUATE).values_list("pk", flat=True))
    if not projects:
        raise PermissionDenied
    rows = JudgeVersion.objects.filter(project__in=projects).select_related("endpoint").order_by("-pk")
    at = _page(request)
    found = list(rows[at * PER_PAGE : (at + 1) * PER_PAGE + 1])
    newer = f"?page={at - 1}" if at else ""
    older = f"?page={at + 1}" if len(found) > PER_PAGE else ""
    shown = {
        "judges": [judge_card(one) for one in judge_records(found[:PER_PAGE])],
        "criteria": [criterion_line(event) for event in active_in(projects)],
        "newer": newer,
        "older": older,
    }
    return render(request, "review/judges.html", shown)


JUDGES = JudgeVersion.objects.select_related("endpoint")
TRY_SECONDS = 10.0  # until the endpoint has a place for somebody who waits


@signed_in_get
def judge(request: HttpRequest, pk: int) -> HttpResponse:
    """One judge version."""
    return _judge_page(request, access.fetch(JUDGES, request.user, Action.EVALUATE, pk, path=OF_PROJECT))


@signed_in_post
def judge_try(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask a judge as every run begins: the page shows how it can be asked, what it said, and how long that took."""
    found = access.fetch(JUDGES, request.user, Action.EVALUATE, pk, path=OF_PROJECT)
    if found.endpoint is None:
        messages.error(request, gettext("There is nobody to ask: it calls no model."))
        return redirect("judge", pk)
    try:
        tried = asked_once(found, found.endpoint, TRY_SECONDS)
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("judge", pk)
    return _judge_page(request, found, tried)


def _judge_page(request: HttpRequest, found: JudgeVersion, tried: Probed | None = None) -> HttpResponse:
    pk = found.pk
    others = JudgeVersion.objects.filter(project=found.project_id, name=found.name).exclude(pk=pk).order_by("-version")
    versions = [(other, f"v{version}") for other, version in others.values_list("pk", "version")]
    (record,) = judge_records([found])
    whole = judge_prompts(found, in_words=True) if found.endpoint_id else None
    shown = {
        "card": judge_card(record),
        "parameters": [(name, str(value)) for name, value in sorted(found.params.items())],
        "versions": versions,
        "attacks": attacks_of(found),
        "whole": whole,
        "titles": titles_of(whole.metrics) if whole else {},
        "tried": tried,
    }
    return render(request, "review/judge.html", shown)


@signed_in_get
def judge_card_file(request: HttpRequest, pk: int) -> HttpResponse:
    """The card of a judge version as a file."""
    found = access.fetch(JUDGES, request.user, Action.EVALUATE, pk, path=OF_PROJECT)
    kinds = {"md": "text/markdown", "json": "application/json"}
    if (form := request.GET.get("format", "md")) not in kinds:
        raise Http404
    card = judge_prompts(found)
    text = as_markdown(card) if form == "md" else json.dumps(card.to_dict(), ensure_ascii=False, indent=2)
    reply = HttpResponse(text, content_type=f"{kinds[form]}; charset=utf-8")
    reply.headers["Content-Disposition"] = f'attachment; filename="judge-{found.pk}.{form}"'
    return reply


def _page(request: HttpRequest) -> int:
    return whole_number(request.GET.get("page", ""), 5) or 0
