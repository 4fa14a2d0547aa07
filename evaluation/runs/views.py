"""Pages that start an evaluation, and the buttons of a run."""

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
from evaluation.accounts.access import person, signed_in_form, signed_in_get, signed_in_post
from evaluation.core.canonical import whole_number
from evaluation.core.errors import InvalidFile, Problem, Refused
from evaluation.core.roles import Action
from evaluation.datasets.forms import columns_form, encoding_form
from evaluation.datasets.pages import FileProblems
from evaluation.datasets.uploads import ANSWERS
from evaluation.datasets.views import uploaded
from evaluation.extensions import features
from evaluation.messages.sentences import explain, explain_refusal
from evaluation.models import AnswerSet, ImportBatch, ImportWork, QuestionSet, Run, User
from evaluation.runs.answer_files import ImportedAnswers
from evaluation.runs.answer_uploads import confirm_answers, preview_answers, store_answers
from evaluation.runs.forms import AnswerFileForm, AnswersForm, AskForm, ResumeForm, RunForm, TryForm
from evaluation.runs.large_uploads import (
    CHUNK_BYTES,
    LARGE_BYTES,
    WORKING,
    cancel_large,
    confirm_large,
    keep_large,
    process_upload,
)
from evaluation.runs.making import Asking, ask_for_run, resume_run
from evaluation.runs.planning import Plan, plan_sentences, planned
from evaluation.runs.profile_choices import ProfileChoice, profile_choices
from evaluation.systems.trying import try_question
from evaluation.worker import lifecycle


@signed_in_post
def steer(request: HttpRequest, pk: int, step: Callable[[Run, User], bool]) -> HttpResponse:
    """Start, pause or cancel a run; done twice it is done once."""
    run = access.fetch(Run.objects.all(), request.user, Action.EVALUATE, pk)
    try:
        if not step(run, person(request)):
            messages.warning(request, gettext("The run was in another state already; nothing was changed."))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    return redirect("run", run.pk)


@signed_in_post
def resume(request: HttpRequest, pk: int) -> HttpResponse:
    """Go on with a paused run, under the budget that was entered."""
    run = access.fetch(Run.objects.all(), request.user, Action.EVALUATE, pk)
    form = ResumeForm(request.POST)
    if form.is_valid():
        try:
            resume_run(run, person(request), form.cleaned_data["budget"])
        except Refused as refused:
            messages.error(request, explain_refusal(refused))
    else:
        messages.error(request, " ".join(str(text) for texts in form.errors.values() for text in texts))
    return redirect("run", run.pk)


@signed_in_post
def retry(request: HttpRequest, pk: int) -> HttpResponse:
    """Put what failed back to work."""
    run = access.fetch(Run.objects.all(), request.user, Action.EVALUATE, pk)
    try:
        count = lifecycle.retry_failed(run, person(request))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    else:
        text = ngettext("%(count)d failed step is tried again.", "%(count)d failed steps are tried again.", count)
        messages.success(request, text % {"count": count})
    return redirect("run", run.pk)


@dataclass(frozen=True)
class SourcePage(FileProblems):
    """The three ways to answers, and what is wrong with a file that was sent."""

    upload: AnswerFileForm
    there: AnswersForm
    ask: AskForm
    file: str = ""
    problems: Sequence[Problem] = ()

    @property
    def cards(self) -> list[str]:
        """Templates of further sources, which features bring."""
        return [feature.answer_source for feature in features() if feature.answer_source]


@dataclass(frozen=True, slots=True)
class LargeUpload:
    """A large file in the hands of workers, or what became of it. ``work`` is none while it is still coming in."""

    batch: ImportBatch
    work: ImportWork | None

    @classmethod
    def of(cls, batch: ImportBatch) -> LargeUpload:
        """The upload with its work."""
        work = ImportWork.objects.annotate(waits_for=process_upload.problem("batch"))
        return cls(batch, work.filter(batch=batch).first())

    @property
    def live(self) -> bool:
        """Whether there is something to wait for."""
        return self.batch.state in WORKING

    @property
    def checks(self) -> bool:
        """Whether it is being checked; else its answers are being stored."""
        return self.batch.state == ImportBatch.State.CHECKING

    @property
    def lines(self) -> list[str]:
        """What is wrong with it, as far as one page can hold it."""
        return [explain(Problem(**one)) for one in self.work.problems] if self.work else []

    @property
    def more(self) -> int:
        """How many other problems there are."""
        return max(0, self.work.total - len(self.work.problems)) if self.work and self.work.problems else 0


