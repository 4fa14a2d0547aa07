"""Systems under test and their versions, whose form follows from the settings of the connector that is chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.translation import gettext_lazy as _
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from evaluation.accounts import access
from evaluation.accounts.access import person
from evaluation.accounts.role_admin import RoleAdmin
from evaluation.connectors.catalogue import BadSettings, read_settings
from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.judges.admin import VersionAdmin, VersionForm
from evaluation.messages.sentences import explain_refusal
from evaluation.messages.system_settings import CONNECTOR_TITLES, explain_setting, help_of, label_of
from evaluation.models import Project, System, SystemVersion
from evaluation.systems.services import check_allowed, connector_named, connectors, save_system

INNER = "__"  # between a setting and one inside it: field names hold no dot


@admin.register(System)
class SystemAdmin(RoleAdmin):
    """Systems under test by name, with the limits that hold for them."""

    add = change = Action.EVALUATE
    list_display = ("name", "project", "max_concurrency", "requests_per_minute", "cooldown_until", "created_at")
    list_filter = ("project",)
    search_fields = ("name",)

    def get_readonly_fields(self, request: object, obj: object = None) -> tuple[str, ...]:
        """A system stays in its project and keeps its name: answers refer to it."""
        return ("project", "name") if obj else ()


def _inner(info: FieldInfo) -> type[BaseModel] | None:
    kind = info.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def settings_fields(
    model: type[BaseModel], before: str = "", usual: BaseModel | None = None
) -> Iterator[tuple[str, forms.Field]]:
    """A form field for each setting, those of a setting with parts one by one, which begin as ``usual`` has them."""
    for name, info in model.model_fields.items():
        inner = _inner(info)
        default = getattr(usual, name) if usual else info.get_default(call_default_factory=True)
        if inner is None:
            yield before + name, _field(name, info, default)
        else:
            yield from settings_fields(inner, f"{before}{name}{INNER}", default if isinstance(default, inner) else None)


def _field(name: str, info: FieldInfo, default: Any) -> forms.Field:
    told: dict[str, Any] = {"label": label_of(name), "help_text": help_of(name), "required": info.is_required()}
    if not info.is_required():
        told["initial"] = default
    kind, origin = info.annotation, get_origin(info.annotation)
    if origin is Literal:
        return forms.ChoiceField(choices=[(one, one) for one in get_args(kind)], **told)
    if kind is bool:
        return forms.BooleanField(**told | {"required": False})
    if kind is int:
        return forms.IntegerField(**told)
    if kind is float:
        return forms.FloatField(**told)
    if kind is str and origin not in (Union, UnionType):
        return forms.CharField(strip=False, **told)
    return forms.JSONField(widget=forms.Textarea(attrs={"rows": 4, "cols": 80, "spellcheck": "false"}), **told)


def nested(said: Mapping[str, Any], connector: str) -> dict[str, Any]:
    """The settings in the form's values; a setting left empty keeps its default, but for texts, which may be empty."""
    found: dict[str, Any] = {}
    for path, field in settings_fields(connector_named(connector).settings):
        value = said.get(path)
        if value is None or (value == "" and isinstance(field, forms.JSONField)):
            continue
        *above, name = path.split(INNER)
        place = found
        for part in above:
            place = place.setdefault(part, {})
        place[name] = value
    return found


def flat(config: Mapping[str, Any], before: str = "", *, model: type[BaseModel]) -> dict[str, Any]:
    """The form's values of stored settings."""
    found: dict[str, Any] = {}
    for name, value in config.items():
        inner = _inner(model.model_fields[name]) if name in model.model_fields else None
        found |= {before + name: value} if inner is None else flat(value, f"{before}{name}{INNER}", model=inner)
    return found


class SystemVersionForm(VersionForm):
    """A version of a system; its settings are the connector's."""

    connector: str = ""
    project = forms.ModelChoiceField(Project.objects.none(), label=_("project"))
    system_name = forms.CharField(label=_("name"), max_length=200)

    class Meta:
        model = SystemVersion
        fields = ()

    def clean(self) -> dict[str, Any]:
        """The settings are such as the connector takes and the operator allows; every problem stands at its field."""
        said: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return said
        try:
            read = read_settings(connector_named(self.connector), nested(said, self.connector))
            check_allowed(self.connector, read, said["project"])
        except BadSettings as bad:
            for problem in bad.problems:
                field = problem.field.replace(".", INNER)
                self.add_error(field if field in self.fields else None, explain_setting(problem))
        except Refused as refused:
            self.add_error(None, explain_refusal(refused))
        return said


def form_for(connector: str) -> type[SystemVersionForm]:
    """The form of a connector's settings, with links to the others' forms."""
    others = [one for one in connectors() if one != connector]
    links = format_html_join(", ", '<a href="?connector={}">{}</a>', ((one, CONNECTOR_TITLES[one]) for one in others))
    chosen = forms.CharField(
        label=_("connector"), disabled=True, initial=CONNECTOR_TITLES[connector], help_text=links, required=False
    )
    fields = dict(settings_fields(connector_named(connector).settings))
    members = {"connector": connector, "chosen_connector": chosen, **fields, "__module__": __name__}
    return type(f"{connector.capitalize()}Form", (SystemVersionForm,), members)


@admin.register(SystemVersion)
class SystemVersionAdmin(VersionAdmin):
    """Versions of systems. ``?connector=NAME`` chooses the form."""

    path = "system__project_id"
    form = SystemVersionForm
    list_display = ("system", "version", "adapter", "created_at")
    list_select_related = ("system",)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The connector's form, over the projects in which the person may evaluate."""
        if obj is not None:
            return super().get_form(request, obj, change, **kwargs)
        form = form_for(self._connector(request))
        field = form.base_fields["project"]
        if isinstance(field, forms.ModelChoiceField):
            field.queryset = access.projects_with(request.user, Action.EVALUATE)
        return form

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The form's own fields when adding; the columns when looking."""
        return super().get_fields(request, obj) if obj else list(form_for(self._connector(request)).base_fields)

    def make(self, request: HttpRequest, form: Any) -> SystemVersion:
        """The version of the form's values."""
        said = form.cleaned_data
        given = nested(said, form.connector)
        return save_system(said["project"], said["system_name"], form.connector, given, person(request))

    def values_of(self, row: SystemVersion) -> dict[str, Any]:
        """Project, name and settings."""
        told = {"project": row.system.project_id, "system_name": row.system.name}
        connector = connectors().get(row.adapter)
        return told | (flat(row.config, model=connector.settings) if connector else {})

    def _connector(self, request: HttpRequest) -> str:
        row = self.get_queryset(request).filter(pk=whole_number(request.GET.get("from", "")) or 0).first()
        named = row.adapter if row else request.GET.get("connector", "")
        return named if named in connectors() else next(iter(connectors()))
