"""The form of a new review queue."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django import forms
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from evaluation.accounts.models import User
from evaluation.runs.models import Run
from evaluation.scores.models import MetricDefinition
from review.models.queues import ReviewQueue
from review.queues.making import MOST_REVIEWS
from review.sampling.member import Strategy

STRATEGIES = [
    (Strategy.STRATIFIED.value, _("Spread over judge scores and categories (recommended)")),
    (Strategy.UNIFORM.value, _("By chance alone")),
    (Strategy.ALL.value, _("Every answer")),
]


class QueueForm(forms.Form):
    """What a lead decides about a queue; the engine checks the rules that hold between the fields. ``people`` may be
    chosen, of whom the ``experts`` are chosen to begin with."""

    name = forms.CharField(
        label=_("Name"),
        max_length=200,
        required=False,
        help_text=_("Reviewers read it: no system, judge or strategy. Left empty, the question set and a number."),
    )
    strategy = forms.ChoiceField(label=_("Which answers"), choices=STRATEGIES, initial=Strategy.STRATIFIED.value)
    size = forms.IntegerField(label=_("How many answers"), min_value=1, max_value=100_000, initial=60)
    metrics = forms.MultipleChoiceField(label=_("Criteria"), widget=forms.CheckboxSelectMultiple)
    reviewers = forms.MultipleChoiceField(label=_("Reviewers"), widget=forms.CheckboxSelectMultiple)
    reviews_needed = forms.IntegerField(
        label=_("Reviewers per answer"),
        min_value=1,
        max_value=MOST_REVIEWS,
        initial=1,
        help_text=_("With two or more, agreement among experts can be measured."),
    )
    mode = forms.ChoiceField(
        label=_("Mode"),
        choices=[
            (ReviewQueue.Mode.BLIND, _("Blind: experts rate before they see the judge")),
            (ReviewQueue.Mode.ASSISTED, _("Assisted: the judge is shown at once; never used for agreement")),
        ],
        widget=forms.RadioSelect,
        initial=ReviewQueue.Mode.BLIND,
    )
    reveal = forms.ChoiceField(
        label=_("Show the judge afterwards"),
        choices=[
            (ReviewQueue.Reveal.ON_DIFFERENCE, _("where they differ, and now and then by chance")),
            (ReviewQueue.Reveal.ALWAYS, _("always")),
            (ReviewQueue.Reveal.NEVER, _("never")),
        ],
        initial=ReviewQueue.Reveal.ON_DIFFERENCE,
    )
    reveal_threshold = forms.FloatField(
        label=_("Levels apart that count as a difference"), min_value=0, max_value=100, initial=2
    )
    guideline = forms.CharField(
        label=_("Guideline for reviewers"), widget=forms.Textarea, max_length=20_000, required=False
    )
    show_system = forms.BooleanField(
        label=_("Let reviewers see which system answered"), required=False, help_text=_("This is recorded.")
    )

    def __init__(
        self,
        *args: Any,
        run: Run,
        metrics: Sequence[MetricDefinition],
        people: Sequence[User],
        experts: Collection[int] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        language = get_language() or "en"
        self.run = run
        self._people = {str(one.pk): one for one in people}
        self._metrics = {metric.name: metric for metric in metrics}
        choices: dict[str, list[tuple[str, str]]] = {
            "metrics": [(m.name, m.title.get(language) or m.name) for m in metrics],
            "reviewers": [(str(one.pk), one.get_full_name() or one.get_username()) for one in people],
        }
        for name, options in choices.items():
            field = self.fields[name]
            assert isinstance(field, forms.MultipleChoiceField)  # noqa: S101  -- tells the type checker
            field.choices = options
        self.fields["reviewers"].initial = [str(one.pk) for one in people if one.pk in experts]
        self.fields["metrics"].initial = [m.name for m in metrics if m.kind == "judge"]

    @property
    def people(self) -> list[User]:
        """The chosen reviewers of a valid form."""
        return [self._people[pk] for pk in self.cleaned_data["reviewers"]]

    @property
    def chosen_metrics(self) -> list[MetricDefinition]:
        """The chosen criteria of a valid form."""
        return [self._metrics[name] for name in self.cleaned_data["metrics"]]
