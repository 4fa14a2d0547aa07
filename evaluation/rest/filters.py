"""The filters of REST lists: declared one by one, by exact values, so that no query reaches beyond its table."""

from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext_lazy as _
from django_filters.rest_framework import CharFilter, ChoiceFilter, FilterSet, NumberFilter
from drf_spectacular.utils import extend_schema_field

from evaluation.accounts.access import LARGEST_ID
from evaluation.core.canonical import composed
from evaluation.models import Run


@extend_schema_field({"type": "integer", "minimum": 1, "maximum": LARGEST_ID})
class _Id(NumberFilter):  # type: ignore[misc]
    """A primary key: a whole number that a database knows."""

    def __init__(self, **options: Any) -> None:
        super().__init__(min_value=1, max_value=LARGEST_ID, decimal_places=0, **options)


class _Name(CharFilter):  # type: ignore[misc]
    """A name, compared composed (NFC) as it is stored."""

    def filter(self, qs: QuerySet[Any], value: str) -> Any:
        """Those that have the name."""
        return super().filter(qs, composed(value or ""))


class ByProject(FilterSet):  # type: ignore[misc]
    """``project``: the id of one project."""

    project = _Id(field_name="project_id", label=_("project"))


class ByNameInProject(ByProject):
    """``name``: the exact name."""

    name = _Name(field_name="name", label=_("name"))


class CriterionFilter(FilterSet):  # type: ignore[misc]
    """Versions of criteria by project and exact name."""

    project = _Id(field_name="criterion__project_id", label=_("project"))
    name = CharFilter(field_name="criterion__name", label=_("name"))


class RubricFilter(FilterSet):  # type: ignore[misc]
    """Rubrics by family and language."""

    family = CharFilter(field_name="family")
    language = CharFilter(field_name="language")


class QuestionFilter(FilterSet):  # type: ignore[misc]
    """Questions of a set by category and difficulty."""

    category = _Name(field_name="category")
    difficulty = CharFilter(field_name="difficulty")


class AnswerSetFilter(ByProject):
    """Answer sets by question set (one version) and system name."""

    question_set = _Id(field_name="question_set_id")
    system = _Name(field_name="system_version__system__name")


class RunFilter(ByProject):
    """Runs by state, answer set, question set (one version), system name and profile name."""

    status = ChoiceFilter(field_name="state", choices=Run.State.choices)
    answer_set = _Id(field_name="answer_set_id")
    question_set = _Id(field_name="answer_set__question_set_id")
    system = _Name(field_name="answer_set__system_version__system__name")
    profile = CharFilter(field_name="profile_version__name")


class AnswerFilter(FilterSet):  # type: ignore[misc]
    """Answers of a run by the question's category or own id, and by whether the system answered."""

    category = _Name(field_name="question__category")
    question = _Name(field_name="question__external_id")
    status = ChoiceFilter(field_name="status", choices=[("ok", _("answered")), ("failed", _("failed"))])
