"""Judges, rubrics and endpoints in the back office."""

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
from django.views.decorators.http import require_POST

from evaluation.accounts import access
from evaluation.accounts.access import person
from evaluation.accounts.role_admin import ReadOnlyAdmin, TriedAdmin
from evaluation.core.canonical import whole_number
from evaluation.core.errors import InvalidFile, Refused, UnknownName
from evaluation.core.roles import Action
from evaluation.criteria.rubrics import LONGEST_REASON, activate, draft, retire, slot_of, standings
from evaluation.criteria.services import rubrics_of_others
from evaluation.judges.secrets import may_hold_key, store_key
from evaluation.judges.shipping import BASELINE, save_judge
from evaluation.judging.drafting import as_yaml, check_draft
from evaluation.judging.rubric import Rubric, is_criterion, parse_rubric
from evaluation.messages.sentences import explain, explain_refusal, in_words
from evaluation.models import Endpoint, JudgeVersion, Project, RubricVersion
from evaluation.network.origins import AllowList, origin_of


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


Sections = tuple[tuple[Any, dict[str, Any]], ...]
LANGUAGES = [("en", _("English")), ("ko", _("Korean"))]


class VersionAdmin(ReadOnlyAdmin):
    """Adding makes the next version. ``?from=ID`` starts from an earlier one."""

    add = Action.EVALUATE
    sections: Sections = ()  # of the form, where it has several

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """The form in its sections when adding; the columns when looking."""
        return super().get_fieldsets(request, obj) if obj or not self.sections else self.sections

    def make(self, request: HttpRequest, form: Any) -> Any:
        """The version that the valid form asks for."""
        raise NotImplementedError

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """Only projects in which the person may draft."""
        form = super().get_form(request, obj, change, **kwargs)
        field = form.base_fields.get("project")
        if isinstance(field, forms.ModelChoiceField):
            field.queryset = access.projects_with(request.user, Action.EVALUATE)
        return form

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The form's own fields when adding; the columns when looking."""
        return super().get_fields(request, obj) if obj else list(self.form.base_fields)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store the version the form asks for, unless there is one with its content."""
        made = self.make(request, form)
        obj.__dict__.update(made.__dict__)
        self.note(request, "admin.version", made, hash=made.content_hash)
        messages.info(request, gettext("%(version)s holds this content now.") % {"version": made})

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """There is nothing beside the row."""

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """The form's values of the version to start from, if one is named and may be seen."""
        row = self.get_queryset(request).filter(pk=whole_number(request.GET.get("from", "")) or 0).first()
        return self.values_of(row) if row else {}

    def values_of(self, row: Any) -> dict[str, Any]:
        """The form's values of a version."""
        raise NotImplementedError


USUAL_PARAMETERS = ("temperature", "top_p", "max_tokens", "seed")


class VersionForm(forms.ModelForm):
    """What makes a version."""

    def validate_unique(self) -> None:
        """Equal content selects the version that has it."""


