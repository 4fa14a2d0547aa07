"""Admin of judges, rubrics and endpoints."""

from __future__ import annotations

from typing import Any, ClassVar

import yaml
from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html_join
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.accounts import access
from evaluation.accounts.access import acts_only, signed_in_user
from evaluation.accounts.role_admin import ReadOnlyAdmin, SaveAndTryAdmin
from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError, InvalidFile, UnknownName
from evaluation.core.roles import Action
from evaluation.criteria.rubrics import MAX_REASON_LENGTH, activate, draft, retire, rubric_scope, version_statuses
from evaluation.criteria.services import foreign_rubrics
from evaluation.judges.clients import check_parameters
from evaluation.judges.secrets import may_hold_key, store_key
from evaluation.judges.shipped import BASELINE, save_judge
from evaluation.judging.draft_checks import check_draft, rubric_yaml
from evaluation.judging.providers.catalogue import endpoint_providers
from evaluation.judging.rubric import Rubric, is_criterion, parse_rubric
from evaluation.messages.explanations import explain, explain_refusal, translate_parser_message
from evaluation.models import Endpoint, JudgeVersion, Project, RubricVersion
from evaluation.models.judges import provider_choices
from evaluation.network.origins import AllowList, parse_origin


class EndpointForm(forms.ModelForm):
    """Endpoint form. The origin must be on the operator's allow-list, and a key is valid for one origin only.

    A stored key can be replaced or removed, never read."""

    key = forms.CharField(
        label=_("Key to store"),
        required=False,
        max_length=2000,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password", "size": 40}),
        help_text=_("Stored encrypted and never shown again. Leave empty to keep the stored key."),
    )
    forget_key = forms.BooleanField(label=_("Delete the stored key"), required=False)
    try_model = forms.CharField(
        label=_("Model to try"),
        required=False,
        max_length=200,
        help_text=_("Used only by “Save and try” for one or a few test calls. Not saved."),
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
            "key_env": _(
                "Must begin with CONCORD_KEY_. Or leave empty and store the key below. Without any key, calls to "
                "Amazon Bedrock are signed with the AWS credentials of web and workers."
            ),
        }

    key_dropped = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "base_url" in self.fields:
            allowed = ", ".join(settings.CONCORD_JUDGE_ORIGINS)
            titles = dict(provider_choices())
            examples = "; ".join(f"{titles[provider.name]}: {provider.address}" for provider in endpoint_providers())
            help_text = gettext("Examples: %(examples)s. Allowed addresses: %(allowed)s")
            no_origin_text = gettext(
                "No addresses are allowed yet. Ask an operator to add them to CONCORD_JUDGE_ORIGINS."
            )
            texts = {"allowed": allowed, "examples": examples}
            self.fields["base_url"].help_text = help_text % texts if allowed else no_origin_text

    def clean_base_url(self) -> str:
        url: str = self.cleaned_data["base_url"]
        try:
            AllowList(settings.CONCORD_JUDGE_ORIGINS).check(url)
        except DomainError as refusal:
            raise forms.ValidationError(explain_refusal(refusal)) from refusal
        return url

    def clean_key_env(self) -> str:
        variable: str = self.cleaned_data["key_env"]
        if not may_hold_key(variable):
            raise forms.ValidationError(explain_refusal(DomainError("key_name", variable=variable)))
        return variable

    def clean(self) -> dict[str, Any]:
        """Drop both kinds of key when the origin changes, unless a new key is entered."""
        cleaned = super().clean() or self.cleaned_data
        stored = Endpoint.objects.filter(pk=self.instance.pk).first() if self.instance.pk else None
        if cleaned.get("key") and cleaned.get("forget_key"):
            self.add_error("forget_key", gettext("Either store a new key or delete the stored one, not both."))
        if (
            stored is None
            or "base_url" not in cleaned
            or parse_origin(cleaned["base_url"]) == parse_origin(stored.base_url)
        ):
            return cleaned
        if stored.key_env and cleaned.get("key_env") == stored.key_env:
            cleaned["key_env"] = ""
            self.key_dropped = True
        if stored.sealed_key and not cleaned.get("key"):
            cleaned["forget_key"] = self.key_dropped = True
        return cleaned

    def save(self, commit: bool = True) -> Endpoint:
        """Save the endpoint with its key sealed for the current origin."""
        cleaned = self.cleaned_data
        if cleaned.get("key") or cleaned.get("forget_key"):
            store_key(self.instance, cleaned.get("key", ""))
        endpoint: Endpoint = super().save(commit)
        return endpoint


