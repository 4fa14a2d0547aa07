"""The forms of a lead: a new review queue, its people, items and deadline."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.core.metric_specs import JUDGED
from evaluation.messages import numbers
from evaluation.messages.sentences import explain_refusal
from evaluation.models import MetricDefinition, Run, User
from evaluation.specs.form_fields import form_fields, values_of
from review.models.queue_spec import ASKED, Distribution, QueueSpec
from review.queues.criteria import criteria_of, weights
from review.queues.design import GUESS
from review.queues.sharing import Sharing, fields_from, listed

MOST_IDS = 5_000


def ids_of(data: QueryDict, field: str) -> set[int]:
    """The primary keys that a form sends under a name; anything else is no id."""
    sent = data.getlist(field)[:MOST_IDS]
    return {number for one in sent if (number := whole_number(one)) is not None}


def moment_of(text: str) -> datetime | None:
    """A moment in the site's time zone; ``None`` for none.

    :raises Refused: ``no_moment`` for anything else.
    """
    if not text.strip():
        return None
    try:
        moment = parse_datetime(text.strip())
        if moment is not None:
            return (moment if timezone.is_aware(moment) else timezone.make_aware(moment)).astimezone(UTC)
    except (ValueError, OverflowError):  # a day that is none, or one before or after all that are stored
        pass
    raise Refused("no_moment", text=text[:40])


class QueueForm(forms.Form):
    """What a lead decides about a queue: its settings, and what is chosen among the rows there are; the engine checks
    the rules that hold between the fields. ``people`` may be chosen, of whom the ``experts`` are to begin with."""

    runs = forms.MultipleChoiceField(
        label=_("Further runs"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("Their answers are mixed in, so that nobody can tell the systems apart."),
    )
    questions = forms.CharField(
        label=_("Questions"),
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=50_000,
        required=False,
        help_text=_("Ids of questions, separated by commas or lines."),
    )
    metrics = forms.MultipleChoiceField(
        label=_("Criteria"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("Tick some to ask for these alone; otherwise the choice above decides."),
    )
    reviewers = forms.MultipleChoiceField(
        label=_("Reviewers"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Whoever may rate in this project. A superuser too needs a role for that (back office, Roles)."),
    )
    width = forms.FloatField(
        label=_("Interval wanted, either way"),
        min_value=0.001,
        max_value=1,
        required=False,
        help_text=_("Such as 0.03; the preview says how many answers that takes."),
    )
    difference = forms.FloatField(
        label=_("Difference between two runs to be found"),
        min_value=0.001,
        max_value=1,
        required=False,
        help_text=_("Found four times in five, with both runs reviewed like this."),
    )
    guess = forms.IntegerField(
        label=_("How far the judge is off, in % of the scale"),
        min_value=1,
        max_value=100,
        required=False,
        initial=25,
        help_text=_("A guess, used until experts have rated ten answers."),
    )
    fields_of = forms.CharField(
        label=_("Tags and their people"),
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=20_000,
        required=False,
        help_text=_("One line each, such as “tax: kim, lee”."),
    )

    def __init__(
        self,
        *args: Any,
        run: Run,
        others: Sequence[Run] = (),
        metrics: Sequence[MetricDefinition],
        people: Sequence[User],
        experts: Collection[int] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields |= form_fields(ASKED)
        language = get_language() or "en"
        self.run = run
        self._others = {str(one.pk): one for one in others}
        self._people = {str(one.pk): one for one in people}
        self._metrics = {metric.name: metric for metric in metrics}
        choices: dict[str, list[tuple[str, str]]] = {
            "runs": [(str(one.pk), str(one)) for one in others],
            "metrics": [(m.name, m.title.get(language) or m.name) for m in metrics],
            "reviewers": [(str(one.pk), one.known_as) for one in people],
        }
        for name, options in choices.items():
            field = self.fields[name]
            assert isinstance(field, forms.MultipleChoiceField)  # noqa: S101  -- tells the type checker
            field.choices = options
        self.fields["reviewers"].initial = [str(one.pk) for one in people if one.pk in experts]

    def clean_deadline(self) -> datetime | None:
        """A moment that is still to come."""
        deadline: datetime | None = self.cleaned_data["deadline"]
        if deadline and deadline <= timezone.now():
            raise forms.ValidationError(_("The deadline has passed already."))
        return deadline

    def clean_questions(self) -> list[str]:
        """The ids of questions."""
        return listed(self.cleaned_data["questions"])

    def clean_fields_of(self) -> dict[str, list[User]]:
        """Tag -> people, who are looked up among those that may be chosen."""
        named = {one.get_username(): one for one in self._people.values()}
        try:
            fields = fields_from(self.cleaned_data["fields_of"])
        except Refused as refused:
            raise forms.ValidationError(explain_refusal(refused)) from refused
        if unknown := sorted({name for names in fields.values() for name in names} - set(named)):
            raise forms.ValidationError(explain_refusal(Refused("not_in_project", people=unknown)))
        return {tag: [named[name] for name in names] for tag, names in fields.items()}

    @property
    def has_others(self) -> bool:
        """Whether there are further runs to choose."""
        return bool(self._others)

    @property
    def chosen_runs(self) -> list[Run]:
        """The run of the page and the further ones of a valid form."""
        return [self.run, *(self._others[pk] for pk in self.cleaned_data["runs"])]

    @property
    def parts(self) -> dict[str, list[forms.BoundField]]:
        """The settings, part by part."""
        parts: dict[str, list[forms.BoundField]] = {}
        for one in ASKED:
            if one.form:
                parts.setdefault(one.form.part, []).append(self[one.input_name])
        return parts

    @property
    def spec(self) -> QueueSpec:
        """The settings of a valid form."""
        return QueueSpec(**values_of(ASKED, self.cleaned_data))

    @property
    def sharing(self) -> Sharing:
        """The people of tags and categories, of a valid form."""
        by_tag = self.cleaned_data["distribution"] == Distribution.BY_TAG
        return Sharing(self.cleaned_data["fields_of"] if by_tag else {})

    @property
    def people(self) -> list[User]:
        """The chosen reviewers of a valid form."""
        return [self._people[pk] for pk in self.cleaned_data["reviewers"]]

    @property
    def judge_off(self) -> float:
        """How far the judge is taken to be off, as a share of the scale, of a valid form."""
        percent = self.cleaned_data["guess"]
        return GUESS if percent is None else percent / 100.0

    def chosen_metrics(self, spec: QueueSpec) -> list[MetricDefinition]:
        """The ticked criteria of a valid form, else those its settings call for.

        :raises Refused: ``no_metrics``.
        """
        ticked = [self._metrics[name] for name in self.cleaned_data["metrics"]]
        return ticked or criteria_of(self.chosen_runs, spec)

    def unrated(self, asked: Sequence[MetricDefinition]) -> list[tuple[str, str]]:
        """Title and weight of the judged parts of the overall score that are not ``asked``."""
        left = set(self._metrics) - {metric.name for metric in asked}
        language = get_language() or "en"
        return [
            (self._metrics[name].title.get(language) or name, numbers.share(weight))
            for name, weight in weights(self.run).items()
            if weight and name in left and self._metrics[name].kind in JUDGED
        ]
