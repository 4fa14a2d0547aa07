"""Forms of a lead: a new review queue, its people, items and deadline."""

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

from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError
from evaluation.messages.explanations import explain_refusal
from evaluation.models import MetricDefinition, Run, User
from evaluation.specs.form_fields import form_fields, form_values
from review.evidence.answers import new_seed
from review.models.queue_spec import CONFIGURABLE_SETTINGS, Distribution, QueueSpec
from review.queues.criteria import select_criteria
from review.queues.design import DEFAULT_GUESS
from review.queues.distribution import NamedReviewers, parse_tag_lines, split_list

MAX_IDS = 5_000


def posted_ids(data: QueryDict, field: str) -> set[int]:
    """Primary keys that a form sends in a field; other values are ignored."""
    raw_ids = data.getlist(field)[:MAX_IDS]
    return {number for raw_id in raw_ids if (number := parse_int(raw_id)) is not None}


def parse_moment(text: str) -> datetime | None:
    """Parse a time in the site's time zone; ``None`` for empty text.

    :raises DomainError: ``no_moment`` for anything else."""
    if not text.strip():
        return None
    try:
        moment = parse_datetime(text.strip())
        if moment is not None:
            return (moment if timezone.is_aware(moment) else timezone.make_aware(moment)).astimezone(UTC)
    # An invalid date, or one outside the storable range.
    except (ValueError, OverflowError):
        pass
    raise DomainError("no_moment", text=text[:40])