@admin.register(Endpoint)
class EndpointAdmin(SaveAndTryAdmin):
    """Servers of judges and embeddings."""

    path = ""
    view_action = add_action = change_action = Action.ADMINISTER
    form = EndpointForm
    list_display = ("name", "base_url", "key_env", "has_stored_key", "max_concurrency", "batches", "cooldown_until")
    readonly_fields = ("has_stored_key", "tried_by")

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        stored = ("has_stored_key", "forget_key", "tried_by") if obj else ()
        return (
            (None, {"fields": ("name", "provider", "base_url", "try_model")}),
            (_("Key"), {"fields": ("key_env", "key", *stored)}),
            (_("Call limits"), {"fields": ("max_concurrency", "requests_per_minute", "tokens_per_minute")}),
            (
                _("Embeddings, Azure, batches"),
                {"fields": ("embedding_model", "azure_api_version", "batches"), "classes": ("collapse",)},
            ),
        )

    def get_judge(self, obj: Any, form: Any) -> JudgeVersion | None:
        """The model to try, else the newest judge of the endpoint."""
        if model := form.cleaned_data.get("try_model"):
            return JudgeVersion(endpoint=obj, name=obj.name, model=model, language=get_language() or "en")
        newest: JudgeVersion | None = obj.judges.order_by("-pk").first()
        return newest

    @admin.display(description=_("try with judge"))
    def tried_by(self, endpoint: Endpoint) -> str:
        """Links to the pages of the endpoint's judges, where it can be tried."""
        newest = {judge.name: judge for judge in endpoint.judges.order_by("version")}
        links = [(reverse("judge", args=[judge.pk]), judge) for judge in newest.values()]
        if not links:
            return gettext("Add a judge that uses this endpoint, then try it on the judge's page.")
        return format_html_join(", ", '<a href="{}">{}</a>', links)

    @admin.display(boolean=True, description=_("key stored"))
    def has_stored_key(self, endpoint: Endpoint) -> bool:
        return bool(endpoint.sealed_key)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Save, and warn if the key was dropped."""
        super().save_model(request, obj, form, change)
        if form.key_dropped:
            messages.warning(request, gettext("The origin changed, so the key was removed. Enter it again."))


Sections = tuple[tuple[Any, dict[str, Any]], ...]
LANGUAGES = [("en", _("English")), ("ko", _("Korean"))]


class VersionAdmin(ReadOnlyAdmin):
    """Admin of immutable versions. Adding creates the next version; ``?from=ID`` starts from an earlier one."""

    add_action = Action.EVALUATE
    # Fieldsets of the add form.
    sections: Sections = ()

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        return super().get_fieldsets(request, obj) if obj or not self.sections else self.sections

    def build_version(self, request: HttpRequest, form: Any) -> Any:
        """Create the version of a valid form."""
        raise NotImplementedError

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Limit the projects to those in which the user may draft."""
        form = super().get_form(request, obj, change, **kwargs)
        field = form.base_fields.get("project")
        if isinstance(field, forms.ModelChoiceField):
            field.queryset = access.projects_with(request.user, Action.EVALUATE)
        return form

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return super().get_fields(request, obj) if obj else list(self.form.base_fields)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store the version, or select the existing one with equal content."""
        version = self.build_version(request, form)
        obj.__dict__.update(version.__dict__)
        self.record_event(request, "admin.version", version, hash=version.content_hash)
        messages.info(request, gettext("Saved as %(version)s.") % {"version": version})

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Do nothing: a version has no related rows."""

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Values of the version to start from, if one is named and visible."""
        row = self.get_queryset(request).filter(pk=parse_int(request.GET.get("from", "")) or 0).first()
        return self.initial_values(row) if row else {}

    def initial_values(self, row: Any) -> dict[str, Any]:
        """Form values of a version."""
        raise NotImplementedError


USUAL_PARAMETERS = ("temperature", "top_p", "max_tokens", "seed")


class VersionForm(forms.ModelForm):
    """Base form of versions."""

    def validate_unique(self) -> None:
        """Accept equal content, which selects the existing version."""


class JudgeForm(VersionForm):
    """Endpoint, model and parameters of a judge. Usual parameters have their own fields, others are JSON."""

    language = forms.ChoiceField(label=_("Rubric language"), choices=LANGUAGES)
    temperature = forms.FloatField(
        label=_("temperature"),
        required=False,
        min_value=0,
        max_value=2,
        help_text=_("0 makes the judge's replies as repeatable as possible. Leave empty for the server's default."),
    )
    top_p = forms.FloatField(label="top_p", required=False, min_value=0, max_value=1)
    max_tokens = forms.IntegerField(
        label=_("maximum reply length (tokens)"),
        required=False,
        min_value=1,
        max_value=1_000_000,
        help_text=_("If a reply is cut off, it is requested again with twice this limit."),
    )
    seed = forms.IntegerField(label=_("seed"), required=False, min_value=0, max_value=2**53)
    params = forms.JSONField(
        label=_("other parameters"),
        required=False,
        initial=dict,
        help_text=_("Advanced: additional parameters of the provider as JSON."),
    )

    class Meta:
        model = JudgeVersion
        fields = ("project", "name", "endpoint", "model", "language", "params", "method")

    def clean_params(self) -> dict[str, Any]:
        params = self.cleaned_data.get("params") or {}
        if not isinstance(params, dict):
            raise forms.ValidationError(gettext("Enter a JSON object, such as {}."))
        return params

    def clean(self) -> dict[str, Any]:
        """Reject parameters that are given both as a field and in JSON, and those that the provider does not take."""
        cleaned = super().clean() or self.cleaned_data
        params = cleaned.get("params") or {}
        if duplicates := [name for name in USUAL_PARAMETERS if name in params and cleaned.get(name) is not None]:
            text = gettext("Use the separate fields for: %(names)s") % {"names": ", ".join(duplicates)}
            self.add_error("params", text)
        if not self.errors:
            try:
                check_parameters(cleaned["endpoint"], self.parameters, cleaned["method"])
            except DomainError as refusal:
                raise forms.ValidationError(explain_refusal(refusal)) from refusal
        return cleaned

    @property
    def parameters(self) -> dict[str, Any]:
        """All parameters. Whole floats become integers, so that 0 and 0.0 are one version."""
        values = {name: self.cleaned_data[name] for name in USUAL_PARAMETERS}
        usual = {
            name: int(number) if number == int(number) else number
            for name, number in values.items()
            if number is not None
        }
        return {**usual, **self.cleaned_data["params"]}

    def clean_name(self) -> str:
        """Reject the name of the offline baseline."""
        name: str = self.cleaned_data["name"]
        if name.split("@")[0] == BASELINE:
            raise forms.ValidationError(gettext("This name is reserved for the offline baseline."))
        return name

    def clean_endpoint(self) -> Endpoint:
        """Require an endpoint; only the built-in offline baseline has none."""
        endpoint: Endpoint | None = self.cleaned_data.get("endpoint")
        if endpoint is None:
            raise forms.ValidationError(gettext("Choose an endpoint."))
        return endpoint


@admin.register(JudgeVersion)
class JudgeVersionAdmin(SaveAndTryAdmin, VersionAdmin):
    site_url_name = "judge"
    form = JudgeForm
    sections = (
        (None, {"fields": ("project", "name", "endpoint", "model", "language")}),
        (_("Parameters"), {"fields": USUAL_PARAMETERS}),
        (_("Advanced"), {"fields": ("method", "params"), "classes": ("collapse",)}),
    )
    list_display = ("name", "version", "endpoint", "model", "language", "project", "created_at")
    list_filter = ("project",)
    list_select_related = ("endpoint", "project")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Show the parameters as one column on existing versions."""
        fields = super().get_fields(request, obj)
        return [name for name in fields if name not in USUAL_PARAMETERS] if obj else fields

    def get_judge(self, obj: Any, form: Any) -> JudgeVersion | None:
        saved: JudgeVersion = obj
        return saved

    def build_version(self, request: HttpRequest, form: Any) -> JudgeVersion:
        cleaned = form.cleaned_data
        return save_judge(
            cleaned["project"],
            cleaned["name"],
            cleaned["endpoint"],
            model=cleaned["model"],
            language=cleaned["language"],
            params=form.parameters,
            method=cleaned["method"],
        )

    def initial_values(self, row: JudgeVersion) -> dict[str, Any]:
        values = {name: getattr(row, name) for name in JudgeForm.Meta.fields}
        usual = {name: row.params[name] for name in USUAL_PARAMETERS if name in row.params}
        return values | usual | {"params": {name: value for name, value in row.params.items() if name not in usual}}


