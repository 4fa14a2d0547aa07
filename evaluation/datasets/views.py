"""Views of question sets and their upload."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Case, Count, Exists, OuterRef, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import get_language, gettext

from evaluation.accounts import access
from evaluation.accounts.access import signed_in_form, signed_in_get, signed_in_post, signed_in_user
from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError, InvalidFile
from evaluation.core.roles import Action
from evaluation.datasets.forms import ColumnsForm, EncodingForm, UploadForm, encoding_form
from evaluation.datasets.pages import CategoryChip, LargeUpload, PreviewPage, SetListPage, SetPage, UploadPage
from evaluation.datasets.uploads import (
    ANSWERS,
    QUESTIONS,
    Preview,
    choose_columns,
    choose_encoding,
    column_options,
    confirm_upload,
    guess_upload_columns,
    preview,
    store_upload,
    stored_preview,
)
from evaluation.formats.shaping import UnknownColumns
from evaluation.formats.tree import Columns
from evaluation.messages.explanations import explain, explain_refusal
from evaluation.models import ImportBatch, ImportWork, QuestionSet
from evaluation.runs.answer_uploads import AnswersPreview, preview_answers
from evaluation.runs.large_uploads import (
    CHUNK_BYTES,
    LARGE_BYTES,
    cancel_large_file,
    check_again,
    confirm_large_file,
    store_large_questions,
    unknown_columns,
)
from evaluation.templatetags.sorting import ListOrder, sorted_fields

PREVIEWS: dict[str, Callable[[ImportBatch], Preview | AnswersPreview]] = {
    QUESTIONS: preview,
    ANSWERS: preview_answers,
}
PAGE_SIZE = 50
MAX_LISTED_SETS = 200
SET_COLUMNS = {
    "name": "name",
    "version": "version",
    "questions": "count",
    "imported": "created_at",
    "project": "project__name",
}
QUESTION_COLUMNS = {"id": "external_id", "question": "text", "category": "category"}


@signed_in_get
def question_set_list(request: HttpRequest) -> HttpResponse:
    """Newest version of every set in the user's projects."""
    rows = access.visible(QuestionSet.objects.all(), request.user).annotate(count=Count("questions"))
    newer = QuestionSet.objects.filter(
        project=OuterRef("project"), name=OuterRef("name"), version__gt=OuterRef("version")
    )
    order = ListOrder(request.GET, SET_COLUMNS)
    # Sets that declare the reader's language come first.
    default = (Case(When(metadata__language=get_language(), then=0), default=1), "-created_at", "-pk")
    newest = rows.filter(~Exists(newer)).select_related("project").order_by(*sorted_fields(order), *default)
    newest = newest[:MAX_LISTED_SETS]
    rows_with_count = [(row, row.count) for row in newest]
    several_projects = len({row.project.name for row, _count in rows_with_count}) > 1
    can_import = access.projects_with(request.user, Action.EVALUATE).exists()
    return render(
        request,
        "evaluation/datasets/question_set_list.html",
        {"page": SetListPage(rows_with_count, order, several_projects, can_import)},
    )


@signed_in_get
def question_set(request: HttpRequest, pk: int) -> HttpResponse:
    """Version of a set with its questions, paginated."""
    rows = QuestionSet.objects.select_related("project", "created_by")
    version = access.fetch(rows, request.user, Action.VIEW, pk)
    page_number = parse_int(request.GET.get("page", ""), 6) or 1
    start = (page_number - 1) * PAGE_SIZE
    order = ListOrder(request.GET, QUESTION_COLUMNS)
    category = request.GET.get("category", "")
    rows_in_category = version.questions.filter(category=category) if category else version.questions.all()
    questions = list(rows_in_category.order_by(*sorted_fields(order), "position")[start : start + PAGE_SIZE + 1])
    counts = version.questions.order_by().values_list("category").annotate(n=Count("pk")).order_by("category")
    page = SetPage(
        version,
        list(QuestionSet.objects.filter(project=version.project_id, name=version.name).order_by("-version")),
        [
            CategoryChip(name, count, order.query(order=order.value, category="" if name == category else name))
            for name, count in counts
        ],
        category,
        [question.read() for question in questions[:PAGE_SIZE]],
        order,
        previous_url=order.page_query(page_number - 1) if page_number > 1 else "",
        next_url=order.page_query(page_number + 1) if len(questions) > PAGE_SIZE else "",
        can_import=access.may(request.user, version.project_id, Action.EVALUATE),
        can_open_repair="retrieval_truth" in version.metadata
        and access.may(request.user, version.project_id, Action.MANAGE_REVIEW),
    )
    return render(request, "evaluation/datasets/question_set.html", {"page": page})