class QueueForm(forms.Form):
    """Settings of a new queue and choices of runs, criteria and reviewers. Creating the queue checks the rules between
    fields. ``people`` can be chosen, and ``experts`` are selected at first."""

    runs = forms.MultipleChoiceField(
        label=_("More runs"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("Their answers are mixed in, so nobody can tell the systems apart."),
    )
    questions = forms.CharField(
        label=_("Questions"),
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=50_000,
        required=False,
        help_text=_("Question IDs, separated by commas or line breaks."),
    )
    metrics = forms.MultipleChoiceField(
        label=_("Criteria"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("Select criteria to ask only for these. Otherwise the choice above applies."),
    )
    reviewers = forms.MultipleChoiceField(
        label=_("Reviewers"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("People with a reviewer role in this project. Superusers need the role too (back office, Roles)."),
    )
    width = forms.FloatField(
        label=_("Target margin (±)"),
        min_value=0.001,
        max_value=1,
        required=False,
        help_text=_("Such as 0.03. The preview shows how many answers are needed."),
    )
    difference = forms.FloatField(
        label=_("Difference to detect between two runs"),
        min_value=0.001,
        max_value=1,
        required=False,
        help_text=_("Detected in 4 of 5 cases, if both runs are reviewed like this."),
    )
    guess = forms.IntegerField(
        label=_("Judge error, in % of the scale"),
        min_value=1,
        max_value=100,
        required=False,
        initial=25,
        help_text=_("An estimate, used until experts have rated ten answers."),
    )
    # The preview and the queue draw by the same seed.
    seed = forms.IntegerField(widget=forms.HiddenInput, min_value=0, max_value=2**63 - 1, required=False)
    fields_of = forms.CharField(
        label=_("Reviewers by tag"),
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=20_000,
        required=False,
        help_text=_("One tag per line, such as “tax: kim, lee”."),
    )

    def __init__(
        self,
        *args: Any,
        run: Run,
        other_runs: Sequence[Run] = (),
        metrics: Sequence[MetricDefinition],
        people: Sequence[User],
        experts: Collection[int] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields |= form_fields(CONFIGURABLE_SETTINGS)
        language = get_language() or "en"
        self.run = run
        self._other_runs = {str(other_run.pk): other_run for other_run in other_runs}
        self._people = {str(user.pk): user for user in people}
        self._metrics = {metric.name: metric for metric in metrics}
        self._metric_choices = [(metric.name, metric.title.get(language) or metric.name) for metric in metrics]
        choices: dict[str, list[tuple[str, str]]] = {
            "runs": [(str(other_run.pk), str(other_run)) for other_run in other_runs],
            "metrics": self._metric_choices,
            "reviewers": [(str(user.pk), user.display_name) for user in people],
        }
        for name, options in choices.items():
            field = self.fields[name]
            assert isinstance(field, forms.MultipleChoiceField)  # noqa: S101  -- tells the type checker
            field.choices = options
        self.fields["seed"].initial = new_seed()
        self.fields["reviewers"].initial = [str(user.pk) for user in people if user.pk in experts]

    def clean_deadline(self) -> datetime | None:
        """Reject a deadline that has passed."""
        deadline: datetime | None = self.cleaned_data["deadline"]
        if deadline and deadline <= timezone.now():
            raise forms.ValidationError(_("The deadline has already passed."))
        return deadline

    def clean_questions(self) -> list[str]:
        return split_list(self.cleaned_data["questions"])

    def clean_fields_of(self) -> dict[str, list[User]]:
        """Map each tag to people, looked up among those that can be chosen."""
        users_by_name = {user.get_username(): user for user in self._people.values()}
        try:
            names_by_tag = parse_tag_lines(self.cleaned_data["fields_of"])
        except DomainError as refusal:
            raise forms.ValidationError(explain_refusal(refusal)) from refusal
        if unknown_names := sorted({name for names in names_by_tag.values() for name in names} - set(users_by_name)):
            raise forms.ValidationError(explain_refusal(DomainError("not_in_project", people=unknown_names)))
        return {tag: [users_by_name[name] for name in names] for tag, names in names_by_tag.items()}

    @property
    def has_other_runs(self) -> bool:
        return bool(self._other_runs)

    @property
    def chosen_runs(self) -> list[Run]:
        """The run of the page and the additional ones of a valid form."""
        return [self.run, *(self._other_runs[pk] for pk in self.cleaned_data["runs"])]

    @property
    def parts(self) -> dict[str, list[forms.BoundField]]:
        """Fields of the settings by section of the form."""
        parts: dict[str, list[forms.BoundField]] = {}
        for queue_setting in CONFIGURABLE_SETTINGS:
            if queue_setting.form:
                parts.setdefault(queue_setting.form.part, []).append(self[queue_setting.input_name])
        return parts

    @property
    def spec(self) -> QueueSpec:
        """Settings of a valid form."""
        return QueueSpec(**form_values(CONFIGURABLE_SETTINGS, self.cleaned_data), seed=self.cleaned_data["seed"])

    @property
    def named_reviewers(self) -> NamedReviewers:
        """Reviewers named by tag and category, of a valid form."""
        by_tag = self.cleaned_data["distribution"] == Distribution.BY_TAG
        return NamedReviewers(self.cleaned_data["fields_of"] if by_tag else {})

    @property
    def people(self) -> list[User]:
        """Selected reviewers of a valid form."""
        return [self._people[pk] for pk in self.cleaned_data["reviewers"]]

    @property
    def assumed_error(self) -> float:
        """Assumed error of the judge as a share of the scale, of a valid form."""
        percent = self.cleaned_data["guess"]
        return DEFAULT_GUESS if percent is None else percent / 100.0

    def chosen_metrics(self, spec: QueueSpec) -> list[MetricDefinition]:
        """Selected criteria of a valid form, else those that its settings require.

        :raises DomainError: ``no_metrics``."""
        ticked_metrics = [self._metrics[name] for name in self.cleaned_data["metrics"]]
        return ticked_metrics or select_criteria(self.chosen_runs, spec)

    @property
    def metric_titles(self) -> dict[str, str]:
        """Titles of all metrics of the run, by name."""
        return dict(self._metric_choices)

    @property
    def errors_sentence(self) -> str:
        """Errors of an invalid form, with the labels of their fields."""
        return " ".join(
            f"{self[name].label}: {error}" for name, field_errors in self.errors.items() for error in field_errors
        )
