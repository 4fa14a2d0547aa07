"""Admin of systems under test and their versions; the form follows from the connector's settings."""

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
from evaluation.accounts.access import signed_in_user
from evaluation.accounts.role_admin import RoleAdmin
from evaluation.connectors.catalogue import InvalidSettings, read_settings
from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.judges.admin import VersionAdmin, VersionForm
from evaluation.messages.explanations import explain_refusal
from evaluation.messages.system_settings import CONNECTOR_TITLES, explain_setting_problem, setting_help, setting_label
from evaluation.models import Project, System, SystemVersion
from evaluation.systems.services import check_allowed, connectors, get_connector, save_system

# Separates a setting from a nested one: field names cannot contain a dot.
SEPARATOR = "__"


@admin.register(System)
class SystemAdmin(RoleAdmin):
    """Systems under test with their limits."""

    add_action = change_action = Action.EVALUATE
    list_display = ("name", "project", "max_concurrency", "requests_per_minute", "cooldown_until", "created_at")
    list_filter = ("project",)
    search_fields = ("name",)

    def get_readonly_fields(self, request: object, obj: object = None) -> tuple[str, ...]:
        """Keep project and name of existing systems fixed, because answers refer to them."""
        return ("project", "name") if obj else ()


def _nested_model(info: FieldInfo) -> type[BaseModel] | None:
    kind = info.annotation
    return kind if isinstance(kind, type) and issubclass(kind, BaseModel) else None


def settings_fields(
    model: type[BaseModel], prefix: str = "", defaults: BaseModel | None = None
) -> Iterator[tuple[str, forms.Field]]:
    """A form field for each setting, nested ones one by one, with initial values from ``defaults``."""
    for name, info in model.model_fields.items():
        inner = _nested_model(info)
        default = getattr(defaults, name) if defaults else info.get_default(call_default_factory=True)
        if inner is None:
            yield prefix + name, _field(name, info, default)
        else:
            yield from settings_fields(
                inner, f"{prefix}{name}{SEPARATOR}", default if isinstance(default, inner) else None
            )


def _field(name: str, info: FieldInfo, default: Any) -> forms.Field:
    options: dict[str, Any] = {
        "label": setting_label(name),
        "help_text": setting_help(name),
        "required": info.is_required(),
    }
    if not info.is_required():
        options["initial"] = default
    kind, origin = info.annotation, get_origin(info.annotation)
    if origin is Literal:
        return forms.ChoiceField(choices=[(choice, choice) for choice in get_args(kind)], **options)
    if kind is bool:
        return forms.BooleanField(**options | {"required": False})
    if kind is int:
        return forms.IntegerField(**options)
    if kind is float:
        return forms.FloatField(**options)
    if kind is str and origin not in (Union, UnionType):
        return forms.CharField(strip=False, **options)
    return forms.JSONField(widget=forms.Textarea(attrs={"rows": 4, "cols": 80, "spellcheck": "false"}), **options)


def settings_from_form(cleaned: Mapping[str, Any], connector: str) -> dict[str, Any]:
    """The settings from form values; an empty field keeps its default, except texts, which may be empty."""
    settings: dict[str, Any] = {}
    for path, field in settings_fields(get_connector(connector).settings):
        value = cleaned.get(path)
        if value is None or (value == "" and isinstance(field, forms.JSONField)):
            continue
        *parents, name = path.split(SEPARATOR)
        target = settings
        for part in parents:
            target = target.setdefault(part, {})
        target[name] = value
    return settings


def form_values_of(config: Mapping[str, Any], prefix: str = "", *, model: type[BaseModel]) -> dict[str, Any]:
    """The form values of stored settings."""
    form_values: dict[str, Any] = {}
    for name, value in config.items():
        inner = _nested_model(model.model_fields[name]) if name in model.model_fields else None
        form_values |= (
            {prefix + name: value}
            if inner is None
            else form_values_of(value, f"{prefix}{name}{SEPARATOR}", model=inner)
        )
    return form_values


class SystemVersionForm(VersionForm):
    """A version of a system; its fields are the connector's settings."""

    connector: str = ""
    project = forms.ModelChoiceField(Project.objects.none(), label=_("project"))
    system_name = forms.CharField(label=_("name"), max_length=200)

    class Meta:
        model = SystemVersion
        fields = ()

    def clean(self) -> dict[str, Any]:
        """Check the settings against the connector and the operator's policy; each problem is shown at its field."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        try:
            connector_settings = read_settings(
                get_connector(self.connector), settings_from_form(cleaned, self.connector)
            )
            check_allowed(self.connector, connector_settings, cleaned["project"])
        except InvalidSettings as bad:
            for problem in bad.problems:
                field = problem.field.replace(".", SEPARATOR)
                self.add_error(field if field in self.fields else None, explain_setting_problem(problem))
        except DomainError as refusal:
            self.add_error(None, explain_refusal(refusal))
        return cleaned


def build_form_class(connector: str) -> type[SystemVersionForm]:
    """The form class of a connector's settings, with links to the forms of other connectors."""
    other_names = [name for name in connectors() if name != connector]
    links = format_html_join(
        ", ", '<a href="?connector={}">{}</a>', ((name, CONNECTOR_TITLES[name]) for name in other_names)
    )
    connector_field = forms.CharField(
        label=_("connector"), disabled=True, initial=CONNECTOR_TITLES[connector], help_text=links, required=False
    )
    fields = dict(settings_fields(get_connector(connector).settings))
    members = {"connector": connector, "chosen_connector": connector_field, **fields, "__module__": __name__}
    return type(f"{connector.capitalize()}Form", (SystemVersionForm,), members)


@admin.register(SystemVersion)
class SystemVersionAdmin(VersionAdmin):
    """Versions of systems. ``?connector=NAME`` chooses the form."""

    path = "system__project_id"
    form = SystemVersionForm
    list_display = ("system", "version", "adapter", "created_at")
    list_select_related = ("system",)

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        """The connector's form, with the projects in which the person may evaluate."""
        if obj is not None:
            return super().get_form(request, obj, change, **kwargs)
        form = build_form_class(self._connector(request))
        field = form.base_fields["project"]
        if isinstance(field, forms.ModelChoiceField):
            field.queryset = access.projects_with(request.user, Action.EVALUATE)
        return form

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The form's fields when adding; the model's columns when viewing."""
        return super().get_fields(request, obj) if obj else list(build_form_class(self._connector(request)).base_fields)

    def build_version(self, request: HttpRequest, form: Any) -> SystemVersion:
        cleaned = form.cleaned_data
        settings = settings_from_form(cleaned, form.connector)
        return save_system(
            cleaned["project"], cleaned["system_name"], form.connector, settings, signed_in_user(request)
        )

    def initial_values(self, row: SystemVersion) -> dict[str, Any]:
        form_values = {"project": row.system.project_id, "system_name": row.system.name}
        connector = connectors().get(row.adapter)
        return form_values | (form_values_of(row.config, model=connector.settings) if connector else {})

    def _connector(self, request: HttpRequest) -> str:
        row = self.get_queryset(request).filter(pk=parse_int(request.GET.get("from", "")) or 0).first()
        connector_name = row.adapter if row else request.GET.get("connector", "")
        return connector_name if connector_name in connectors() else next(iter(connectors()))
