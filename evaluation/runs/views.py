"""Pages for new evaluations, and actions on a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.forms.boundfield import BoundWidget
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext, ngettext

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_form, signed_in_get, signed_in_post, signed_in_user
from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError, InvalidFile, Problem
from evaluation.core.roles import Action
from evaluation.datasets.forms import columns_form, encoding_form
from evaluation.datasets.pages import FileProblems, LargeUpload
from evaluation.datasets.uploads import ANSWERS
from evaluation.datasets.views import columns_page, fetch_upload, response_or_refresh
from evaluation.extensions import features
from evaluation.formats.shaping import UnknownColumns
from evaluation.messages.explanations import explain_refusal
from evaluation.models import AnswerSet, ImportBatch, ImportWork, QuestionSet, Run, User
from evaluation.runs.answer_files import ImportedAnswers
from evaluation.runs.answer_uploads import confirm_answers, preview_answers, store_answers
from evaluation.runs.creation import CollectionRequest, launch_run, resume_run
from evaluation.runs.forms import AnswerFileForm, CollectionForm, ExistingAnswersForm, PreviewForm, ResumeForm, RunForm
from evaluation.runs.large_uploads import (
    CHUNK_BYTES,
    LARGE_BYTES,
    confirm_large_file,
    store_large_file,
    unknown_columns,
)
from evaluation.runs.planning import Plan, plan_run, plan_sentences
from evaluation.runs.profile_choices import ProfileChoice, profile_choices
from evaluation.systems.preview import preview_question
from evaluation.worker import lifecycle


@signed_in_post
def steer(request: HttpRequest, pk: int, action: Callable[[Run, User], bool]) -> HttpResponse:
    """Start, pause or cancel a run; idempotent."""
    run = access.fetch(Run.objects.all(), request.user, Action.EVALUATE, pk)
    try:
        if not action(run, signed_in_user(request)):
            messages.warning(request, gettext("The run's state had already changed. Nothing was done."))
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
    return redirect("run", run.pk)


@signed_in_post
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Resume a paused run with the entered budget."""
    run = access.fetch(Run.objects.all(), request.user, Action.EVALUATE, pk)
    form = ResumeForm(request.POST)
    if form.is_valid():
        try:
            resume_run(run, signed_in_user(request), form.cleaned_data["budget"])
        except DomainError as refusal:
            messages.error(request, explain_refusal(refusal))
    else:
        messages.error(request, " ".join(str(text) for texts in form.errors.values() for text in texts))
    return redirect("run", run.pk)


