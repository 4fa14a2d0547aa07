"""Logging in and out, the own account, the language, the icon, question sets with their upload, and a run's buttons."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm, SetPasswordForm
from django.contrib.auth.views import LoginView, LogoutView, PasswordChangeView, PasswordResetConfirmView
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Exists, OuterRef
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, HttpResponseRedirect
from django.shortcuts import get_object_or_404, redirect, render
from django.templatetags.static import static
from django.urls import reverse, reverse_lazy
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext, ngettext
from django.views.decorators.http import require_POST, require_safe

from evaluation.accounts import access, audit
from evaluation.accounts.access import person, signed_in_form, signed_in_get, signed_in_post
from evaluation.core.canonical import whole_number
from evaluation.core.errors import InvalidFile, Refused
from evaluation.core.roles import Action
from evaluation.extensions import second_factor
from evaluation.messages.sentences import explain, explain_refusal
from evaluation.models import ApiToken, ImportBatch, QuestionSet, Run, User
from evaluation.questions.uploads import (
    ANSWERS,
    QUESTIONS,
    Preview,
    choose_encoding,
    confirm_upload,
    preview,
    read_columns_as,
    store_upload,
)
from evaluation.runs.answer_uploads import AnswersPreview, preview_answers
from evaluation.runs.making import resume_run
from evaluation.web.forms import ColumnsForm, EncodingForm, LogInForm, OwnTokenForm, ResumeForm, UploadForm
from evaluation.web.pages import PreviewPage, SetListPage, SetPage, UploadPage
from evaluation.worker import lifecycle

YEAR = 365 * 24 * 3600


def let_in(request: HttpRequest, who: User, target: str) -> HttpResponse:
    """Log somebody in whose password is right and lead them on, or ask for what the site wants to know
    beside it."""
    factor = second_factor()
    if factor and (asked := factor.ask(request, who, target)):
        return asked
    login(request, who)
    return HttpResponseRedirect(target)


class SignIn(LoginView):
    """Our own log-in page; whoever is logged in goes on to where they wanted."""

    template_name = "evaluation/login.html"
    authentication_form = LogInForm
    redirect_authenticated_user = True
    extra_context = {"sso_name": settings.CONCORD_OIDC.get("name")}

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """In, or on to what else is asked."""
        return let_in(self.request, form.get_user(), self.get_success_url())

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        """The page again; 429 while too many attempts have failed."""
        response = super().form_invalid(form)
        if isinstance(form, LogInForm) and form.throttled:
            response.status_code = 429
        return response


class SignOut(LogoutView):
    """Ends the session; POST only, so that no link of another site can do it."""


class ChoosePassword(PasswordResetConfirmView):
    """Where the link of an invitation leads: a password is chosen, and the person is logged in."""

    template_name = "evaluation/choose_password.html"
    success_url = reverse_lazy("home")

    def form_valid(self, form: "SetPasswordForm[User]") -> HttpResponse:
        """The password is theirs from now on."""
        super().form_valid(form)
        audit.record(form.user, "password.chosen", form.user)
        return let_in(self.request, form.user, str(self.success_url))


class Account(PasswordChangeView):
    """The own password and the own tokens."""

    template_name = "evaluation/account.html"
    success_url = reverse_lazy("account")
    extra_context = {**SignIn.extra_context, "second_factor": settings.CONCORD_SECOND_FACTOR != "off"}

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        """The form of the password, the tokens, and a form for a new one."""
        me = person(self.request)
        return super().get_context_data(**own_tokens(me, OwnTokenForm(me)), **kwargs)

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        """The new password; all other sessions of the person end."""
        response = super().form_valid(form)
        audit.record(form.user, "password.changed", form.user)
        messages.success(self.request, gettext("Your password is changed. You are logged out everywhere else."))
        return response


@signed_in_get
def kept(request: HttpRequest) -> HttpResponse:
    """What is kept of people and their work, and for how long."""
    days = settings.CONCORD_REPLY_DAYS
    sessions = settings.SESSION_COOKIE_AGE // 86_400
    return render(request, "evaluation/kept.html", {"reply_days": days, "session_days": sessions})


def own_tokens(person: User, form: OwnTokenForm) -> dict[str, Any]:
    """The person's tokens that still work, the newest first, and the form for another."""
    tokens = ApiToken.objects.filter(user=person, revoked_at=None, expires_at__gt=timezone.now())
    return {"tokens": tokens.select_related("project").order_by("-pk"), "token_form": form}


@signed_in_post
def make_token(request: HttpRequest) -> HttpResponse:
    """A token of one's own; its text is shown this once and kept nowhere."""
    me = person(request)
    form = OwnTokenForm(me, request.POST)
    if not form.is_valid():
        return render(request, Account.template_name, {"form": PasswordChangeForm(me), **own_tokens(me, form)})
    text, token = form.made()
    return render(request, "evaluation/token.html", {"token": token, "text": text})


@signed_in_post
def revoke_token(request: HttpRequest, pk: int) -> HttpResponse:
    """End one of one's own tokens."""
    token = get_object_or_404(ApiToken, pk=pk, user=person(request), revoked_at=None)
    token.revoked_at = timezone.now()
    token.save(update_fields=["revoked_at"])
    audit.record(person(request), "token.revoked", token)
    messages.success(request, gettext("The token no longer works."))
    return redirect("account")


@require_POST
def choose_language(request: HttpRequest) -> HttpResponse:
    """Remember the language in a cookie and, for a known person, with the person; then back to the page."""
    target = request.POST.get("next", "")
    if not url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure()):
        target = reverse("home")
    response = HttpResponseRedirect(target)
    language = request.POST.get("language", "")
    if language in dict(settings.LANGUAGES):
        response.set_cookie(
            settings.LANGUAGE_COOKIE_NAME,
            language,
            max_age=YEAR,
            samesite="Lax",
            secure=request.is_secure(),
            httponly=True,
        )
        if isinstance(request.user, User):
            User.objects.filter(pk=request.user.pk).update(language=language)
    return response


@require_safe
def favicon(request: HttpRequest) -> HttpResponsePermanentRedirect:
    """Where the icon is."""
    return HttpResponsePermanentRedirect(static("favicon.ico"))


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
    return render(request, "evaluation/question_set_list.html", {"page": SetListPage(shown, several, imports)})


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
    return render(request, "evaluation/question_set.html", {"page": page})


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
    return render(request, "evaluation/upload_preview.html", {"page": page})


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
    return render(request, "evaluation/upload.html", {"page": page}, status=status)


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