@dataclass(frozen=True, slots=True)
class RunPage:
    """What is measured of which answers; ``plan`` once it was asked for."""

    source: AnswerSet | Asking
    form: RunForm
    profiles: Sequence[ProfileChoice]
    plan: Plan | None = None

    @property
    def asking(self) -> Asking | None:
        """Where a system is asked first."""
        return self.source if isinstance(self.source, Asking) else None

    @property
    def described(self) -> list[tuple[BoundWidget, ProfileChoice]]:
        """The buttons of the profiles, each with its profile."""
        return list(zip(self.form["profile"].subwidgets, self.profiles, strict=True))

    @property
    def sentences(self) -> list[str]:
        """Tokens, money and time of the plan."""
        return plan_sentences(self.plan) if self.plan else []


@signed_in_form
def new_evaluation(request: HttpRequest) -> HttpResponse:
    """Where the answers come from: a file, answers that are there, or a system that is asked."""
    if not access.projects_with(request.user, Action.EVALUATE).exists():
        raise PermissionDenied
    if request.method != "POST":
        return render(request, "evaluation/runs/new.html", {"page": _source_page(request)})
    form = AnswerFileForm(request.POST, request.FILES, user=request.user)
    if not form.is_valid():
        return render(request, "evaluation/runs/new.html", {"page": _source_page(request, form)}, status=400)
    said = form.cleaned_data
    try:
        file, about = said["file"], (said["questions"], said["system"], said["file"].name)
        if file.size > LARGE_BYTES:
            batch = keep_large(
                *about, file.chunks(CHUNK_BYTES), person(request), map_text=said["map"], encoding=said["encoding"]
            )
        else:
            batch = store_answers(*about, file.read(), person(request), map_text=said["map"], encoding=said["encoding"])
    except InvalidFile as refused:
        page = _source_page(request, form, said["file"].name, refused.problems)
        return render(request, "evaluation/runs/new.html", {"page": page}, status=400)
    except Refused as refused:
        form.add_error("system", explain_refusal(refused))
        return render(request, "evaluation/runs/new.html", {"page": _source_page(request, form)}, status=400)
    return redirect("answers-preview", batch.uuid)


def _source_page(
    request: HttpRequest, upload: AnswerFileForm | None = None, file: str = "", problems: Sequence[Problem] = ()
) -> SourcePage:
    start = _named(request)
    return SourcePage(
        upload or AnswerFileForm(user=request.user, initial={"questions": start.get("questions")}),
        AnswersForm(user=request.user, initial=start),
        AskForm(user=request.user, initial=start, auto_id="ask_%s"),
        file,
        problems,
    )


def say_imported(request: HttpRequest, imported: ImportedAnswers) -> None:
    """Tell that the answers are stored and which run computes their rule metrics."""
    text = gettext("The answers are in; their rule metrics are being computed as run %(run)s.")
    messages.success(request, text % {"run": imported.run.pk})


def _named(request: HttpRequest) -> dict[str, object]:
    """What the address preselects."""
    asked = {name: whole_number(request.GET.get(name, ""), 9) for name in ("questions", "system", "answers", "k")}
    found: dict[str, object] = {name: number for name, number in asked.items() if number}
    return found | ({"type": request.GET["type"]} if "type" in request.GET else {})


@signed_in_form
def try_one(request: HttpRequest) -> HttpResponse:
    """One question to a system: what is sent, what comes back and what it is mapped to. Nothing is stored. It reaches
    what a run of the same person would reach, no address and no key beyond."""
    if not access.projects_with(request.user, Action.EVALUATE).exists():
        raise PermissionDenied
    asks = request.method == "POST"
    form = TryForm(request.POST, user=request.user) if asks else TryForm(user=request.user, initial=_named(request))
    page: dict[str, object] = {"form": form}
    if asks and form.is_valid():
        version = form.cleaned_data["system"]
        try:
            tried = try_question(version, form.call)
        except Refused as refused:
            form.add_error("system", explain_refusal(refused))
        else:
            page |= {"tried": tried, "request_text": _written(tried.request), "mapping": _written(tried.mapping)}
    status = 400 if asks and form.errors else 200
    return render(request, "evaluation/runs/try_system.html", page, status=status)


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