class JudgeForm(VersionForm):
    """Endpoint, model and parameters of a judge: the usual ones in fields of their own, others as JSON."""

    language = forms.ChoiceField(label=_("rubric language"), choices=LANGUAGES)
    temperature = forms.FloatField(
        label=_("temperature"),
        required=False,
        min_value=0,
        max_value=2,
        help_text=_("0 makes a judge say the same again as far as it can. Empty leaves it to the server."),
    )
    top_p = forms.FloatField(label="top_p", required=False, min_value=0, max_value=1)
    max_tokens = forms.IntegerField(
        label=_("longest reply, tokens"),
        required=False,
        min_value=1,
        max_value=1_000_000,
        help_text=_("A reply that is cut off is asked for again with twice as many."),
    )
    seed = forms.IntegerField(label=_("seed"), required=False, min_value=0, max_value=2**53)
    params = forms.JSONField(
        label=_("further parameters"),
        required=False,
        initial=dict,
        help_text=_("JSON: further members of the request, for experts."),
    )

    class Meta:
        model = JudgeVersion
        fields = ("project", "name", "endpoint", "model", "language", "params", "method")

    def clean_params(self) -> dict[str, Any]:
        """An object: the expert's door to everything."""
        said = self.cleaned_data.get("params") or {}
        if not isinstance(said, dict):
            raise forms.ValidationError(gettext("An object is expected, such as {}."))
        return said

    def clean(self) -> dict[str, Any]:
        """Nothing is said twice."""
        said = super().clean() or self.cleaned_data
        given = said.get("params") or {}
        if twice := [name for name in USUAL_PARAMETERS if name in given and said.get(name) is not None]:
            text = gettext("These have fields of their own: %(names)s") % {"names": ", ".join(twice)}
            self.add_error("params", text)
        return said

    @property
    def parameters(self) -> dict[str, Any]:
        """All of them together; whole numbers as such, so that 0 and 0.0 are no two versions."""
        said = {name: self.cleaned_data[name] for name in USUAL_PARAMETERS}
        usual = {name: int(one) if one == int(one) else one for name, one in said.items() if one is not None}
        return {**usual, **self.cleaned_data["params"]}

    def clean_name(self) -> str:
        """The baseline's name is taken."""
        name: str = self.cleaned_data["name"]
        if name.split("@")[0] == BASELINE:
            raise forms.ValidationError(gettext("That is the name of the offline baseline."))
        return name

    def clean_endpoint(self) -> Endpoint:
        """A judge without an endpoint is the offline baseline, which the product makes itself."""
        endpoint: Endpoint | None = self.cleaned_data.get("endpoint")
        if endpoint is None:
            raise forms.ValidationError(gettext("Choose an endpoint."))
        return endpoint


@admin.register(JudgeVersion)
class JudgeVersionAdmin(TriedAdmin, VersionAdmin):
    """Judges."""

    site_page = "judge"
    form = JudgeForm
    sections = (
        (None, {"fields": ("project", "name", "endpoint", "model", "language")}),
        (_("How it is asked"), {"fields": USUAL_PARAMETERS}),
        (_("For experts"), {"fields": ("method", "params"), "classes": ("collapse",)}),
    )
    list_display = ("name", "version", "endpoint", "model", "language", "project", "created_at")
    list_filter = ("project",)
    list_select_related = ("endpoint", "project")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Parameters that have fields of their own when adding are in one column when looking."""
        fields = super().get_fields(request, obj)
        return [name for name in fields if name not in USUAL_PARAMETERS] if obj else fields

    def judge_of(self, obj: Any, form: Any) -> JudgeVersion | None:
        """The version that was saved."""
        saved: JudgeVersion = obj
        return saved

    def make(self, request: HttpRequest, form: Any) -> JudgeVersion:
        """The judge version of the form's values."""
        said = form.cleaned_data
        return save_judge(
            said["project"],
            said["name"],
            said["endpoint"],
            model=said["model"],
            language=said["language"],
            params=form.parameters,
            method=said["method"],
        )

    def values_of(self, row: JudgeVersion) -> dict[str, Any]:
        """Its columns."""
        values = {name: getattr(row, name) for name in JudgeForm.Meta.fields}
        usual = {name: row.params[name] for name in USUAL_PARAMETERS if name in row.params}
        return values | usual | {"params": {name: one for name, one in row.params.items() if name not in usual}}


class YamlForm(VersionForm):
    """A version as YAML text; its problems stand beside the field."""

    text = forms.CharField(label="YAML", widget=forms.Textarea(attrs={"rows": 30, "cols": 100, "spellcheck": "false"}))


class RubricForm(YamlForm):
    """A rubric as YAML."""

    project = forms.ModelChoiceField(Project.objects.none(), label=_("project"))
    note = forms.CharField(label=_("why"), required=False, max_length=LONGEST_REASON)

    class Meta:
        model = RubricVersion
        fields = ("project", "text", "note")

    def clean_text(self) -> Rubric:
        """The rubric the text holds; it may differ from the shipped one in words only."""
        try:
            rubric = parse_rubric(self.cleaned_data["text"])
            check_draft(rubric)
        except InvalidFile as refused:
            raise forms.ValidationError([explain(problem) for problem in refused.problems]) from refused
        except Refused as refused:
            raise forms.ValidationError(explain_refusal(refused)) from refused
        except UnknownName as unknown:
            raise forms.ValidationError(in_words(str(unknown))) from unknown
        return rubric


