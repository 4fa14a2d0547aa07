"""Forms of a new evaluation and of a run's buttons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from uuid import uuid4

from django import forms
from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.accounts.access import Person, visible
from evaluation.connectors.protocol import RECORDED, RETRIEVAL_ONLY, SystemCall
from evaluation.core.canonical import content_hash
from evaluation.core.errors import Refused
from evaluation.core.roles import Action
from evaluation.core.samples import QuestionSpec
from evaluation.criteria.rubrics import rubrics_for
from evaluation.datasets.forms import FileForm
from evaluation.judges.shipping import BASELINE, default_judge, default_profile, judge_names
from evaluation.messages.markdown import language_of
from evaluation.models import AnswerSet, Project, QuestionSet, SystemVersion
from evaluation.models.run_spec import ASKING, OPTIONS, RunSpec
from evaluation.runs.making import Asking
from evaluation.runs.profile_choices import ProfileChoice
from evaluation.specs.form_fields import form_fields, values_of


class ResumeForm(forms.Form):
    """What a paused run may cost from now on; empty leaves it."""

    budget = forms.DecimalField(
        label=_("Budget in US dollars"), min_value=0, max_digits=12, decimal_places=4, required=False
    )


MOST_LISTED = 200


def newest_sets(user: Person) -> QuerySet[QuestionSet]:
    """The newest version of every question set of which the person may evaluate answers."""
    newer = QuestionSet.objects.filter(
        project=OuterRef("project"), name=OuterRef("name"), version__gt=OuterRef("version")
    )
    rows = visible(QuestionSet.objects.all(), user, Action.EVALUATE).filter(~Exists(newer))
    return rows.select_related("project").order_by("-created_at", "-pk")


def complete_answers(user: Person) -> QuerySet[AnswerSet]:
    """The answer sets that the person may evaluate, newest first; those that are still asked for are none."""
    rows = visible(AnswerSet.objects.exclude(content_hash=None), user, Action.EVALUATE)
    return rows.select_related("project", "question_set__project", "system_version__system").order_by("-pk")


def asked_systems(user: Person) -> QuerySet[SystemVersion]:
    """The newest version of every system that can be asked."""
    rows = SystemVersion.objects.exclude(adapter=RECORDED)
    newer = rows.filter(system=OuterRef("system"), version__gt=OuterRef("version"))
    mine = visible(rows.filter(~Exists(newer)), user, Action.EVALUATE, path="system__project_id")
    return mine.select_related("system__project").order_by("system__name")


class AnswerFileForm(FileForm):
    """A file of answers, of which system and to which questions. A worker reads it row by row, so it may be large."""

    limited_by = "CONCORD_LARGE_UPLOAD_BYTES"

    questions = forms.ModelChoiceField(QuestionSet.objects.none(), label=_("Questions"), empty_label=None)
    file = forms.FileField(
        label=_("File with answers"),
        help_text=_("JSONL, JSON, CSV or Parquet. Nothing is imported before you confirm."),
    )
    system = forms.CharField(
        label=_("Name of the system that gave them"),
        max_length=200,
        help_text=_("A name of your own, such as my-rag. Answers of one system are compared over time."),
    )

    def __init__(self, *args: Any, user: Person, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choose(self, "questions", newest_sets(user))


class AnswersForm(forms.Form):
    """Answers that are there."""

    answers = forms.ModelChoiceField(AnswerSet.objects.none(), label=_("Answers"), empty_label=None)

    def __init__(self, *args: Any, user: Person, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _choose(self, "answers", complete_answers(user))


class AskForm(forms.Form):
    """A system that is asked."""

    questions = forms.ModelChoiceField(QuestionSet.objects.none(), label=_("Questions"), empty_label=None)
    system = forms.ModelChoiceField(SystemVersion.objects.none(), label=_("System"), empty_label=None)

    def __init__(self, *args: Any, user: Person, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields |= form_fields(ASKING.values())
        _choose(self, "questions", newest_sets(user))
        _choose(self, "system", asked_systems(user))

    def clean(self) -> dict[str, Any]:
        """Questions and system of one project."""
        said: dict[str, Any] = super().clean() or self.cleaned_data
        if (
            "questions" in said
            and "system" in said
            and said["questions"].project_id != said["system"].system.project_id
        ):
            self.add_error("system", gettext("The system belongs to another project than the questions."))
        return said

    @property
    def source(self) -> Asking:
        """What a valid form asks for."""
        said = self.cleaned_data
        asked = values_of(ASKING.values(), said)
        return Asking(question_set=said["questions"], version=said["system"], **asked)


class TryForm(AskForm):
    """One question to a system, outside every run."""

    question = forms.CharField(
        label=_("Your own question"),
        required=False,
        max_length=4000,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text=_("Left empty, the first question of the set."),
    )

    @property
    def call(self) -> SystemCall:
        """What a valid form asks."""
        said = self.cleaned_data
        first = said["questions"].questions.order_by("position").first()
        own = QuestionSpec(id="tried", category="tried", text=said["question"]) if said["question"] else None
        return SystemCall(own or first.read(), said["k"], said["type"])


def _choose(form: forms.Form, name: str, rows: QuerySet[Any]) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ModelChoiceField)  # noqa: S101  -- tells the type checker
    field.queryset = rows
    newest = list(rows[:MOST_LISTED])
    several = len({_project(row) for row in newest}) > 1
    field.choices = [(row.pk, f"{_project(row)} · {_named(row)}" if several else _named(row)) for row in newest]


def _project(row: QuestionSet | AnswerSet | SystemVersion) -> Project:
    return row.system.project if isinstance(row, SystemVersion) else row.project


def _named(row: QuestionSet | AnswerSet | SystemVersion) -> str:
    return f"{row} · {row.created_at:%Y-%m-%d} (#{row.pk})" if isinstance(row, AnswerSet) else str(row)


NO_JUDGE = "-"
READ = 50  # questions that tell in which language a set asks


class RunForm(forms.Form):
    """What is measured, and who judges."""

    token = forms.UUIDField(widget=forms.HiddenInput, initial=uuid4)
    planned = forms.CharField(widget=forms.HiddenInput, required=False)

    def __init__(
        self, *args: Any, source: AnswerSet | Asking, profiles: Sequence[ProfileChoice], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields |= form_fields(OPTIONS.values())
        categories = source.question_set.questions.order_by("category").values_list("category", flat=True).distinct()
        _choices(self, "profile", [(one.spec.name, one.title) for one in profiles])
        self.fields["profile"].initial = default_profile(source.project)
        _choices(self, "categories", [(one, one) for one in categories])
        _choices(self, "judge", _judges(source))
        self.fields["language"].initial = _asks_in(source.question_set)
        _choices(self, "rubrics", _rubrics(source.project))
        try:
            self.fields["judge"].initial = default_judge(source.project)
        except Refused:  # several, and none is the default: the person chooses
            self.fields["judge"].initial = ""

    @property
    def digest(self) -> str:
        """What a plan is shown for: starting something else shows its plan first."""
        return content_hash({name: str(one) for name, one in self.cleaned_data.items() if name != "planned"})

    @property
    def spec(self) -> RunSpec:
        """What a valid form asks for."""
        values = values_of(OPTIONS.values(), self.cleaned_data)
        judge = None if values["judge"] == NO_JUDGE else values["judge"]
        return RunSpec(**values | {"judge": judge, "start_token": self.cleaned_data["token"]})


def _asks_in(questions: QuestionSet) -> str:
    """The language of most of a set's first questions."""
    texts = [row.read().text for row in questions.questions.order_by("position")[:READ]]
    korean = sum(language_of(text) == "ko" for text in texts)
    return "ko" if 2 * korean > len(texts) else "en"


