"""Profiles and metrics in the back office."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from evaluation.accounts.access import person
from evaluation.accounts.role_admin import ReadOnlyAdmin
from evaluation.core.described import problems_of
from evaluation.core.errors import Problem, UnknownName
from evaluation.criteria.services import check_metric_names
from evaluation.judges.admin import VersionAdmin, YamlForm, spec_as_yaml
from evaluation.judges.shipping import save_profile
from evaluation.messages.sentences import explain
from evaluation.models import MetricDefinition, ProfileVersion, Project
from evaluation.profiles.spec import ProfileSpec, load_profile


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
