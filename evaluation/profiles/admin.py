"""Admin of profiles and metrics."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from pydantic import ValidationError

from evaluation.accounts.access import signed_in_user
from evaluation.accounts.role_admin import ReadOnlyAdmin
from evaluation.core.errors import Problem, UnknownName
from evaluation.core.yaml_models import validation_problems
from evaluation.criteria.services import check_metric_names
from evaluation.judges.admin import VersionAdmin, YamlForm, spec_as_yaml
from evaluation.judges.shipped import save_profile
from evaluation.messages.explanations import explain
from evaluation.models import MetricDefinition, ProfileVersion, Project
from evaluation.profiles.spec import ProfileSpec, load_profile


class ProfileForm(YamlForm):
    """A profile as YAML."""

    project = forms.ModelChoiceField(Project.objects.none(), label=_("project"))

    class Meta:
        model = ProfileVersion
        fields = ("project", "text")

    def clean_text(self) -> ProfileSpec:
        try:
            return load_profile(text := self.cleaned_data["text"])
        except ValidationError as error:
            problems = validation_problems(error, text, "", "profile_invalid")
            raise forms.ValidationError([explain(problem) for problem in problems]) from error
        except ValueError as error:
            line, reason = re.match(r"(?:line (\d+): )?(?:not YAML: )?(.*)", str(error), re.DOTALL).groups()  # type: ignore[union-attr]
            problem = Problem("profile_not_yaml", line=int(line) if line else None, params={"error": reason})
            raise forms.ValidationError(explain(problem)) from error

    def clean(self) -> dict[str, Any]:
        """Check that the profile's metrics are metrics, or criteria of its project."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        project, profile = cleaned.get("project"), cleaned.get("text")
        if project is not None and profile is not None:
            try:
                check_metric_names(project.pk, profile.metrics)
            except UnknownName as unknown:
                self.add_error("text", _not_a_metric(unknown))
        return cleaned


def _not_a_metric(unknown: UnknownName) -> str:
    if not unknown.suggestions:
        return gettext("%(name)s is neither a metric nor a criterion of the project.") % {"name": unknown.name}
    params = {"name": unknown.name, "near": ", ".join(unknown.suggestions)}
    return gettext("%(name)s is neither a metric nor a criterion of the project. Similar names: %(near)s.") % params


@admin.register(ProfileVersion)
class ProfileVersionAdmin(VersionAdmin):
    """Scoring profiles."""

    form = ProfileForm
    list_display = ("name", "version", "project", "created_at", "created_by")
    list_filter = ("project",)

    def build_version(self, request: HttpRequest, form: Any) -> ProfileVersion:
        return save_profile(form.cleaned_data["project"], form.cleaned_data["text"], signed_in_user(request))

    def initial_values(self, row: ProfileVersion) -> dict[str, Any]:
        return {"project": row.project_id, "text": spec_as_yaml(row.spec)}


@admin.register(MetricDefinition)
class MetricDefinitionAdmin(ReadOnlyAdmin):
    """Metric definitions that scores and ratings refer to."""

    path = ""
    list_display = ("name", "version", "kind", "scale", "direction", "review_form", "rubric_family")
    list_filter = ("kind",)
    search_fields = ("name",)
