"""Views of the home page, the run list, a run and its report."""

from __future__ import annotations

from dataclasses import replace

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBadRequest, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect, render
from django.utils.translation import get_language

from evaluation.accounts import access
from evaluation.accounts.access import roles_anywhere, signed_in_get, signed_in_post, signed_in_user
from evaluation.core.errors import NotReady
from evaluation.core.roles import Action, is_allowed
from evaluation.formats.export import ExportFile
from evaluation.formats.records import NATIVE, form_names
from evaluation.models import Project, Run
from evaluation.runs.exports import count_export, download_response, refund_if_later
from evaluation.runs.progress import call_status, progress
from review.agreement.pages import render_agreement_plots
from review.agreement.retrieval import retrieval_by_depth
from review.comparisons.summaries import load_open_work
from review.decisions.assumptions import set_acceptance
from review.evidence.answers import record_answer_exposure, record_exposure
from review.figure_cache.selectors import agreement_figures, headlines_of, listed_lines, report_file, run_figures
from review.figure_cache.store import MIN_RETRY_SECONDS
from review.queues.access import outside_readers_language, queues_led_by
from review.queues.planning import plan_json
from review.queues.progress import active_queues, unrated_answers
from review.reports.exports import BRIEF, PICTURED, REPORT_EXPORTS, export_cached
from review.reports.pages.retrieval import retrieval_page
from review.reports.pages.run import progress_page, run_actions, run_page
from review.reports.pages.run_list import (
    RunFilter,
    exclude_shadowed_rule_runs,
    rule_run_by_judged_run,
    run_rows,
)
from review.reports.records import export_records
from review.reports.retrieval import corrected_retrieval, titled_figures

NEWEST = 6


@signed_in_get
def home(request: HttpRequest) -> HttpResponse:
    """Show pending tasks and the newest runs of the user's projects, those in the reader's language first. Rules-only
    runs fold into judged ones."""
    user = signed_in_user(request)
    roles = roles_anywhere(user)
    runs = None
    if is_allowed(roles, Action.VIEW):
        visible_runs = access.visible(Run.objects.select_related(*Run.LIST_RELATIONS), user)
        rows = list(exclude_shadowed_rule_runs(visible_runs).order_by("-pk")[:NEWEST])
        rows.sort(key=lambda run: run.answer_set.question_set.metadata.get("language") != get_language())
        runs = run_rows(rows, headlines_of(rows), rule_run_by_judged_run(visible_runs, rows))
    is_new_installation = user.is_superuser and not (runs and runs.rows) and not Project.objects.exists()
    needs = load_open_work(user)
    led_queues = queues_led_by(user).order_by(outside_readers_language(), "-pk")
    context = {
        "needs": needs,
        "busy": bool(needs.queues or needs.todos or needs.disputed or needs.drafts or needs.incomplete),
        "reviews": active_queues(led_queues) if is_allowed(roles, Action.MANAGE_REVIEW) else [],
        # None for users who see no runs.
        "runs": runs,
        "member": bool(roles),
        # Whether to show the commands of evaluators.
        "evaluates": is_allowed(roles, Action.EVALUATE),
        # No project exists yet.
        "fresh": is_new_installation,
    }
    return render(request, "review/reports/home.html", context)


@signed_in_get
def run_list(request: HttpRequest) -> HttpResponse:
    """List the runs of the user's projects, filtered."""
    visible = access.visible(Run.objects.select_related(*Run.LIST_RELATIONS), request.user)
    run_filter = RunFilter(request.GET, visible)
    context = {"runs": run_rows(run_filter.rows, headlines_of(run_filter.rows)), "run_filter": run_filter}
    return render(request, "review/reports/run_list.html", context)


