"""Pages of traces: which are taken and what is masked, a preview, and the import."""

from __future__ import annotations

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import path

from contrib.traces.forms import TracesForm
from contrib.traces.importing import FILE_NAME, TRACE_FILE, confirm_traces, keep_traces, preview_traces, waiting
from evaluation.accounts import access
from evaluation.accounts.access import person, signed_in_form, signed_in_get, signed_in_post
from evaluation.core.errors import InvalidFile, Refused
from evaluation.core.roles import Action
from evaluation.datasets.pages import UploadPage
from evaluation.datasets.views import uploaded
from evaluation.messages.sentences import explain_refusal
from evaluation.models import ImportBatch
from evaluation.runs.answer_files import SHOWN
from evaluation.runs.views import answers_url, say_imported


@signed_in_form
def new_traces(request: HttpRequest) -> HttpResponse:
    """A file of traces: questions that were asked and what the system answered, sampled and masked."""
    projects = list(access.projects_with(request.user, Action.EVALUATE).order_by("name"))
    if not projects:
        raise PermissionDenied
    sent = waiting(*projects)
    if request.method != "POST":
        start = {"project": request.GET.get("project"), "system": request.GET.get("system", "")}
        page = UploadPage(TracesForm(projects=projects, initial={name: one for name, one in start.items() if one}))
        return render(request, "traces/new.html", {"page": page, "sent": sent})
    form = TracesForm(request.POST, request.FILES, projects=projects)
    page, sampling = UploadPage(form), form.sampling if form.is_valid() else None
    if sampling is not None:
        said, file = form.cleaned_data, form.cleaned_data["file"]
        project, by, name = form.chosen_project, person(request), file.name if file else FILE_NAME
        data = file.read() if file else None
        try:
            batch = keep_traces(project, said["system"], data, name, sampling, name=said["name"], by=by)
            return redirect("traces-preview", batch.uuid)
        except InvalidFile as refused:
            page = UploadPage(form, name, refused.problems)
        except Refused as refused:
            form.add_error("system", explain_refusal(refused))
    return render(request, "traces/new.html", {"page": page, "sent": sent}, status=400)


@signed_in_get
def traces_preview(request: HttpRequest, uuid: str) -> HttpResponse:
    """What confirming would import."""
    batch = uploaded(request, uuid, TRACE_FILE)
    if batch.state == ImportBatch.State.CONFIRMED and batch.result_id:
        return redirect(answers_url(batch.result_id))
    try:
        found = preview_traces(batch)
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("traces-new")
    first = found.answers.answers[:SHOWN]
    return render(request, "traces/preview.html", {"batch": batch, "found": found, "first": first})


@signed_in_post
def traces_confirm(request: HttpRequest, uuid: str) -> HttpResponse:
    """Import what was previewed; workers compute its rule metrics while the person goes on."""
    batch = uploaded(request, uuid, TRACE_FILE)
    try:
        done = confirm_traces(batch, person(request))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("traces-new")
    if done is not None:
        say_imported(request, done.answers)
    return redirect(answers_url(batch.result_id or 0))


urlpatterns = [
    path("evaluations/traces/", new_traces, name="traces-new"),
    path("evaluations/traces/<uuid:uuid>/", traces_preview, name="traces-preview"),
    path("evaluations/traces/<uuid:uuid>/confirm/", traces_confirm, name="traces-confirm"),
]
