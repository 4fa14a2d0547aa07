"""Forms of generated questions: what is to be written, and a question that is edited."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from contrib.corpora.models import Corpus
from contrib.generation.kinds import KINDS
from contrib.generation.models import DraftQuestion, Generation
from contrib.generation.services import MOST_PASSAGES, MOST_PER_PASSAGE, Wanted
from evaluation.models import JudgeVersion

KIND_LABELS = {
    "single_hop": _("one fact of one passage"),
    "multi_hop_2": _("facts of two passages joined"),
    "multi_hop_3": _("facts of three passages joined"),
    "aggregation": _("counted or compared over several passages"),
    "inference": _("follows from a passage, but does not stand there"),
    "negative": _("not told by the documents"),
}


class GenerationForm(forms.Form):
    """What is to be written. Corpora are those of projects one may evaluate in; judges those that have a model."""

    corpus = forms.ModelChoiceField(Corpus.objects.none(), label=_("Corpus"))
    judge = forms.ModelChoiceField(JudgeVersion.objects.none(), label=_("Model that writes and checks"))
    name = forms.CharField(
        max_length=200, label=_("Name"), help_text=_("Of the question set that accepted questions make.")
    )
    language = forms.ChoiceField(choices=Generation.Language.choices, label=_("Language of the questions"))
    kinds = forms.MultipleChoiceField(
        choices=KIND_LABELS.items(), label=_("Kinds of questions"), widget=forms.CheckboxSelectMultiple
    )
    passages = forms.IntegerField(
        min_value=1,
        max_value=MOST_PASSAGES,
        initial=20,
        label=_("Passages"),
        help_text=_("So many are drawn by chance; begin with few."),
    )
    per_passage = forms.IntegerField(min_value=1, max_value=MOST_PER_PASSAGE, initial=1, label=_("Questions a passage"))
    budget = forms.DecimalField(
        min_value=0,
        max_digits=12,
        decimal_places=4,
        required=False,
        label=_("Budget in US dollars"),
        help_text=_("Empty: without a limit."),
    )

    def __init__(self, corpora: Any, judges: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["corpus"].queryset = corpora  # type: ignore[attr-defined]  # a field of rows
        self.fields["judge"].queryset = judges  # type: ignore[attr-defined]
        self.fields["kinds"].initial = [*KINDS]

    def clean(self) -> dict[str, Any] | None:
        """Corpus and model belong to one project."""
        found = super().clean()
        corpus, judge = self.cleaned_data.get("corpus"), self.cleaned_data.get("judge")
        if corpus and judge and corpus.project_id != judge.project_id:
            self.add_error("judge", format_lazy(_("{judge} belongs to another project than the corpus."), judge=judge))
        return found

    @property
    def wanted(self) -> Wanted:
        """What the valid form asks for."""
        given = self.cleaned_data
        return Wanted(
            name=given["name"],
            language=given["language"],
            kinds=tuple(given["kinds"]),
            passages=given["passages"],
            per_passage=given["per_passage"],
            budget=given["budget"] or None,
        )


class DraftForm(forms.Form):
    """A question with its answer, to be edited."""

    text = forms.CharField(max_length=2_000, label=_("Question"), widget=forms.Textarea({"rows": 3}))
    answer = forms.CharField(max_length=8_000, label=_("Expected answer"), widget=forms.Textarea({"rows": 3}))
    keywords = forms.CharField(
        max_length=2_000,
        required=False,
        label=_("Keywords"),
        help_text=_("One a line; alternatives are set apart by |."),
        widget=forms.Textarea({"rows": 3}),
    )
    required_info = forms.CharField(
        max_length=4_000,
        required=False,
        label=_("What a complete answer holds"),
        help_text=_("One fact a line."),
        widget=forms.Textarea({"rows": 3}),
    )

    @classmethod
    def of(cls, draft: DraftQuestion, content: dict[str, Any]) -> DraftForm:
        """The form with a question's words, its ids made for this draft."""
        initial = {
            "text": content["text"],
            "answer": "\n".join(content["references"]),
            "keywords": "\n".join("|".join(one) for one in content["keywords"]),
            "required_info": "\n".join(content["required_info"]),
        }
        return cls(initial=initial, auto_id=f"draft-{draft.pk}-%s")

    @property
    def content(self) -> dict[str, Any]:
        """The fields of the question that the valid form holds."""
        given = self.cleaned_data
        alternatives = ([one.strip() for one in line.split("|") if one.strip()] for line in _lines(given["keywords"]))
        return {
            "text": given["text"].strip(),
            "references": [given["answer"].strip()],
            "keywords": [one for one in alternatives if one],
            "required_info": _lines(given["required_info"]),
        }


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