@signed_in_get
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """Show a run. Its lists of answers reveal the judge's values, so the view is recorded."""
    run = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    cached_figures = run_figures(run)
    counts = progress(run)
    live_progress = None if run.state in Run.ENDED else progress_page(run, counts, call_status(run))
    if cached_figures.value is None:
        return render(request, "review/reports/computing.html", {"title": run, "progress": live_progress})
    actions = run_actions(run.state, access.roles_in(request.user, run.project_id), failed_units=bool(counts.failed))
    plan = cached_figures.value.plan
    unrated = unrated_answers(run) if actions.queue and plan and plan.waiting else []
    previous = cached_figures.value.previous
    page = run_page(cached_figures.value.report, actions, live_progress, plan, unrated, previous)
    record_answer_exposure(request.user, page.answers_shown, "run page")
    return render(request, "review/reports/run.html", {"page": page, "cached_value": cached_figures})


@signed_in_post
def run_assume(request: HttpRequest, pk: int) -> HttpResponse:
    """Accept or withdraw the assumption that the judge's bias on unrated parts equals that on rated ones."""
    run = access.fetch(Run.objects.all(), request.user, Action.OVERRIDE, pk)
    if (accepted := request.POST.get("accepted")) not in {"0", "1"}:
        return HttpResponseBadRequest()
    set_acceptance(run, accepted=accepted == "1", by=signed_in_user(request))
    return redirect("run", pk=run.pk)


@signed_in_get
def intervals(request: HttpRequest) -> HttpResponse:
    """Explain how each kind of interval is computed."""
    return render(request, "review/reports/intervals.html")


@signed_in_get
def run_retrieval(request: HttpRequest, pk: int) -> HttpResponse:
    """Show retrieval by depth. The page reveals no judge values."""
    rows = Run.objects.select_related("answer_set__question_set", "answer_set__system_version__system")
    run = access.fetch(rows, request.user, Action.VIEW, pk)
    by = "hops" if request.GET.get("by") == "hops" else "category"
    corrected = corrected_retrieval(run)
    context = {
        "page": retrieval_page(run, retrieval_by_depth(run), by),
        "corrected": corrected,
        "rows": titled_figures(corrected) if corrected else (),
        "leads": corrected is not None and access.may(request.user, run.project_id, Action.MANAGE_REVIEW),
    }
    return render(request, "review/reports/retrieval.html", context)


@signed_in_get
def run_report(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Download the report. It reveals the judge's values, so the download is recorded."""
    run = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    if (format_name := request.GET.get("format", "html")) not in REPORT_EXPORTS.names:
        raise Http404
    export_use = count_export(signed_in_user(request))
    try:
        with refund_if_later(export_use):
            export = _brief_report(run, format_name) if format_name in BRIEF else report_file(run, format_name)
    except NotReady:
        return render(request, "review/reports/computing.html", {"title": run, "file": True})
    record_exposure(request.user, run, "report")
    return download_response(export)


def _brief_report(run: Run, format_name: str) -> ExportFile:
    """Build the report in a format that needs only cached figures.

    :raises Later: while the figures are being computed."""
    figures, with_charts = run_figures(run), format_name in PICTURED
    agreement = agreement_figures(run).value if with_charts else None
    content = figures.value
    if content is None or (with_charts and agreement is None):
        raise NotReady("figures_in_making", MIN_RETRY_SECONDS)
    lines, pictures = (listed_lines(run), render_agreement_plots(run, agreement.figures)) if agreement else ((), "")
    export = export_cached(run, format_name, content.report, lines, plan=plan_json(content.plan), pictures=pictures)
    return replace(export, made_at=figures.built_at)


@signed_in_get
def run_records(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """Download questions, answers, scores and ratings as records. They reveal judge values, so the download is
    recorded."""
    run = access.fetch(Run.objects.all(), request.user, Action.MANAGE_REVIEW, pk)
    if (form := request.GET.get("form", NATIVE)) not in form_names():
        raise Http404
    count_export(signed_in_user(request))
    record_exposure(request.user, run, "records")
    return download_response(export_records(run, form))


@signed_in_get
def run_progress(request: HttpRequest, pk: int) -> HttpResponse:
    """Render the progress fragment. When the run has ended, the browser reloads the page."""
    run = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    page = progress_page(run, progress(run), call_status(run))
    response = render(request, "review/reports/_progress.html", {"progress": page})
    if not page.live:
        response.headers["HX-Refresh"] = "true"
    return response