class YamlForm(VersionForm):
    """A version as YAML text, with problems shown at the field."""

    text = forms.CharField(label="YAML", widget=forms.Textarea(attrs={"rows": 30, "cols": 100, "spellcheck": "false"}))


class RubricForm(YamlForm):
    project = forms.ModelChoiceField(Project.objects.none(), label=_("project"))
    note = forms.CharField(label=_("reason"), required=False, max_length=MAX_REASON_LENGTH)

    class Meta:
        model = RubricVersion
        fields = ("project", "text", "note")

    def clean_text(self) -> Rubric:
        """Parse the rubric and check that only its wording differs from the shipped one."""
        try:
            rubric = parse_rubric(self.cleaned_data["text"])
            check_draft(rubric)
        except InvalidFile as refusal:
            raise forms.ValidationError([explain(problem) for problem in refusal.problems]) from refusal
        except DomainError as refusal:
            raise forms.ValidationError(explain_refusal(refusal)) from refusal
        except UnknownName as unknown:
            raise forms.ValidationError(translate_parser_message(str(unknown))) from unknown
        return rubric


@admin.register(RubricVersion)
class RubricVersionAdmin(VersionAdmin):
    """Rubrics of the site, without those of other projects. A new version is a draft: only runs that name it use it,
    until a lead activates it on its page."""

    path = ""
    form = RubricForm
    list_display = ("family", "language", "version", "project", "created_at", "created_by")
    list_filter = ("language",)
    list_select_related = ("project", "created_by")
    search_fields = ("family",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Rubrics visible in the user's projects."""
        own_projects = access.projects_with(request.user, self.view_action).values_list("pk", flat=True)
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.exclude(pk__in=foreign_rubrics(own_projects).values("pk"))

    def build_version(self, request: HttpRequest, form: Any) -> RubricVersion:
        cleaned = form.cleaned_data
        return draft(cleaned["project"], cleaned["text"], by=signed_in_user(request), note=cleaned["note"])

    def initial_values(self, row: RubricVersion) -> dict[str, Any]:
        return {"text": rubric_yaml(row.rubric), "project": row.project_id}

    def get_urls(self) -> list[URLPattern]:
        wrapped = self.admin_site.admin_view
        decide_path = path("<int:pk>/decide/", wrapped(acts_only(self.decide_view)), name="rubric-decide")
        return [decide_path, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Page of a version: its text, status per judge, and a lead's actions."""
        row = self.get_object(request, object_id)
        if row is None or is_criterion(row.family):
            response: HttpResponse = super().change_view(request, object_id, form_url, extra_context)
            return response
        judges = _judges_for(request, row, Action.VIEW)
        activatable = {judge.pk for judge in _judges_for(request, row, Action.ACTIVATE)}
        page = {
            "version": row,
            "text": rubric_yaml(row.rubric),
            "judges": [
                (judge, version_statuses(rubric_scope(judge, row.family)), judge.pk in activatable) for judge in judges
            ],
            "events": row.events.filter(project__in=access.projects_with(request.user, Action.VIEW)).order_by("-pk"),
        }
        page["judges"] = [
            (judge, statuses.status_of(row), statuses.active, may) for judge, statuses, may in page["judges"]
        ]
        context = {**self.admin_site.each_context(request), "page": page, "opts": self.opts, "title": str(row)}
        return render(request, "admin/rubric.html", context)

    def decide_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Activate the version for a judge, or return to the shipped one, with a recorded reason."""
        row = self.get_object(request, str(pk))
        if row is None:
            raise Http404
        judge_id = parse_int(request.POST.get("judge", ""), 18) or 0
        judge = access.fetch(JudgeVersion.objects.all(), request.user, Action.ACTIVATE, judge_id, path="project_id")
        try:
            reason = request.POST.get("reason", "")
            if request.POST.get("do") == "retire":
                event = retire(judge, row.family, by=signed_in_user(request), reason=reason)
            else:
                event = activate(row, judge, by=signed_in_user(request), reason=reason)
            messages.success(request, str(event))
        except DomainError as refusal:
            messages.error(request, explain_refusal(refusal))
        return HttpResponseRedirect(reverse("admin:evaluation_rubricversion_change", args=[pk]))


def _judges_for(request: HttpRequest, row: RubricVersion, action: Action) -> list[JudgeVersion]:
    """Newest version of each judge that could use the rubric, in projects where the user may perform the action."""
    projects = access.projects_with(request.user, action)
    rows = JudgeVersion.objects.filter(project__in=projects).exclude(endpoint=None).select_related("project")
    if row.project_id:
        rows = rows.filter(project=row.project_id)
    newest = {(judge.project_id, judge.name): judge for judge in rows.order_by("version")}
    return [judge for judge in newest.values() if rubric_scope(judge, row.family).language == row.language]


def spec_as_yaml(spec: dict[str, Any]) -> str:
    return yaml.safe_dump(spec, allow_unicode=True, sort_keys=False, width=110)
