"""Pages of traces: selection and masks, preview, and import."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path

from contrib.traces.forms import TracesForm
from contrib.traces.importing import FILE_NAME, TRACE_FILE, confirm_traces, pending_traces, preview_traces, store_upload
from evaluation.accounts import access
from evaluation.accounts.access import signed_in_form, signed_in_get, signed_in_post, signed_in_user
from evaluation.core.errors import DomainError, InvalidFile
from evaluation.core.roles import Action
from evaluation.datasets.pages import UploadPage
from evaluation.datasets.views import fetch_upload
from evaluation.messages.explanations import explain_refusal
from evaluation.models import ImportBatch
from evaluation.runs.answer_files import PREVIEW_ROWS
from evaluation.runs.views import answers_url, notify_imported


@signed_in_form
def new_traces(request: HttpRequest) -> HttpResponse:
    """Upload a file of traces, or choose a system's pending ones, with sampling and masks."""
    projects = list(access.projects_with(request.user, Action.EVALUATE).order_by("name"))
    if not projects:
        raise PermissionDenied
    pending = pending_traces(*projects)
    if request.method != "POST":
        initial = {"project": request.GET.get("project"), "system": request.GET.get("system", "")}
        page = UploadPage(
            TracesForm(projects=projects, initial={name: value for name, value in initial.items() if value})
        )
        return render(request, "traces/new.html", {"page": page, "sent": pending})
    form = TracesForm(request.POST, request.FILES, projects=projects)
    page, sampling = UploadPage(form), form.sampling if form.is_valid() else None
    if sampling is not None:
        cleaned, file = form.cleaned_data, form.cleaned_data["file"]
        project, by, name = form.chosen_project, signed_in_user(request), file.name if file else FILE_NAME
        data = file.read() if file else None
        try:
            batch = store_upload(project, cleaned["system"], data, name, sampling, name=cleaned["name"], by=by)
            return redirect("traces-preview", batch.uuid)
        except InvalidFile as error:
            page = UploadPage(form, name, error.problems)
        except DomainError as error:
            form.add_error("system", explain_refusal(error))
    return render(request, "traces/new.html", {"page": page, "sent": pending}, status=400)


@signed_in_get
def traces_preview(request: HttpRequest, uuid: str) -> HttpResponse:
    """Preview the import."""
    batch = fetch_upload(request, uuid, TRACE_FILE)
    if batch.state == ImportBatch.State.CONFIRMED and batch.result_id:
        return redirect(answers_url(batch.result_id))
    try:
        traces = preview_traces(batch)
    except DomainError as error:
        messages.error(request, explain_refusal(error))
        return redirect("traces-new")
    first_answers = traces.answers.answers[:PREVIEW_ROWS]
    return render(request, "traces/preview.html", {"batch": batch, "found": traces, "first": first_answers})


@signed_in_post
def traces_confirm(request: HttpRequest, uuid: str) -> HttpResponse:
    """Import the previewed traces; workers compute the rule metrics."""
    batch = fetch_upload(request, uuid, TRACE_FILE)
    try:
        imported = confirm_traces(batch, signed_in_user(request))
    except DomainError as error:
        messages.error(request, explain_refusal(error))
        return redirect("traces-new")
    if imported is not None:
        notify_imported(request, imported.answers)
    return redirect(answers_url(batch.result_id or 0))


urlpatterns = [
    path("evaluations/traces/", new_traces, name="traces-new"),
    path("evaluations/traces/<uuid:uuid>/", traces_preview, name="traces-preview"),
    path("evaluations/traces/<uuid:uuid>/confirm/", traces_confirm, name="traces-confirm"),
]
