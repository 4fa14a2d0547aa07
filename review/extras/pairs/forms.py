"""The forms of comparisons side by side."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from evaluation.core.whole_numbers import whole_number
from evaluation.models import RoleGrant, Run, User
from review.extras.pairs.preferring import LEAST, LONGEST_REASON, MOST
from review.models import Pair, PairSet

LONGEST_NAME = 200
LARGEST = 5000


class People(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]  # generic for mypy alone
    """People by the names that pages know them by."""

    def label_from_instance(self, obj: User) -> str:
        """The person's name."""
        return obj.known_as


class NewPairsForm(forms.Form):
    """What to compare a run with, how many questions, and who rates."""

    run_b = forms.ModelChoiceField(Run.objects.none(), label=_("Compare with"))
    name = forms.CharField(label=_("Name"), max_length=LONGEST_NAME, help_text=_("Reviewers see it; name no system."))
    size = forms.IntegerField(label=_("Questions"), min_value=1, max_value=LARGEST, initial=30)
    reviewers = People(
        User.objects.none(), label=_("Reviewers"), widget=forms.CheckboxSelectMultiple, help_text=_("Each rates all.")
    )
    guideline = forms.CharField(
        label=_("Guideline"), required=False, max_length=LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 3})
    )

    def __init__(self, run: Run, data: Any = None) -> None:
        super().__init__(data)
        others = (
            Run.objects.select_related(Run.NAMED_BY)
            .filter(project=run.project_id)
            .exclude(answer_set=run.answer_set_id)
        )
        asked = run.answer_set.question_set.name
        choices = others.filter(answer_set__question_set__name=asked).order_by("-id")
        self.fields["run_b"].queryset = choices  # type: ignore[attr-defined]
        people = RoleGrant.objects.filter(project=run.project_id).values("user")
        active = User.objects.filter(pk__in=people, is_active=True).order_by("username")
        self.fields["reviewers"].queryset = active  # type: ignore[attr-defined]


class PreferenceForm(forms.Form):
    """One decision about one pair, as it was seen: -2 (left much better) to 2 (right much better)."""

    pair = forms.ModelChoiceField(Pair.objects.none())
    value = forms.TypedChoiceField(choices=[(str(n), str(n)) for n in range(LEAST, MOST + 1)], coerce=int)
    reason = forms.CharField(required=False)
    seconds = forms.FloatField(required=False, min_value=0, max_value=86_400)

    def __init__(self, found: PairSet, data: Any) -> None:
        super().__init__(data)
        self.fields["pair"].queryset = found.pairs.all()  # type: ignore[attr-defined]

    @property
    def pair_id(self) -> int | None:
        """The pair that was meant, where it can be told."""
        return whole_number(str(self.data.get("pair", "")))

    def clean_reason(self) -> str:
        """The reason with line breaks as the browser counted them, one character each."""
        reason: str = self.cleaned_data["reason"]
        return reason.replace("\r\n", "\n")

    def messages(self) -> list[str]:
        """Everything that is wrong, a missing choice first in plain words."""
        return [str(error) for errors in self.errors.values() for error in errors]
