"""Versions of judges, rubrics and profiles: never changed; what is entered makes the next version, or selects the
one that has the same content."""

import re
from typing import Any

import yaml
from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST
from pydantic import ValidationError

from evaluation.accounts import access
from evaluation.accounts.access import person
from evaluation.admin.rights import ReadOnlyAdmin, TriedAdmin
from evaluation.core.canonical import whole_number
from evaluation.core.described import problems_of
from evaluation.core.errors import InvalidFile, Problem, Refused, UnknownName
from evaluation.core.roles import Action
from evaluation.criteria.rubrics import LONGEST_REASON, activate, draft, retire, slot_of, standings
from evaluation.criteria.services import check_metric_names, rubrics_of_others
from evaluation.judges.shipping import BASELINE, save_judge, save_profile
from evaluation.judging.drafting import as_yaml, check_draft
from evaluation.judging.rubric import Rubric, is_criterion, parse_rubric
from evaluation.messages.sentences import explain, explain_refusal, in_words
from evaluation.models import Endpoint, JudgeVersion, MetricDefinition, ProfileVersion, Project, RubricVersion
from evaluation.profiles.spec import ProfileSpec, load_profile

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


class ProfileForm(YamlForm):
    """A profile as YAML."""

    project = forms.ModelChoiceField(Project.objects.none(), label=_("project"))

    class Meta:
        model = ProfileVersion
        fields = ("project", "text")

    def clean_text(self) -> ProfileSpec:
        """The profile the text holds."""
        try:
            return load_profile(text := self.cleaned_data["text"])
        except ValidationError as error:
            found = problems_of(error, text, "", "profile_invalid")
            raise forms.ValidationError([explain(problem) for problem in found]) from error
        except ValueError as error:
            line, told = re.match(r"(?:line (\d+): )?(?:not YAML: )?(.*)", str(error), re.DOTALL).groups()  # type: ignore[union-attr]
            problem = Problem("profile_not_yaml", line=int(line) if line else None, params={"error": told})
            raise forms.ValidationError(explain(problem)) from error

    def clean(self) -> dict[str, Any]:
        """The profile's metrics are metrics, or criteria of its project."""
        said: dict[str, Any] = super().clean() or self.cleaned_data
        project, profile = said.get("project"), said.get("text")
        if project is not None and profile is not None:
            try:
                check_metric_names(project.pk, profile.metrics)
            except UnknownName as unknown:
                self.add_error("text", _not_a_metric(unknown))
        return said


def _not_a_metric(unknown: UnknownName) -> str:
    if not unknown.near:
        return gettext("%(name)s is neither a metric nor a criterion of the project.") % {"name": unknown.name}
    said = {"name": unknown.name, "near": ", ".join(unknown.near)}
    return gettext("%(name)s is neither a metric nor a criterion of the project. Similar names: %(near)s.") % said


@admin.register(ProfileVersion)
class ProfileVersionAdmin(VersionAdmin):
    """Scoring profiles."""

    form = ProfileForm
    list_display = ("name", "version", "project", "created_at", "created_by")
    list_filter = ("project",)

    def make(self, request: HttpRequest, form: Any) -> ProfileVersion:
        """The profile version of the text."""
        return save_profile(form.cleaned_data["project"], form.cleaned_data["text"], person(request))

    def values_of(self, row: ProfileVersion) -> dict[str, Any]:
        """Its project and text."""
        return {"project": row.project_id, "text": spec_as_yaml(row.spec)}


@admin.register(MetricDefinition)
class MetricDefinitionAdmin(ReadOnlyAdmin):
    """Metrics as scores and ratings refer to them."""

    path = ""
    list_display = ("name", "version", "kind", "scale", "direction", "review_form", "rubric_family")
    list_filter = ("kind",)
    search_fields = ("name",)


def spec_as_yaml(spec: dict[str, Any]) -> str:
    return yaml.safe_dump(spec, allow_unicode=True, sort_keys=False, width=110)
