"""Pages of question sets and of their upload."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Exists, OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from evaluation.accounts import access
from evaluation.accounts.access import person, signed_in_form, signed_in_get, signed_in_post
from evaluation.core.canonical import whole_number
from evaluation.core.errors import InvalidFile, Refused
from evaluation.core.roles import Action
from evaluation.datasets.forms import ColumnsForm, EncodingForm, UploadForm
from evaluation.datasets.pages import PreviewPage, SetListPage, SetPage, UploadPage
from evaluation.datasets.uploads import (
    ANSWERS,
    QUESTIONS,
    Preview,
    choose_encoding,
    confirm_upload,
    preview,
    read_columns_as,
    store_upload,
)
from evaluation.messages.sentences import explain, explain_refusal
from evaluation.models import ImportBatch, QuestionSet
from evaluation.runs.answer_uploads import AnswersPreview, preview_answers

PREVIEWS: dict[str, Callable[[ImportBatch], Preview | AnswersPreview]] = {
    QUESTIONS: preview,
    ANSWERS: preview_answers,
}
SIZE = 50
MOST_LISTED = 200


@signed_in_get
def question_set_list(request: HttpRequest) -> HttpResponse:
    """The newest version of every set of the person's projects."""
    rows = access.visible(QuestionSet.objects.all(), request.user).annotate(count=Count("questions"))
    newer = QuestionSet.objects.filter(
        project=OuterRef("project"), name=OuterRef("name"), version__gt=OuterRef("version")
    )
    newest = rows.filter(~Exists(newer)).select_related("project").order_by("-created_at", "-pk")[:MOST_LISTED]
    shown = [(one, one.count) for one in newest]
    several = len({one.project.name for one, _count in shown}) > 1
    imports = access.projects_with(request.user, Action.EVALUATE).exists()
    return render(request, "evaluation/datasets/question_set_list.html", {"page": SetListPage(shown, several, imports)})


@signed_in_get
def question_set(request: HttpRequest, pk: int) -> HttpResponse:
    """A version of a set with its questions, page by page."""
    rows = QuestionSet.objects.select_related("project", "created_by")
    found = access.fetch(rows, request.user, Action.VIEW, pk)
    number = whole_number(request.GET.get("page", ""), 6) or 1
    start = (number - 1) * SIZE
    questions = list(found.questions.order_by("position")[start : start + SIZE + 1])
    counts = found.questions.order_by().values_list("category").annotate(n=Count("pk")).order_by("category")
    page = SetPage(
        found,
        list(QuestionSet.objects.filter(project=found.project_id, name=found.name).order_by("-version")),
        list(counts),
        [question.read() for question in questions[:SIZE]],
        back=f"?page={number - 1}" if number > 1 else "",
        on=f"?page={number + 1}" if len(questions) > SIZE else "",
        imports=access.may(request.user, found.project_id, Action.EVALUATE),
        leads="retrieval_truth" in found.metadata and access.may(request.user, found.project_id, Action.MANAGE_REVIEW),
    )
    return render(request, "evaluation/datasets/question_set.html", {"page": page})


@signed_in_form
def upload(request: HttpRequest) -> HttpResponse:
    """Choose a file; every problem of it by line and field, or on to the preview."""
    projects = list(access.projects_with(request.user, Action.EVALUATE).order_by("name"))
    if not projects:
        raise PermissionDenied
    if request.method != "POST":
        start = {"name": request.GET.get("name", "")}
        return _upload_page(request, UploadPage(UploadForm(projects=projects, initial=start)))
    form = UploadForm(request.POST, request.FILES, projects=projects)
    if not form.is_valid():
        return _upload_page(request, UploadPage(form), status=400)
    file = form.cleaned_data["file"]
    options = {name: form.cleaned_data[name] for name in ("group_by", "map", "encoding", "qrels")}
    try:
        batch = store_upload(
            form.chosen_project, QUESTIONS, form.cleaned_data["name"], file.name, file.read(), options, person(request)
        )
    except InvalidFile as refused:
        return _upload_page(request, UploadPage(form, file.name, refused.problems), status=400)
    except Refused as refused:
        form.add_error("name", explain_refusal(refused))
        return _upload_page(request, UploadPage(form), status=400)
    return redirect("question-set-preview", batch.uuid)


@signed_in_get
def upload_preview(request: HttpRequest, uuid: str) -> HttpResponse:
    """What confirming would do."""
    batch = uploaded(request, uuid)
    if batch.state == ImportBatch.State.CONFIRMED and batch.result_id:
        return redirect("question-set", batch.result_id)
    try:
        page = PreviewPage(batch, preview(batch))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("question-set-upload")
    return render(request, "evaluation/datasets/upload_preview.html", {"page": page})


@signed_in_post
def columns(request: HttpRequest, uuid: str, kind: str) -> HttpResponse:
    """Read the file again with its columns as the person says they are meant."""
    batch, look = uploaded(request, uuid, kind), PREVIEWS[kind]
    try:
        form = ColumnsForm(kind, look(batch).columns, request.POST)
        if form.is_valid():
            read_columns_as(batch, form.chosen, look)
        else:
            messages.error(request, " ".join(str(text) for texts in form.errors.values() for text in texts))
    except InvalidFile as refused:
        messages.error(request, explain(refused.problems[0]))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    return redirect("question-set-preview" if kind == QUESTIONS else "answers-preview", batch.uuid)


@signed_in_post
def encoding(request: HttpRequest, uuid: str, kind: str) -> HttpResponse:
    """Read the file again in the encoding that the person chose."""
    batch, form = uploaded(request, uuid, kind), EncodingForm(request.POST)
    try:
        if form.is_valid():
            choose_encoding(batch, form.cleaned_data["encoding"], PREVIEWS[kind])
    except InvalidFile as refused:
        messages.error(request, explain(refused.problems[0]))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
    return redirect("question-set-preview" if kind == QUESTIONS else "answers-preview", batch.uuid)


@signed_in_post
def upload_confirm(request: HttpRequest, uuid: str) -> HttpResponse:
    """Import what was previewed."""
    batch = uploaded(request, uuid)
    try:
        imported = confirm_upload(batch, person(request), name=request.POST.get("name", ""))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("question-set-upload")
    messages.success(request, explain(imported.note))
    return redirect("question-set", imported.question_set.pk)


def uploaded(request: HttpRequest, uuid: str, kind: str = QUESTIONS) -> ImportBatch:
    """An upload of this kind, for who may import in its project."""
    rows = ImportBatch.objects.select_related("project").filter(kind=kind)
    pk = rows.filter(uuid=uuid).values_list("pk", flat=True).first()
    return access.fetch(rows, request.user, Action.EVALUATE, pk or 0)


def _upload_page(request: HttpRequest, page: UploadPage, status: int = 200) -> HttpResponse:
    return render(request, "evaluation/datasets/upload.html", {"page": page}, status=status)
