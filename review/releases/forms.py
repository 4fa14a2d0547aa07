"""Form of a queue of pairs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from evaluation.models import User
from review.models.queue_spec import MAX_REVIEWS, SETTINGS


class PairQueueForm(forms.Form):
    """Number of changed questions and their reviewers. ``people`` can be chosen, ``experts`` are selected at first."""

    questions = forms.IntegerField(
        label=_("Changed questions to rate"),
        min_value=1,
        max_value=100_000,
        help_text=_("Experts rate both answers to each of them, mixed and without seeing which run gave which."),
    )
    reviews_needed = forms.IntegerField(
        label=_("Reviewers per question"), min_value=1, max_value=MAX_REVIEWS, initial=1
    )
    looks = forms.IntegerField(
        label=_("Planned rounds"),
        min_value=1,
        max_value=SETTINGS["looks"].limits[1],
        initial=1,
        help_text=_("You read the difference after each round. With more rounds, verdicts use wider intervals."),
    )
    reviewers = forms.MultipleChoiceField(
        label=_("Reviewers"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Each question goes to people who haven't seen a judge's value of its answers, if possible."),
    )

    def __init__(
        self, *args: Any, people: Sequence[User], experts: Collection[int] = (), size: int = 0, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self._people = {str(user.pk): user for user in people}
        field = self.fields["reviewers"]
        assert isinstance(field, forms.MultipleChoiceField)  # noqa: S101  -- tells the type checker
        field.choices = [(str(user.pk), user.display_name) for user in people]
        field.initial = [str(user.pk) for user in people if user.pk in experts]
        if size:
            self.fields["questions"].initial = size

    @property
    def people(self) -> list[User]:
        """Selected reviewers of a valid form."""
        return [self._people[pk] for pk in self.cleaned_data["reviewers"]]

    @property
    def errors_sentence(self) -> str:
        """Errors of an invalid form, with the labels of their fields."""
        return " ".join(
            f"{self[name].label}: {error}" for name, field_errors in self.errors.items() for error in field_errors
        )
