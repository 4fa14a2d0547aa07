"""Forms for new evaluations and for actions on a run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import uuid4

from django import forms
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.accounts.access import UserOrAnonymous, visible
from evaluation.connectors.protocol import RECORDED, RETRIEVAL_ONLY, SystemCall
from evaluation.core.canonical import content_hash
from evaluation.core.errors import DomainError
from evaluation.core.roles import Action
from evaluation.core.samples import QuestionSpec
from evaluation.criteria.rubrics import usable_rubrics
from evaluation.datasets.forms import FileForm
from evaluation.judges.shipped import BASELINE, default_judge, default_profile, judge_names
from evaluation.messages.markdown import language_of
from evaluation.models import AnswerSet, Project, QuestionSet, SystemVersion
from evaluation.models.run_spec import ASK_OPTIONS, RUN_OPTIONS, RunSpec
from evaluation.runs.creation import CollectionRequest
from evaluation.runs.profile_choices import ProfileChoice
from evaluation.specs.form_fields import form_fields, form_values


class ResumeForm(forms.Form):
    """A new budget for a paused run; empty keeps the current one."""

    budget = forms.DecimalField(
        label=_("Budget in US dollars"), min_value=0, max_digits=12, decimal_places=4, required=False
    )


MAX_LISTED = 200


def newest_question_sets(user: UserOrAnonymous) -> QuerySet[QuestionSet]:
    """The newest version of every question set that the person may evaluate."""
    newer = QuestionSet.objects.filter(
        project=OuterRef("project"), name=OuterRef("name"), version__gt=OuterRef("version")
    )
    rows = visible(QuestionSet.objects.all(), user, Action.EVALUATE).filter(~Exists(newer))
    return rows.select_related("project").order_by("-created_at", "-pk")


def complete_answer_sets(user: UserOrAnonymous) -> QuerySet[AnswerSet]:
    """The complete answer sets that the person may evaluate, newest first."""
    rows = visible(AnswerSet.objects.exclude(content_hash=None), user, Action.EVALUATE)
    return rows.select_related("project", "question_set__project", "system_version__system").order_by("-pk")


def connected_systems(user: UserOrAnonymous) -> QuerySet[SystemVersion]:
    """The newest version of every system with a connector."""
    rows = SystemVersion.objects.exclude(adapter=RECORDED)
    newer = rows.filter(system=OuterRef("system"), version__gt=OuterRef("version"))
    visible_versions = visible(rows.filter(~Exists(newer)), user, Action.EVALUATE, path="system__project_id")
    return visible_versions.select_related("system__project").order_by("system__name")


class AnswerFileForm(FileForm):
    """An answer file with its system and question set. A worker parses it row by row, so it may be large."""

    size_setting = "CONCORD_LARGE_UPLOAD_BYTES"

    questions = forms.ModelChoiceField(QuestionSet.objects.none(), label=_("Questions"), empty_label=None)
    file = forms.FileField(
        label=_("Answer file"),
        help_text=_("JSONL, JSON, CSV or Parquet. Nothing is imported before you confirm."),
    )
    system = forms.CharField(
        label=_("System name"),
        max_length=200,
        help_text=_("Any name, such as my-rag. Use the same name each time to compare versions over time."),
    )

    def __init__(self, *args: Any, user: UserOrAnonymous, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _set_model_choices(self, "questions", newest_question_sets(user))


class ExistingAnswersForm(forms.Form):
    """Existing answers."""

    answers = forms.ModelChoiceField(AnswerSet.objects.none(), label=_("Answers"), empty_label=None)

    def __init__(self, *args: Any, user: UserOrAnonymous, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _set_model_choices(self, "answers", complete_answer_sets(user))


class CollectionForm(forms.Form):
    """A system to collect answers from."""

    questions = forms.ModelChoiceField(QuestionSet.objects.none(), label=_("Questions"), empty_label=None)
    system = forms.ModelChoiceField(SystemVersion.objects.none(), label=_("System"), empty_label=None)

    def __init__(self, *args: Any, user: UserOrAnonymous, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields |= form_fields(ASK_OPTIONS.values())
        _set_model_choices(self, "questions", newest_question_sets(user))
        _set_model_choices(self, "system", connected_systems(user))

    def clean(self) -> dict[str, Any]:
        """Check that questions and system belong to one project."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if (
            "questions" in cleaned
            and "system" in cleaned
            and cleaned["questions"].project_id != cleaned["system"].system.project_id
        ):
            self.add_error("system", gettext("The system and the questions belong to different projects."))
        return cleaned

    @property
    def source(self) -> CollectionRequest:
        """The collection request of a valid form."""
        cleaned = self.cleaned_data
        settings = form_values(ASK_OPTIONS.values(), cleaned)
        return CollectionRequest(question_set=cleaned["questions"], version=cleaned["system"], **settings)