def _choices(form: forms.Form, name: str, choices: Iterable[tuple[str, Any]]) -> None:
    field = form.fields[name]
    assert isinstance(field, forms.ChoiceField)  # noqa: S101  -- tells the type checker
    field.choices = list(choices)


def _rubrics(project: Project) -> list[tuple[str, str]]:
    """The versions that the project's people wrote, newest first, and then those that ship with their families."""
    rows = rubrics_for([project.pk]).order_by("family", "project", "-version")
    own = [row for row in rows if row.project_id]
    beside = [row for row in rows if not row.project_id and row.family in {one.family for one in own}]
    named = [(f"{row.family}@{row.version}", f"{row} · {row.note}" if row.note else str(row)) for row in own]
    return list(dict([*named, *((f"{row.family}@{row.version}", str(row)) for row in beside)]).items())


def _judges(source: AnswerSet | Asking) -> Iterator[tuple[str, Any]]:
    if source.evaluation_type == RETRIEVAL_ONLY:
        yield NO_JUDGE, gettext("none: there are no answers to judge")
        return
    names = judge_names(source.project)
    if len(names) > 1 and not source.project.default_judge:
        yield "", gettext("choose one: the project has no default")
    for name in names:
        default = name == source.project.default_judge
        yield name, gettext("%(name)s (the project's default)") % {"name": name} if default else name
    yield BASELINE, gettext("offline baseline: compares words, calls nobody, costs nothing")
    yield NO_JUDGE, gettext("none: rules only")