@signed_in_form
def upload(request: HttpRequest) -> HttpResponse:
    """Upload a file: list its problems by line and field, or redirect to the preview."""
    projects = list(access.projects_with(request.user, Action.EVALUATE).order_by("name"))
    if not projects:
        raise PermissionDenied
    if request.method != "POST":
        initial = {"name": request.GET.get("name", "")}
        return _upload_page(request, UploadPage(UploadForm(projects=projects, initial=initial)))
    form = UploadForm(request.POST, request.FILES, projects=projects)
    if not form.is_valid():
        return _upload_page(request, UploadPage(form), status=400)
    file = form.cleaned_data["file"]
    options = {name: form.cleaned_data[name] for name in ("group_by", "map", "encoding", "qrels")}
    project, name, user = form.chosen_project, form.cleaned_data["name"], signed_in_user(request)
    try:
        if file.size > LARGE_BYTES:
            pieces = file.chunks(CHUNK_BYTES)
            options |= {"asks_columns": True}
            batch = store_large_questions(project, name, file.name, pieces, user, options=options)
        else:
            batch = store_upload(project, QUESTIONS, name, file.name, file.read(), options, user)
    except InvalidFile as error:
        return _upload_page(request, UploadPage(form, file.name, error.problems), status=400)
    except DomainError as error:
        form.add_error("name", explain_refusal(error))
        return _upload_page(request, UploadPage(form), status=400)
    return redirect("question-set-preview", batch.uuid)


@signed_in_get
def upload_preview(request: HttpRequest, uuid: str) -> HttpResponse:
    """Preview of an upload."""
    batch = fetch_upload(request, uuid)
    if batch.state == ImportBatch.State.CONFIRMED and batch.result_id:
        return response_or_refresh(request, redirect("question-set", batch.result_id))
    if batch.state not in {ImportBatch.State.PARSED, ImportBatch.State.EXPIRED}:
        return render(request, "evaluation/datasets/upload_progress.html", {"page": LargeUpload.of(batch)})
    if (work := ImportWork.objects.filter(batch=batch).first()) and batch.state == ImportBatch.State.PARSED:
        if error := unknown_columns(work):
            return response_or_refresh(request, columns_page(request, batch, error))
        page = PreviewPage(batch, stored_preview(batch, work.summary), large=True)
        return response_or_refresh(request, render(request, "evaluation/datasets/upload_preview.html", {"page": page}))
    try:
        page = PreviewPage(batch, preview(batch))
    except UnknownColumns as error:
        return columns_page(request, batch, error)
    except DomainError as error:
        messages.error(request, explain_refusal(error))
        return redirect("question-set-upload")
    return render(request, "evaluation/datasets/upload_preview.html", {"page": page})


@signed_in_post
def columns(request: HttpRequest, uuid: str, kind: str) -> HttpResponse:
    """Read the file again with the chosen columns."""
    batch = fetch_upload(request, uuid, kind)
    work = ImportWork.objects.filter(batch=batch).first()
    try:
        form = ColumnsForm(kind, _read_columns(batch, work), request.POST)
        if not form.is_valid():
            messages.error(request, " ".join(str(text) for texts in form.errors.values() for text in texts))
        elif work:
            check_again(batch, column_options(kind, form.chosen_columns))
        else:
            choose_columns(batch, form.chosen_columns, PREVIEWS[kind])
    except InvalidFile as error:
        messages.error(request, explain(error.problems[0]))
    except DomainError as error:
        messages.error(request, explain_refusal(error))
    return redirect("question-set-preview" if kind == QUESTIONS else "answers-preview", batch.uuid)