class PreviewForm(CollectionForm):
    """One question to a system, outside of any run."""

    question = forms.CharField(
        label=_("Your own question"),
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Default: the first question of the set."),
    )

    @property
    def call(self) -> SystemCall:
        """The system call of a valid form."""
        cleaned = self.cleaned_data
        first = cleaned["questions"].questions.order_by("position").first()
        custom = QuestionSpec(id="tried", category="tried", text=cleaned["question"]) if cleaned["question"] else None
        return SystemCall(custom or first.read(), cleaned["k"], cleaned["type"])


def _set_model_choices(form: forms.Form, name: str, rows: QuerySet[Any]) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ModelChoiceField)  # noqa: S101  -- tells the type checker
    field.queryset = rows
    newest = list(rows[:MAX_LISTED])
    several_projects = len({_project_of(row) for row in newest}) > 1
    field.choices = [
        (row.pk, f"{_project_of(row)} · {_row_label(row)}" if several_projects else _row_label(row)) for row in newest
    ]


def _project_of(row: QuestionSet | AnswerSet | SystemVersion) -> Project:
    return row.system.project if isinstance(row, SystemVersion) else row.project


def _row_label(row: QuestionSet | AnswerSet | SystemVersion) -> str:
    return f"{row} · {row.created_at:%Y-%m-%d} (#{row.pk})" if isinstance(row, AnswerSet) else str(row)


NO_JUDGE = "-"
# The number of questions that decide the default language.
LANGUAGE_SAMPLE = 50


class RunForm(forms.Form):
    """The metrics and judges of a new run."""

    token = forms.UUIDField(widget=forms.HiddenInput, initial=uuid4)
    planned = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(
        self, *args: Any, source: AnswerSet | CollectionRequest, profiles: Sequence[ProfileChoice], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields |= form_fields(RUN_OPTIONS.values())
        categories = source.question_set.questions.order_by("category").values_list("category", flat=True).distinct()
        _set_choices(self, "profile", [(choice.spec.name, choice.title) for choice in profiles])
        self.fields["profile"].initial = default_profile(source.project)
        _set_choices(self, "categories", [(category, category) for category in categories])
        _set_choices(self, "judge", _judge_choices(source))
        self.fields["language"].initial = _question_language(source.question_set)
        _set_choices(self, "rubrics", _rubric_choices(source.project))
        try:
            self.fields["judge"].initial = default_judge(source.project)
        # Several judges and no default: the user chooses.
        except DomainError:
            self.fields["judge"].initial = ""

    @property
    def digest(self) -> str:
        """A hash of the form values, so that a changed form shows its plan before it starts."""
        return content_hash(
            {name: str(field_value) for name, field_value in self.cleaned_data.items() if name != "planned"}
        )

    @property
    def spec(self) -> RunSpec:
        """The specification of a valid form."""
        values = form_values(RUN_OPTIONS.values(), self.cleaned_data)
        judge = None if values["judge"] == NO_JUDGE else values["judge"]
        return RunSpec(**values | {"judge": judge, "start_token": self.cleaned_data["token"]})


def _question_language(questions: QuestionSet) -> str:
    """The language of most of the set's first questions."""
    texts = [row.read().text for row in questions.questions.order_by("position")[:LANGUAGE_SAMPLE]]
    korean = sum(language_of(text) == "ko" for text in texts)
    return "ko" if 2 * korean > len(texts) else "en"


def _set_choices(form: forms.Form, name: str, choices: Iterable[tuple[str, Any]]) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)  # noqa: S101  -- tells the type checker
    field.choices = list(choices)


def _rubric_choices(project: Project) -> list[tuple[str, str]]:
    """The project's own rubric versions, newest first, then the shipped versions of their families."""
    rows = usable_rubrics([project.pk]).order_by("family", "project", "-version")
    custom = [row for row in rows if row.project_id]
    shipped = [row for row in rows if not row.project_id and row.family in {custom_row.family for custom_row in custom}]
    labelled = [(f"{row.family}@{row.version}", f"{row} · {row.note}" if row.note else str(row)) for row in custom]
    return list(dict([*labelled, *((f"{row.family}@{row.version}", str(row)) for row in shipped)]).items())


def _judge_choices(source: AnswerSet | CollectionRequest) -> Iterator[tuple[str, Any]]:
    if source.evaluation_type == RETRIEVAL_ONLY:
        yield NO_JUDGE, gettext("none (no answers to judge)")
        return
    names = judge_names(source.project)
    if len(names) > 1 and not source.project.default_judge:
        yield "", gettext("choose a judge (the project has no default)")
    for name in names:
        default = name == source.project.default_judge
        yield name, gettext("%(name)s (project default)") % {"name": name} if default else name
    yield BASELINE, gettext("offline baseline: compares words only, no calls, no cost")
    yield NO_JUDGE, gettext("none (rules only)")
