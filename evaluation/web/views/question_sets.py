"""Question sets: the list, a version, and the two requests of an upload."""

from __future__ import annotations

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Exists, OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluation.accounts import access
from evaluation.core.errors import InvalidFile, Refused
from evaluation.core.roles import Action
from evaluation.core.whole_numbers import whole_number
from evaluation.models import ImportBatch, QuestionSet, User
from evaluation.questions.uploads import QUESTIONS, confirm_upload, preview, store_upload
from evaluation.web.forms.upload import UploadForm
from evaluation.web.pages.question_sets import PreviewPage, ProblemList, SetListPage, SetPage, UploadPage, problem_list
from evaluation.wording.messages import explain, explain_refusal

SIZE = 50
MOST_LISTED = 200


@login_required
@require_safe
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
    return render(request, "evaluation/question_set_list.html", {"page": SetListPage(shown, several, imports)})


@login_required
@require_safe
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
    )
    return render(request, "evaluation/question_set.html", {"page": page})


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def upload(request: HttpRequest) -> HttpResponse:
    """Choose a file; every problem of it by line and field, or on to the preview."""
    projects = list(access.projects_with(request.user, Action.EVALUATE).order_by("name"))
    if not projects:
        raise PermissionDenied
    if request.method != "POST":
        start = {"name": request.GET.get("name", "")}
        return _upload_page(request, UploadForm(projects=projects, initial=start))
    form = UploadForm(request.POST, request.FILES, projects=projects)
    if not form.is_valid():
        return _upload_page(request, form, status=400)
    file = form.cleaned_data["file"]
    options = {"group_by": form.cleaned_data["group_by"]}
    try:
        batch = store_upload(
            form.chosen_project, QUESTIONS, form.cleaned_data["name"], file.name, file.read(), options, _user(request)
        )
    except InvalidFile as refused:
        return _upload_page(request, form, problem_list(file.name, refused.problems), status=400)
    except Refused as refused:
        form.add_error("name", explain_refusal(refused))
        return _upload_page(request, form, status=400)
    return redirect("question-set-preview", batch.uuid)


@login_required
@require_safe
def upload_preview(request: HttpRequest, uuid: str) -> HttpResponse:
    """What confirming would do."""
    batch = _batch(request, uuid)
    if batch.state == ImportBatch.State.CONFIRMED and batch.result_id:
        return redirect("question-set", batch.result_id)
    try:
        page = PreviewPage(batch, preview(batch))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("question-set-upload")
    return render(request, "evaluation/upload_preview.html", {"page": page})


@login_required
@require_POST
def upload_confirm(request: HttpRequest, uuid: str) -> HttpResponse:
    """Import what was previewed."""
    batch = _batch(request, uuid)
    try:
        imported = confirm_upload(batch, _user(request), name=request.POST.get("name", ""))
    except Refused as refused:
        messages.error(request, explain_refusal(refused))
        return redirect("question-set-upload")
    messages.success(request, explain(imported.note))
    return redirect("question-set", imported.question_set.pk)


def _batch(request: HttpRequest, uuid: str) -> ImportBatch:
    rows = ImportBatch.objects.select_related("project")
    pk = rows.filter(uuid=uuid).values_list("pk", flat=True).first()
    return access.fetch(rows, request.user, Action.EVALUATE, pk or 0)


def _upload_page(
    request: HttpRequest, form: UploadForm, problems: ProblemList | None = None, status: int = 200
) -> HttpResponse:
    return render(request, "evaluation/upload.html", {"page": UploadPage(form, problems)}, status=status)


def _user(request: HttpRequest) -> User | None:
    return request.user if isinstance(request.user, User) else None