@signed_in_get
def answers_preview(request: HttpRequest, uuid: str) -> HttpResponse:
    """What confirming would import."""
    batch = uploaded(request, uuid, ANSWERS)
    if batch.state == ImportBatch.State.CONFIRMED and batch.result_id:
        return _moved(request, redirect(answers_url(batch.result_id)))
    if batch.state not in {ImportBatch.State.PARSED, ImportBatch.State.EXPIRED}:
        return render(request, "evaluation/runs/answers_progress.html", {"page": LargeUpload.of(batch)})
    if (work := ImportWork.objects.filter(batch=batch).first()) and batch.state == ImportBatch.State.PARSED:
        questions = QuestionSet.objects.get(pk=batch.options["questions"])
        remarks = [Problem(**one) for one in work.found["remarks"]]
        large = {**work.found, "question_set": questions, "answers": batch.rows, "remarks": remarks}
        page = {"batch": batch, "found": large, "columns": None, "large": True, "encoding": None}
        return _moved(request, render(request, "evaluation/runs/answers_preview.html", page))
    try:
        found = preview_answers(batch)
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("evaluation-new")
    asks = encoding_form(batch, found.encoding)
    shown = {"batch": batch, "found": found, "columns": columns_form(ANSWERS, found), "encoding": asks}
    return render(request, "evaluation/runs/answers_preview.html", shown)


@signed_in_post
def answers_confirm(request: HttpRequest, uuid: str) -> HttpResponse:
    """Import what was previewed; workers compute its rule metrics while the person goes on."""
    batch = uploaded(request, uuid, ANSWERS)
    if ImportWork.objects.filter(batch=batch).exists():
        confirm_large(batch, person(request))
        return redirect("answers-preview", batch.uuid)
    try:
        imported = confirm_answers(batch, person(request))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("evaluation-new")
    if imported is not None:
        say_imported(request, imported)
    return redirect(answers_url(batch.result_id or 0))


def _moved(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The response, or for a page that asks every other second whether anything happened that it be loaded anew."""
    return HttpResponse(headers={"HX-Refresh": "true"}) if "HX-Request" in request.headers else response


@signed_in_post
def answers_cancel(request: HttpRequest, uuid: str) -> HttpResponse:
    """Give up a large file that is being checked or imported."""
    batch = uploaded(request, uuid, ANSWERS)
    if not cancel_large(batch, person(request)):
        messages.warning(request, gettext("The import had ended already; nothing was changed."))
    return redirect("answers-preview", batch.uuid)


def answers_url(pk: int) -> str:
    """Address of the page that chooses what is measured of an answer set."""
    return f"{reverse('evaluation-run')}?answers={pk}"


@signed_in_form
def new_run(request: HttpRequest) -> HttpResponse:
    """What is measured, by whom, and what that takes; then the start."""
    source = _source(request)
    if isinstance(source, SourcePage):
        return render(request, "evaluation/runs/new.html", {"page": source}, status=400)
    profiles = profile_choices(source)
    if request.method != "POST":
        return _run_page(request, RunPage(source, RunForm(source=source, profiles=profiles), profiles))
    form = RunForm(request.POST, source=source, profiles=profiles)
    if not form.is_valid():
        return _run_page(request, RunPage(source, form, profiles), status=400)
    try:
        if "start" in request.POST and form.cleaned_data["planned"] == form.digest:
            return redirect("run", ask_for_run(source, form.spec, person(request)).pk)
        plan = planned(source, form.spec, person(request))
    except Refused as refused:
        form.add_error("rubrics" if refused.code == "rubric_other_language" else None, explain_refusal(refused))
        return _run_page(request, RunPage(source, form, profiles), status=400)
    return _run_page(request, RunPage(source, form, profiles, plan))


def _run_page(request: HttpRequest, page: RunPage, status: int = 200) -> HttpResponse:
    return render(request, "evaluation/runs/new_run.html", {"page": page}, status=status)


def _source(request: HttpRequest) -> AnswerSet | Asking | SourcePage:
    """What the address names; the page to choose again where it names nothing that can be evaluated."""
    asked = request.GET
    if "answers" in asked:
        rows = AnswerSet.objects.select_related("project", "question_set__project", "system_version__system")
        return access.fetch(rows, request.user, Action.EVALUATE, whole_number(asked.get("answers", ""), 9) or 0)
    if "system" not in asked:
        raise Http404
    form = AskForm(asked, user=request.user, auto_id="ask_%s")
    if form.is_valid():
        return form.source
    return SourcePage(AnswerFileForm(user=request.user), AnswersForm(user=request.user), form)