@admin.register(RubricVersion)
class RubricVersionAdmin(VersionAdmin):
    """Rubrics of the whole site, but for those of other projects. A version that is added is a draft: a run that names
    it is judged by it, others once a lead puts it in force on its page."""

    path = ""
    form = RubricForm
    list_display = ("family", "language", "version", "project", "created_at", "created_by")
    list_filter = ("language",)
    list_select_related = ("project", "created_by")
    search_fields = ("family",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """What one's projects may look at."""
        own = access.projects_with(request.user, self.view).values_list("pk", flat=True)
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.exclude(pk__in=rubrics_of_others(own).values("pk"))

    def make(self, request: HttpRequest, form: Any) -> RubricVersion:
        """The draft with the text."""
        said = form.cleaned_data
        return draft(said["project"], said["text"], by=person(request), note=said["note"])

    def values_of(self, row: RubricVersion) -> dict[str, Any]:
        """Its text and project."""
        return {"text": as_yaml(row.rubric), "project": row.project_id}

    def get_urls(self) -> list[URLPattern]:
        """What a lead does with a version, beside Django's own addresses."""
        wrapped = self.admin_site.admin_view
        own = path("<int:pk>/decide/", wrapped(require_POST(self.decide_view)), name="rubric-decide")
        return [own, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """The version's own page: what it says, for which judges it is in force, and what a lead may do with it."""
        row = self.get_object(request, object_id)
        if row is None or is_criterion(row.family):
            shown: HttpResponse = super().change_view(request, object_id, form_url, extra_context)
            return shown
        judges = _judges_for(request, row, Action.VIEW)
        led = {judge.pk for judge in _judges_for(request, row, Action.ACTIVATE)}
        page = {
            "version": row,
            "text": as_yaml(row.rubric),
            "judges": [(judge, standings(slot_of(judge, row.family)), judge.pk in led) for judge in judges],
            "events": row.events.filter(project__in=access.projects_with(request.user, Action.VIEW)).order_by("-pk"),
        }
        page["judges"] = [(judge, stand.of(row), stand.active, may) for judge, stand, may in page["judges"]]
        context = {**self.admin_site.each_context(request), "page": page, "opts": self.opts, "title": str(row)}
        return render(request, "admin/rubric.html", context)

    def decide_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Put the version in force for a judge, or go back to the shipped one, for a reason that is kept."""
        row = self.get_object(request, str(pk))
        if row is None:
            raise Http404
        wanted = whole_number(request.POST.get("judge", ""), 18) or 0
        judge = access.fetch(JudgeVersion.objects.all(), request.user, Action.ACTIVATE, wanted, path="project_id")
        try:
            reason = request.POST.get("reason", "")
            if request.POST.get("do") == "retire":
                event = retire(judge, row.family, by=person(request), reason=reason)
            else:
                event = activate(row, judge, by=person(request), reason=reason)
            messages.success(request, str(event))
        except Refused as refused:
            messages.error(request, explain_refusal(refused))
        return HttpResponseRedirect(reverse("admin:evaluation_rubricversion_change", args=[pk]))


def _judges_for(request: HttpRequest, row: RubricVersion, action: Action) -> list[JudgeVersion]:
    """The newest version of each judge that could work by the rubric, in projects where the person may do this."""
    projects = access.projects_with(request.user, action)
    rows = JudgeVersion.objects.filter(project__in=projects).exclude(endpoint=None).select_related("project")
    if row.project_id:
        rows = rows.filter(project=row.project_id)
    newest = {(one.project_id, one.name): one for one in rows.order_by("version")}
    return [one for one in newest.values() if slot_of(one, row.family).language == row.language]


def spec_as_yaml(spec: dict[str, Any]) -> str:
    return yaml.safe_dump(spec, allow_unicode=True, sort_keys=False, width=110)
