"""Filters of REST lists, by exact values only."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _
from django_filters.rest_framework import CharFilter, ChoiceFilter, FilterSet, NumberFilter
from drf_spectacular.utils import extend_schema_field

from evaluation.accounts.access import MAX_ID
from evaluation.core.canonical import normalize_nfc
from evaluation.models import Run


@extend_schema_field({"type": "integer", "minimum": 1, "maximum": MAX_ID})
class _IdFilter(NumberFilter):  # type: ignore[misc]
    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=1, max_value=MAX_ID, decimal_places=0, **options)


class _NameFilter(CharFilter):  # type: ignore[misc]
    """Filter by a name in NFC, as names are stored."""

    def filter(self, qs: QuerySet[Any], value: str) -> Any:
        return super().filter(qs, normalize_nfc(value or ""))


class ProjectFilter(FilterSet):  # type: ignore[misc]
    """Filter by project id."""

    project = _IdFilter(field_name="project_id", label=_("project"))


class NameInProjectFilter(ProjectFilter):
    """Filter by project id and exact name."""

    name = _NameFilter(field_name="name", label=_("name"))


class CriterionFilter(FilterSet):  # type: ignore[misc]
    """Filter for versions of criteria by project and exact name."""

    project = _IdFilter(field_name="criterion__project_id", label=_("project"))
    name = CharFilter(field_name="criterion__name", label=_("name"))


class RubricFilter(FilterSet):  # type: ignore[misc]
    """Filter for rubrics by family and language."""

    family = CharFilter(field_name="family")
    language = CharFilter(field_name="language")


class QuestionFilter(FilterSet):  # type: ignore[misc]
    """Filter for questions of a set by category and difficulty."""

    category = _NameFilter(field_name="category")
    difficulty = CharFilter(field_name="difficulty")


class AnswerSetFilter(ProjectFilter):
    """Filter for answer sets by question set version and system name."""

    question_set = _IdFilter(field_name="question_set_id")
    system = _NameFilter(field_name="system_version__system__name")


class RunFilter(ProjectFilter):
    """Filter for runs by state, answer set, question set version, system name and profile name."""

    status = ChoiceFilter(field_name="state", choices=Run.State.choices)
    answer_set = _IdFilter(field_name="answer_set_id")
    question_set = _IdFilter(field_name="answer_set__question_set_id")
    system = _NameFilter(field_name="answer_set__system_version__system__name")
    profile = CharFilter(field_name="profile_version__name")


class AnswerFilter(FilterSet):  # type: ignore[misc]
    """Filter for answers of a run by question category, question id, and whether the system answered."""

    category = _NameFilter(field_name="question__category")
    question = _NameFilter(field_name="question__external_id")
    status = ChoiceFilter(field_name="status", choices=[("ok", _("answered")), ("failed", _("failed"))])
