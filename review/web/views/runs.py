"""The list of runs, the page of a run, its report as a file, and its progress."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluation.accounts import access
from evaluation.core.roles import Action
from evaluation.models import Run
from evaluation.runs.exports import take_export
from evaluation.runs.progress import calls_of, progress
from review.comparisons.summaries import ENDED, headlines
from review.evidence.exposures import expose, expose_answers
from review.plans.ahead import next_review
from review.plans.wording import planned_review
from review.reports.exporting import FORMATS, export
from review.reports.gathering import gather
from review.reports.making import report_of
from review.web.forms.run_filter import RunFilter
from review.web.pages.progress import progress_page
from review.web.pages.report_pictures import agreement_pictures
from review.web.pages.run import run_actions, run_page
from review.web.pages.run_list import LISTED, RunListPage, run_rows
from review.web.views.people import person


@login_required
@require_safe
def run_list(request: HttpRequest) -> HttpResponse:
    """The runs of the person's projects, filtered."""
    visible = access.visible(Run.objects.select_related(*LISTED), request.user)
    asked = RunFilter(request.GET, visible)
    page = RunListPage(run_rows(asked.rows, headlines(asked.rows)), asked)
    return render(request, "review/run_list.html", {"page": page})


@login_required
@require_safe
def run(request: HttpRequest, pk: int) -> HttpResponse:
    """The page of a run. The lists of answers on it tell what the judge said, which is recorded."""
    found = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    basis = gather(found)
    report = report_of(basis)
    now = progress(found)
    actions = run_actions(found.state, access.roles_in(request.user, found.project_id), failed_units=bool(now.failed))
    live = None if found.state in ENDED else progress_page(found, now, calls_of(found))
    page = run_page(report, actions, live, next_review(basis))
    expose_answers(request.user, page.answers_shown, "run page")
    return render(request, "review/run.html", {"page": page})


@login_required
@require_safe
def run_report(request: HttpRequest, pk: int) -> StreamingHttpResponse:
    """The report as a file. It tells the judge's values, which is recorded."""
    found = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    if (format_name := request.GET.get("format", "html")) not in FORMATS:
        raise Http404
    take_export(person(request))
    made = export(found, format_name, pictures=agreement_pictures, planned=planned_review)
    expose(request.user, found, "report")
    response = StreamingHttpResponse(made.chunks, content_type=made.media_type)
    response["Content-Disposition"] = f'attachment; filename="{made.file_name}"'
    return response


@login_required
@require_safe
def run_progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The progress fragment; when the run has ended the whole page is loaded again."""
    found = access.fetch(Run.objects.all(), request.user, Action.VIEW, pk)
    page = progress_page(found, progress(found), calls_of(found))
    response = render(request, "review/_progress.html", {"progress": page})
    if not page.live:
        response.headers["HX-Refresh"] = "true"
    return response
