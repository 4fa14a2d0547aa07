"""Question sets, answers and runs, looked at here and driven from their pages; and judges' endpoints."""

from collections.abc import Callable
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import Count, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext, ngettext
from django.utils.translation import gettext_lazy as _

from evaluation.accounts import access
from evaluation.accounts.access import person
from evaluation.admin.rights import ReadOnlyAdmin, TriedAdmin
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.judges.secrets import may_hold_key, store_key
from evaluation.messages.sentences import explain_refusal
from evaluation.models import (
    AnswerSet,
    Endpoint,
    ImportBatch,
    JudgeVersion,
    Question,
    QuestionSet,
    Run,
    RunEvent,
    User,
)
from evaluation.network.origins import AllowList, origin_of
from evaluation.runs.making import resume_run
from evaluation.worker import lifecycle


@admin.register(QuestionSet)
class QuestionSetAdmin(ReadOnlyAdmin):
    """Versions of question sets. "Add" leads to the upload with its preview."""

    site_page = "question-set"
    add = Action.EVALUATE
    list_display = ("name", "version", "project", "questions", "created_at", "created_by")
    list_filter = ("project",)
    search_fields = ("name",)
    ordering = ("-created_at",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """With the number of questions."""
        rows = super().get_queryset(request).select_related("project", "created_by")
        counted: QuerySet[Any] = rows.annotate(n=Count("questions"))
        return counted

    @admin.display(description=_("questions"))
    def questions(self, row: Any) -> int:
        """How many questions the version has."""
        return int(row.n)

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """To the upload page: a set is a file with a preview, not a form."""
        return redirect("question-set-upload")


@admin.register(Question)
class QuestionAdmin(ReadOnlyAdmin):
    """Questions of all versions."""

    path = "question_set__project_id"
    list_display = ("external_id", "question_set", "category", "difficulty", "text")
    list_filter = ("category",)
    search_fields = ("external_id", "text")
    list_select_related = ("question_set",)


@admin.register(ImportBatch)
class ImportBatchAdmin(ReadOnlyAdmin):
    """Uploads between preview and confirmation."""

    list_display = ("file_name", "kind", "name", "rows", "state", "created_at", "created_by")
    list_filter = ("state", "kind")
    exclude = ("content",)


class EndpointForm(forms.ModelForm):
    """An endpoint; its origin must stand on the operator's list, and a key stays with the origin it was given for.

    A stored key can be written and forgotten here, never read.
    """

    key = forms.CharField(
        label=_("key to store"),
        required=False,
        max_length=2000,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password", "size": 40}),
        help_text=_("Kept encrypted and never shown again. Leave it empty to keep the key that is stored."),
    )
    forget_key = forms.BooleanField(label=_("forget the stored key"), required=False)
    try_model = forms.CharField(
        label=_("model to try"),
        required=False,
        max_length=200,
        help_text=_("For “Save and try” alone, which asks it once or a few times; it is not kept."),
    )

    class Meta:
        model = Endpoint
        fields = (
            "name",
            "provider",
            "base_url",
            "key_env",
            "max_concurrency",
            "requests_per_minute",
            "tokens_per_minute",
            "embedding_model",
            "azure_api_version",
            "batches",
        )
        help_texts: ClassVar = {
            "key_env": _("Its name begins with CONCORD_KEY_. Or leave it empty and store the key below."),
        }

    key_dropped = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Say beforehand which addresses are allowed."""
        super().__init__(*args, **kwargs)
        if "base_url" in self.fields:
            allowed = ", ".join(settings.CONCORD_JUDGE_ORIGINS)
            told = gettext("As in https://llm.example/v1. The operator allows: %(allowed)s")
            none = gettext("The operator allows no address yet: CONCORD_JUDGE_ORIGINS lists them.")
            self.fields["base_url"].help_text = told % {"allowed": allowed} if allowed else none

    def clean_base_url(self) -> str:
        """An address that may be called."""
        url: str = self.cleaned_data["base_url"]
        try:
            AllowList(settings.CONCORD_JUDGE_ORIGINS).check(url)
        except Refused as refused:
            raise forms.ValidationError(explain_refusal(refused)) from refused
        return url

    def clean_key_env(self) -> str:
        """A variable that is for keys."""
        variable: str = self.cleaned_data["key_env"]
        if not may_hold_key(variable):
            raise forms.ValidationError(explain_refusal(Refused("key_name", variable=variable)))
        return variable

    def clean(self) -> dict[str, Any]:
        """Another origin drops both kinds of key, unless another one is given with it."""
        said = super().clean() or self.cleaned_data
        old = Endpoint.objects.filter(pk=self.instance.pk).first() if self.instance.pk else None
        if said.get("key") and said.get("forget_key"):
            self.add_error("forget_key", gettext("A key is either stored or forgotten."))
        if old is None or "base_url" not in said or origin_of(said["base_url"]) == origin_of(old.base_url):
            return said
        if old.key_env and said.get("key_env") == old.key_env:
            said["key_env"] = ""
            self.key_dropped = True
        if old.sealed_key and not said.get("key"):
            said["forget_key"] = self.key_dropped = True
        return said

    def save(self, commit: bool = True) -> Endpoint:
        """The endpoint with its key sealed for the origin it now has."""
        said = self.cleaned_data
        if said.get("key") or said.get("forget_key"):
            store_key(self.instance, said.get("key", ""))
        endpoint: Endpoint = super().save(commit)
        return endpoint


@admin.register(Endpoint)
class EndpointAdmin(TriedAdmin):
    """Servers of judges and embeddings."""

    path = ""
    view = add = change = Action.ADMINISTER
    form = EndpointForm
    list_display = ("name", "base_url", "key_env", "has_stored_key", "max_concurrency", "batches", "cooldown_until")
    readonly_fields = ("has_stored_key", "tried_by")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """What every endpoint needs, then what few do; what is of a stored key once there may be one."""
        stored = ("has_stored_key", "forget_key", "tried_by") if obj else ()
        return (
            (None, {"fields": ("name", "provider", "base_url", "try_model")}),
            (_("Key"), {"fields": ("key_env", "key", *stored)}),
            (_("How much at once"), {"fields": ("max_concurrency", "requests_per_minute", "tokens_per_minute")}),
            (
                _("Embeddings, Azure, batches"),
                {"fields": ("embedding_model", "azure_api_version", "batches"), "classes": ("collapse",)},
            ),
        )

    def judge_of(self, obj: Any, form: Any) -> JudgeVersion | None:
        """The model that was named, else the newest judge that uses the endpoint."""
        if model := form.cleaned_data.get("try_model"):
            return JudgeVersion(endpoint=obj, name=obj.name, model=model, language=get_language() or "en")
        newest: JudgeVersion | None = obj.judges.order_by("-pk").first()
        return newest

    @admin.display(description=_("try it"))
    def tried_by(self, endpoint: Endpoint) -> str:
        """The pages of its judges, where a few calls show what comes back."""
        newest = {judge.name: judge for judge in endpoint.judges.order_by("version")}
        links = [(reverse("judge", args=[judge.pk]), judge) for judge in newest.values()]
        if not links:
            return gettext("Add a judge that uses it; on the judge's page it is tried.")
        return format_html_join(", ", '<a href="{}">{}</a>', links)

    @admin.display(boolean=True, description=_("key stored"))
    def has_stored_key(self, endpoint: Endpoint) -> bool:
        """Whether a key is stored, and nothing more of it."""
        return bool(endpoint.sealed_key)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save, and say where the key was dropped."""
        super().save_model(request, obj, form, change)
        if form.key_dropped:
            messages.warning(request, gettext("The origin changed, so the key was removed. Enter it again."))


@admin.register(AnswerSet)
class AnswerSetAdmin(ReadOnlyAdmin):
    """What systems answered, one asking a row. "Add" leads to the page for new evaluations."""

    add = Action.EVALUATE
    list_display = ("question_set", "system_version", "evaluation_type", "k", "source", "created_at")
    list_filter = ("evaluation_type",)
    list_select_related = ("question_set", "system_version__system")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """To the page with its preview."""
        return redirect("evaluation-new")


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Runs with a link to their page. "Add" leads to the page for new evaluations; chosen runs are steered here."""

    site_page = "run"
    add = Action.EVALUATE
    actions = ("start", "pause", "resume", "cancel", "retry")
    list_display = ("name_or_number", "state", "answer_set", "profile_version", "created_at", "page")
    list_filter = ("state", "project")
    search_fields = ("name",)
    ordering = ("-id",)
    list_select_related = ("answer_set__question_set", "answer_set__system_version__system", "profile_version")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """To the page that shows what a run takes before it starts."""
        return redirect("evaluation-new")

    @admin.action(description=_("Start drafts"), permissions=["steer"])
    def start(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        """Of drafts."""
        self._steer(request, runs, lifecycle.start)

    @admin.action(description=_("Pause"), permissions=["steer"])
    def pause(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        """Of running ones."""
        self._steer(request, runs, lifecycle.pause)

    @admin.action(description=_("Resume"), permissions=["steer"])
    def resume(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        """Of paused ones."""
        self._steer(request, runs, resume_run)

    @admin.action(description=_("Cancel for good"), permissions=["steer"])
    def cancel(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        """Of all that have not ended."""
        self._steer(request, runs, lifecycle.cancel)

    @admin.action(description=_("Try again what failed"), permissions=["steer"])
    def retry(self, request: HttpRequest, runs: QuerySet[Run]) -> None:
        """Of all in which something failed."""
        self._steer(request, runs, lifecycle.retry_failed)

    def has_steer_permission(self, request: HttpRequest) -> bool:
        """Who may start runs."""
        return self.has_add_permission(request)

    def _steer(self, request: HttpRequest, runs: QuerySet[Run], step: Callable[[Run, User], object]) -> None:
        """Do it with every run of a project in which the person may; say of each other why not."""
        mine = access.visible(runs, request.user, Action.EVALUATE)
        for run in mine:
            try:
                if not step(run, person(request)):
                    text = gettext("%(run)s was in another state; nothing was changed.") % {"run": run}
                    messages.warning(request, text)
            except Refused as refused:
                messages.error(request, f"{run}: {explain_refusal(refused)}")
        if left := runs.count() - mine.count():
            text = ngettext("%(count)d run is not yours to steer.", "%(count)d runs are not yours to steer.", left)
            messages.warning(request, text % {"count": left})

    @admin.display(description=_("run"))
    def name_or_number(self, row: Run) -> str:
        """The run as pages call it."""
        return str(row)

    @admin.display(description=_("page"))
    def page(self, row: Run) -> SafeString:
        """The run's own page."""
        return format_html('<a href="{}">{}</a>', reverse("run", args=[row.pk]), _("Open"))


@admin.register(RunEvent)
class RunEventAdmin(ReadOnlyAdmin):
    """What happened to runs."""

    path = "run__project_id"
    list_display = ("run", "verb", "reason", "created_at", "created_by")
    list_filter = ("verb",)
    list_select_related = (f"run__{Run.NAMED_BY}", "created_by")
