"""The form of a new review queue."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _

from evaluation.core.errors import Refused
from evaluation.core.registry import JUDGED
from evaluation.models import MetricDefinition, Run, User
from evaluation.wording.messages import explain_refusal
from review.models import ReviewQueue
from review.plans.errors import GUESS
from review.queues.lists import fields_from, listed
from review.queues.making import MOST_REVIEWS
from review.queues.sharing import MOST_REPEATS, Distribution, Sharing
from review.statistics.sampling.member import Strategy
from review.web.forms.leading import MOMENT

STRATEGIES = [
    (Strategy.STRATIFIED.value, _("Spread over judge scores and categories (recommended)")),
    (Strategy.UNIFORM.value, _("By chance alone")),
    (Strategy.ALL.value, _("Every answer")),
    (Strategy.FAILS_PLUS_SHARE.value, _("All that the judge failed, and a share of the others")),
    (Strategy.UNCERTAINTY.value, _("Rather where the judge disagrees with itself")),
    (Strategy.HAND_PICKED.value, _("Questions I name (no corrected score from these)")),
]
DISTRIBUTIONS = [
    (Distribution.POOL, _("Whoever is free takes the next one")),
    (Distribution.ROUND_ROBIN, _("Everybody in turn")),
    (Distribution.BALANCED, _("Whoever has least to do")),
    (Distribution.BY_TAG, _("By tag or category of the question")),
    (Distribution.PER_ITEM, _("I name people answer by answer, on the page of the queue")),
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
    runs = forms.MultipleChoiceField(
        label=_("Further runs"),
        widget=forms.CheckboxSelectMultiple,
        required=False,
        help_text=_("Their answers are mixed in, so that nobody can tell the systems apart."),
    )
    strategy = forms.ChoiceField(label=_("Which answers"), choices=STRATEGIES, initial=Strategy.STRATIFIED.value)
    fail_below = forms.FloatField(
        label=_("The judge failed an answer below"), required=False, help_text=_("On the criterion's own scale.")
    )
    other_share = forms.FloatField(
        label=_("Of the other answers, in percent"),
        min_value=0.1,
        max_value=100,
        required=False,
        help_text=_("Left empty, as many as the number of answers allows."),
    )
    questions = forms.CharField(
        label=_("Questions"),
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=50_000,
        required=False,
        help_text=_("Ids of questions, separated by commas or lines."),
    )
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
    overlap_percent = forms.FloatField(
        label=_("Share of the answers that so many people rate, in percent"),
        min_value=0,
        max_value=100,
        initial=100,
        help_text=_("The others are rated once. 10 to 20 percent are enough to measure agreement."),
    )
    repeat_percent = forms.FloatField(
        label=_("Hidden repeats, in percent"),
        min_value=0,
        max_value=100 * MOST_REPEATS,
        initial=0,
        help_text=_(
            "So many answers come to the same person again, much later and unmarked. They count nowhere twice."
        ),
    )
    distribution = forms.ChoiceField(label=_("Who rates what"), choices=DISTRIBUTIONS, initial=Distribution.POOL)
    fields_of = forms.CharField(
        label=_("Tags and their people"),
        widget=forms.Textarea(attrs={"rows": 3}),
        max_length=20_000,
        required=False,
        help_text=_("One line each, such as “tax: kim, lee”."),
    )
    deadline = forms.DateTimeField(
        label=_("Deadline"),
        required=False,
        input_formats=[MOMENT, f"{MOMENT}:%S"],
        widget=forms.DateTimeInput(format=MOMENT, attrs={"type": "datetime-local"}),
        help_text=_("Reviewers with something left are reminded by e-mail before it."),
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
    reveal_percent = forms.FloatField(
        label=_("Shown by chance besides, in percent"), min_value=0, max_value=100, initial=10
    )
    adjudicate_from = forms.FloatField(
        label=_("Levels between two reviewers from which a lead decides"),
        min_value=0,
        max_value=100,
        initial=2,
        help_text=_("0: never because of a difference."),
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
        others: Sequence[Run] = (),
        metrics: Sequence[MetricDefinition],
        people: Sequence[User],
        experts: Collection[int] = (),
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
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
        self.fields["metrics"].initial = [m.name for m in metrics if m.kind in JUDGED]

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
    def sharing(self) -> Sharing:
        """Whom the items are for."""
        said = self.cleaned_data
        by_tag = said["distribution"] == Distribution.BY_TAG
        return Sharing(
            distribution=said["distribution"],
            overlap_share=said["overlap_percent"] / 100,
            repeat_share=said["repeat_percent"] / 100,
            fields=said["fields_of"] if by_tag else {},
        )

    @property
    def people(self) -> list[User]:
        """The chosen reviewers of a valid form."""
        return [self._people[pk] for pk in self.cleaned_data["reviewers"]]

    @property
    def judge_off(self) -> float:
        """How far the judge is taken to be off, as a share of the scale, of a valid form."""
        percent = self.cleaned_data["guess"]
        return GUESS if percent is None else percent / 100.0

    @property
    def chosen_metrics(self) -> list[MetricDefinition]:
        """The chosen criteria of a valid form."""
        return [self._metrics[name] for name in self.cleaned_data["metrics"]]
