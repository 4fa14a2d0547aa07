"""Home, the list of runs, a run's page and its report."""

from __future__ import annotations

from dataclasses import replace

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render

from evaluation.accounts import access
from evaluation.accounts.access import person, roles_anywhere, signed_in_get, signed_in_post
from evaluation.core.errors import Later
from evaluation.core.roles import Action, allowed
from evaluation.formats.export import ExportFile
from evaluation.formats.records import OWN, forms
from evaluation.models import Project, Run
from evaluation.runs.exports import download, take_export, uncounted_if_later
from evaluation.runs.progress import calls_of, progress
from review.agreement.pages import agreement_pictures
from review.agreement.retrieval import retrieval_by_depth
from review.comparisons.summaries import attention
from review.decisions.assumptions import set_accepted
from review.evidence.answers import expose, expose_answers
from review.figure_cache.keeping import LEAST_WAIT
from review.figure_cache.reading import agreement_figures, headlines_of, listed_lines, report_file, run_figures
from review.queues.access import queues_led_by
from review.queues.planning import plan_json
from review.queues.progress import under_way
from review.reports.exporting import BRIEF, PICTURED, REPORT_EXPORTS, export_kept
from review.reports.pages.retrieval import retrieval_page
from review.reports.pages.run import progress_page, run_actions, run_page
from review.reports.pages.run_list import LISTED, RunFilter, rules_beside, run_rows, without_rules_beside
from review.reports.records import export_records
from review.reports.retrieval import corrected_retrieval, titled

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
    return render(request, "review/reports/home.html", shown)


@signed_in_get
def run_list(request: HttpRequest) -> HttpResponse:
    """The runs of the person's projects, filtered."""
    visible = access.visible(Run.objects.select_related(*LISTED), request.user)
    asked = RunFilter(request.GET, visible)
    shown = {"runs": run_rows(asked.rows, headlines_of(asked.rows)), "asked": asked}
    return render(request, "review/reports/run_list.html", shown)


@signed_in_get
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """The page of a run. The lists of answers on it tell what the judge said, which is recorded."""
    found = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    kept = run_figures(found)
    now = progress(found)
    live = None if found.state in Run.ENDED else progress_page(found, now, calls_of(found))
    if kept.value is None:
        return render(request, "review/reports/in_making.html", {"title": found, "progress": live})
    actions = run_actions(found.state, access.roles_in(request.user, found.project_id), failed_units=bool(now.failed))
    page = run_page(kept.value.report, actions, live, kept.value.plan)
    expose_answers(request.user, page.answers_shown, "run page")
    return render(request, "review/reports/run.html", {"page": page, "kept": kept})


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
    return render(request, "review/reports/retrieval.html", shown)


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
        return render(request, "review/reports/in_making.html", {"title": found, "file": True})
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
    response = render(request, "review/reports/_progress.html", {"progress": page})
    if not page.live:
        response.headers["HX-Refresh"] = "true"
    return response