def _read_columns(batch: ImportBatch, work: ImportWork | None) -> Columns:
    """The columns of an upload with their fields, which are empty if they are unknown.

    :raises InvalidFile: if the file cannot be read.
    :raises DomainError: ``upload_expired``."""
    try:
        if work is None:
            return PREVIEWS[batch.kind](batch).columns
        error = unknown_columns(work)
    except UnknownColumns as refusal:
        error = refusal
    return tuple((column, "") for column in error.samples) if error else ()


@signed_in_post
def encoding(request: HttpRequest, uuid: str, kind: str) -> HttpResponse:
    """Read the file again in the chosen encoding."""
    batch, form = fetch_upload(request, uuid, kind), EncodingForm(request.POST)
    try:
        if form.is_valid() and ImportWork.objects.filter(batch=batch).exists():
            check_again(batch, {"encoding": form.cleaned_data["encoding"], "map": ""})
        elif form.is_valid():
            choose_encoding(batch, form.cleaned_data["encoding"], PREVIEWS[kind])
    except InvalidFile as error:
        messages.error(request, explain(error.problems[0]))
    except DomainError as error:
        messages.error(request, explain_refusal(error))
    return redirect("question-set-preview" if kind == QUESTIONS else "answers-preview", batch.uuid)


@signed_in_post
def upload_confirm(request: HttpRequest, uuid: str) -> HttpResponse:
    """Import a previewed file."""
    batch = fetch_upload(request, uuid)
    if ImportWork.objects.filter(batch=batch).exists():
        confirm_large_file(batch, signed_in_user(request))
        return redirect("question-set-preview", batch.uuid)
    try:
        imported = confirm_upload(batch, signed_in_user(request), name=request.POST.get("name", ""))
    except InvalidFile:
        return redirect("question-set-preview", batch.uuid)
    except DomainError as error:
        messages.error(request, explain_refusal(error))
        return redirect("question-set-upload")
    messages.success(request, explain(imported.note))
    return redirect("question-set", imported.question_set.pk)


@signed_in_post
def upload_cancel(request: HttpRequest, uuid: str, kind: str) -> HttpResponse:
    """Cancel the check or import of a large file."""
    batch = fetch_upload(request, uuid, kind)
    if not cancel_large_file(batch, signed_in_user(request)):
        messages.warning(request, gettext("The import had already ended. Nothing was changed."))
    return redirect("question-set-preview" if kind == QUESTIONS else "answers-preview", batch.uuid)


def columns_page(request: HttpRequest, batch: ImportBatch, error: UnknownColumns) -> HttpResponse:
    """Ask for the fields of an upload's columns. If the chosen ones did not fit, list the problems."""
    guesses, source = guess_upload_columns(batch, list(error.samples))
    form = ColumnsForm(batch.kind, guesses, samples=error.samples)
    form.needs_choice = True
    is_mapped = all(problem.code != "columns_unknown" for problem in error.problems)
    page = {
        "batch": batch,
        "columns": form,
        "source": source,
        "encoding": encoding_form(batch, error.encoding),
        "problems": error.problems if is_mapped else (),
    }
    return render(request, "evaluation/datasets/map_columns.html", page)


def response_or_refresh(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The response, or a reload for an htmx request that polls for changes."""
    return HttpResponse(headers={"HX-Refresh": "true"}) if "HX-Request" in request.headers else response


def fetch_upload(request: HttpRequest, uuid: str, kind: str = QUESTIONS) -> ImportBatch:
    """Fetch an upload of this kind if the user may import into its project."""
    rows = ImportBatch.objects.select_related("project").filter(kind=kind)
    pk = rows.filter(uuid=uuid).values_list("pk", flat=True).first()
    return access.fetch(rows, request.user, Action.EVALUATE, pk or 0)


def _upload_page(request: HttpRequest, page: UploadPage, status: int = 200) -> HttpResponse:
    return render(request, "evaluation/datasets/upload.html", {"page": page}, status=status)