@signed_in_post
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Retry the failed units of a run."""
    run = access.fetch(Run.objects.all(), request.user, Action.EVALUATE, pk)
    try:
        count = lifecycle.retry_failed(run, signed_in_user(request))
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
    else:
        text = ngettext("Retrying %(count)d failed step.", "Retrying %(count)d failed steps.", count)
        messages.success(request, text % {"count": count})
    return redirect("run", run.pk)


@dataclass(frozen=True)
class SourcePage(FileProblems):
    """The three sources of answers, and the problems of an uploaded file."""

    upload: AnswerFileForm
    existing_answers: ExistingAnswersForm
    ask: CollectionForm
    file: str = ""
    problems: Sequence[Problem] = ()

    @property
    def cards(self) -> list[str]:
        """Templates of further answer sources, from features."""
        return [feature.answer_source for feature in features() if feature.answer_source]


@dataclass(frozen=True, slots=True)
class RunPage:
    """The form of a new run for some answers; ``plan`` after it was requested."""

    source: AnswerSet | CollectionRequest
    form: RunForm
    profiles: Sequence[ProfileChoice]
    plan: Plan | None = None

    @property
    def collection(self) -> CollectionRequest | None:
        """The collection request, if a system is to be asked first."""
        return self.source if isinstance(self.source, CollectionRequest) else None

    @property
    def profile_buttons(self) -> list[tuple[BoundWidget, ProfileChoice]]:
        """The radio buttons of the profiles, each with its profile."""
        return list(zip(self.form["profile"].subwidgets, self.profiles, strict=True))

    @property
    def other_profile(self) -> bool:
        """Whether another profile than the recommended one is chosen."""
        return bool(self.form["profile"].value() != self.profiles[0].spec.name)

    @property
    def sentences(self) -> list[str]:
        """Tokens, cost and duration of the plan."""
        return plan_sentences(self.plan) if self.plan else []


@signed_in_form
def new_evaluation(request: HttpRequest) -> HttpResponse:
    """Choose the source of the answers: a file, existing answers, or a system."""
    if not access.projects_with(request.user, Action.EVALUATE).exists():
        raise PermissionDenied
    if request.method != "POST":
        return render(request, "evaluation/runs/new.html", {"page": _source_page(request)})
    form = AnswerFileForm(request.POST, request.FILES, user=request.user)
    if not form.is_valid():
        return render(request, "evaluation/runs/new.html", {"page": _source_page(request, form)}, status=400)
    cleaned = form.cleaned_data
    try:
        file, target = cleaned["file"], (cleaned["questions"], cleaned["system"], cleaned["file"].name)
        if file.size > LARGE_BYTES:
            batch = store_large_file(
                *target,
                file.chunks(CHUNK_BYTES),
                signed_in_user(request),
                map_text=cleaned["map"],
                encoding=cleaned["encoding"],
            )
        else:
            batch = store_answers(
                *target, file.read(), signed_in_user(request), map_text=cleaned["map"], encoding=cleaned["encoding"]
            )
    except InvalidFile as refusal:
        page = _source_page(request, form, cleaned["file"].name, refusal.problems)
        return render(request, "evaluation/runs/new.html", {"page": page}, status=400)
    except DomainError as refusal:
        form.add_error("system", explain_refusal(refusal))
        return render(request, "evaluation/runs/new.html", {"page": _source_page(request, form)}, status=400)
    return redirect("answers-preview", batch.uuid)


def _source_page(
    request: HttpRequest, upload: AnswerFileForm | None = None, file: str = "", problems: Sequence[Problem] = ()
) -> SourcePage:
    initial = _initial_values(request)
    return SourcePage(
        upload or AnswerFileForm(user=request.user, initial={"questions": initial.get("questions")}),
        ExistingAnswersForm(user=request.user, initial=initial),
        CollectionForm(user=request.user, initial=initial, auto_id="ask_%s"),
        file,
        problems,
    )


def notify_imported(request: HttpRequest, imported: ImportedAnswers) -> None:
    """Tell the user that the answers are stored and which run computes their rule metrics."""
    text = gettext("Answers imported. Run %(run)s is computing their rule metrics.")
    messages.success(request, text % {"run": imported.run.pk})


def _initial_values(request: HttpRequest) -> dict[str, object]:
    """Initial form values from the query string."""
    numbers = {name: parse_int(request.GET.get(name, ""), 9) for name in ("questions", "system", "answers", "k")}
    initial: dict[str, object] = {name: number for name, number in numbers.items() if number}
    return initial | ({"type": request.GET["type"]} if "type" in request.GET else {})


@signed_in_form
def preview_system(request: HttpRequest) -> HttpResponse:
    """Send one question to a system and show the request, the reply and its mapping. Nothing is stored, and the call
    counts towards no limit."""
    if not access.projects_with(request.user, Action.EVALUATE).exists():
        raise PermissionDenied
    submitted = request.method == "POST"
    form = (
        PreviewForm(request.POST, user=request.user)
        if submitted
        else PreviewForm(user=request.user, initial=_initial_values(request))
    )
    page: dict[str, object] = {"form": form}
    if submitted and form.is_valid():
        version = form.cleaned_data["system"]
        try:
            preview = preview_question(version, form.call)
        except DomainError as refusal:
            form.add_error("system", explain_refusal(refusal))
        else:
            page |= {
                "preview": preview,
                "request_text": _to_json(preview.request),
                "mapping": _to_json(preview.mapping),
            }
    status = 400 if submitted and form.errors else 200
    return render(request, "evaluation/runs/try_system.html", page, status=status)


def _to_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


@signed_in_get
def answers_preview(request: HttpRequest, uuid: str) -> HttpResponse:
    """Preview the import of an upload."""
    batch = fetch_upload(request, uuid, ANSWERS)
    if batch.state == ImportBatch.State.CONFIRMED and batch.result_id:
        return response_or_refresh(request, redirect(answers_url(batch.result_id)))
    if batch.state not in {ImportBatch.State.PARSED, ImportBatch.State.EXPIRED}:
        return render(request, "evaluation/datasets/upload_progress.html", {"page": LargeUpload.of(batch)})
    if (work := ImportWork.objects.filter(batch=batch).first()) and batch.state == ImportBatch.State.PARSED:
        if error := unknown_columns(work):
            return response_or_refresh(request, columns_page(request, batch, error))
        questions = QuestionSet.objects.get(pk=batch.options["questions"])
        remarks = [Problem(**remark) for remark in work.summary["remarks"]]
        stored_preview = {**work.summary, "question_set": questions, "answers": batch.rows, "remarks": remarks}
        page = {"batch": batch, "found": stored_preview, "columns": None, "large": True, "encoding": None}
        return response_or_refresh(request, render(request, "evaluation/runs/answers_preview.html", page))
    try:
        preview = preview_answers(batch)
    except UnknownColumns as refusal:
        return columns_page(request, batch, refusal)
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
        return redirect("evaluation-new")
    form = encoding_form(batch, preview.encoding)
    context = {"batch": batch, "found": preview, "columns": columns_form(ANSWERS, preview), "encoding": form}
    return render(request, "evaluation/runs/answers_preview.html", context)


@signed_in_post
def answers_confirm(request: HttpRequest, uuid: str) -> HttpResponse:
    """Import a previewed upload; workers compute its rule metrics."""
    batch = fetch_upload(request, uuid, ANSWERS)
    if ImportWork.objects.filter(batch=batch).exists():
        confirm_large_file(batch, signed_in_user(request))
        return redirect("answers-preview", batch.uuid)
    try:
        imported = confirm_answers(batch, signed_in_user(request))
    except InvalidFile:
        return redirect("answers-preview", batch.uuid)
    except DomainError as refusal:
        messages.error(request, explain_refusal(refusal))
        return redirect("evaluation-new")
    if imported is not None:
        notify_imported(request, imported)
    return redirect(answers_url(batch.result_id or 0))


def answers_url(pk: int) -> str:
    """URL of the page for a new run of an answer set."""
    return f"{reverse('evaluation-run')}?answers={pk}"


@signed_in_form
def new_run(request: HttpRequest) -> HttpResponse:
    """Choose metrics and judges, show the plan, and start the run."""
    source = _answer_source(request)
    if isinstance(source, SourcePage):
        return render(request, "evaluation/runs/new.html", {"page": source}, status=400)
    profiles = profile_choices(source)
    if request.method != "POST":
        return _render_run_page(request, RunPage(source, RunForm(source=source, profiles=profiles), profiles))
    form = RunForm(request.POST, source=source, profiles=profiles)
    if not form.is_valid():
        return _render_run_page(request, RunPage(source, form, profiles), status=400)
    try:
        if "start" in request.POST and form.cleaned_data["planned"] == form.digest:
            return redirect("run", launch_run(source, form.spec, signed_in_user(request)).pk)
        plan = plan_run(source, form.spec, signed_in_user(request))
    except DomainError as refusal:
        form.add_error("rubrics" if refusal.code == "rubric_other_language" else None, explain_refusal(refusal))
        return _render_run_page(request, RunPage(source, form, profiles), status=400)
    return _render_run_page(request, RunPage(source, form, profiles, plan))


def _render_run_page(request: HttpRequest, page: RunPage, status: int = 200) -> HttpResponse:
    return render(request, "evaluation/runs/new_run.html", {"page": page}, status=status)


def _answer_source(request: HttpRequest) -> AnswerSet | CollectionRequest | SourcePage:
    """The answers or collection request that the query string names; the source page if it is invalid."""
    params = request.GET
    if "answers" in params:
        rows = AnswerSet.objects.select_related("project", "question_set__project", "system_version__system")
        return access.fetch(rows, request.user, Action.EVALUATE, parse_int(params.get("answers", ""), 9) or 0)
    if "system" not in params:
        raise Http404
    form = CollectionForm(params, user=request.user, auto_id="ask_%s")
    if form.is_valid():
        return form.source
    return SourcePage(AnswerFileForm(user=request.user), ExistingAnswersForm(user=request.user), form)
