"""Forms of generated questions: the spec, and an edited question."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from contrib.corpora.models import Corpus
from contrib.generation.kinds import KINDS
from contrib.generation.models import DraftQuestion, Generation
from contrib.generation.services import MAX_PASSAGES, MAX_PER_PASSAGE, GenerationSpec
from evaluation.models import JudgeVersion

KIND_LABELS = {
    "single_hop": _("one fact from one passage"),
    "multi_hop_2": _("facts from two passages combined"),
    "multi_hop_3": _("facts from three passages combined"),
    "aggregation": _("counts or comparisons across passages"),
    "inference": _("inferred from a passage, not stated in it"),
    "negative": _("not answered by the documents"),
}


class GenerationForm(forms.Form):
    """Spec of a generation. Offers corpora of the user's projects, and judges with a model."""

    corpus = forms.ModelChoiceField(Corpus.objects.none(), label=_("Corpus"))
    judge = forms.ModelChoiceField(JudgeVersion.objects.none(), label=_("Model that writes and checks"))
    name = forms.CharField(
        max_length=200, label=_("Name"), help_text=_("Question set created from the accepted questions.")
    )
    language = forms.ChoiceField(choices=Generation.Language.choices, label=_("Question language"))
    kinds = forms.MultipleChoiceField(
        choices=KIND_LABELS.items(), label=_("Question types"), widget=forms.CheckboxSelectMultiple
    )
    passages = forms.IntegerField(
        min_value=1,
        max_value=MAX_PASSAGES,
        initial=20,
        label=_("Passages"),
        help_text=_("Number of random passages. Start small."),
    )
    per_passage = forms.IntegerField(
        min_value=1, max_value=MAX_PER_PASSAGE, initial=1, label=_("Questions per passage")
    )
    budget = forms.DecimalField(
        min_value=0,
        max_digits=12,
        decimal_places=4,
        required=False,
        label=_("Budget in US dollars"),
        help_text=_("Leave empty for no limit."),
    )

    def __init__(self, corpora: Any, judges: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["corpus"].queryset = corpora  # type: ignore[attr-defined]  # a field of rows
        self.fields["judge"].queryset = judges  # type: ignore[attr-defined]
        self.fields["kinds"].initial = [*KINDS]

    def clean(self) -> dict[str, Any] | None:
        """Require corpus and model of the same project."""
        cleaned = super().clean()
        corpus, judge = self.cleaned_data.get("corpus"), self.cleaned_data.get("judge")
        if corpus and judge and corpus.project_id != judge.project_id:
            self.add_error("judge", format_lazy(_("{judge} and the corpus belong to different projects."), judge=judge))
        return cleaned

    @property
    def spec(self) -> GenerationSpec:
        """Spec of a valid form."""
        cleaned = self.cleaned_data
        return GenerationSpec(
            name=cleaned["name"],
            language=cleaned["language"],
            kinds=tuple(cleaned["kinds"]),
            passages=cleaned["passages"],
            per_passage=cleaned["per_passage"],
            budget=cleaned["budget"] or None,
        )


class DraftForm(forms.Form):
    """A question with its answer, for editing."""

    text = forms.CharField(max_length=2_000, label=_("Question"), widget=forms.Textarea({"rows": 3}))
    answer = forms.CharField(max_length=8_000, label=_("Expected answer"), widget=forms.Textarea({"rows": 3}))
    keywords = forms.CharField(
        max_length=2_000,
        required=False,
        label=_("Keywords"),
        help_text=_("One per line. Separate alternatives with |."),
        widget=forms.Textarea({"rows": 3}),
    )
    required_info = forms.CharField(
        max_length=4_000,
        required=False,
        label=_("Required facts"),
        help_text=_("One fact per line."),
        widget=forms.Textarea({"rows": 3}),
    )

    @classmethod
    def for_draft(cls, draft: DraftQuestion, content: dict[str, Any]) -> DraftForm:
        """Return the form with the question's content, and element ids unique to the draft."""
        initial = {
            "text": content["text"],
            "answer": "\n".join(content["references"]),
            "keywords": "\n".join("|".join(alternatives) for alternatives in content["keywords"]),
            "required_info": "\n".join(content["required_info"]),
        }
        return cls(initial=initial, auto_id=f"draft-{draft.pk}-%s")

    @property
    def content(self) -> dict[str, Any]:
        """Edited fields of a valid form."""
        cleaned = self.cleaned_data
        alternatives = (
            [word.strip() for word in line.split("|") if word.strip()] for line in _lines(cleaned["keywords"])
        )
        return {
            "text": cleaned["text"].strip(),
            "references": [cleaned["answer"].strip()],
            "keywords": [words for words in alternatives if words],
            "required_info": _lines(cleaned["required_info"]),
        }


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]
