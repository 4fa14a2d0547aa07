"""Form that edits the wording of a rubric in plain fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from evaluation.criteria.rubrics import MAX_REASON_LENGTH
from evaluation.judging.rubric import Rubric, RubricMetric

MAX_ANCHOR_LENGTH = 120


class WordingField(forms.CharField):
    """Text of a rubric, without the browser's line endings."""

    def to_python(self, value: Any) -> str:
        return str(super().to_python(value)).replace("\r\n", "\n")


class WordingForm(forms.Form):
    """Instruction, questions and level texts of a rubric; everything else stays as it is."""

    note = forms.CharField(label=_("Reason"), required=False, max_length=MAX_REASON_LENGTH)

    def __init__(self, rubric: Rubric, data: Any = None) -> None:
        super().__init__(data)
        self.base = rubric
        language = {"lang": rubric.language}
        area = forms.Textarea(attrs={**language, "rows": 14})
        self.fields["instruction"] = WordingField(
            label=_("Instruction"), initial=rubric.instruction.strip(), widget=area
        )
        for index, metric in enumerate(rubric.metrics):
            area = forms.Textarea(attrs={**language, "rows": 2})
            self.fields[f"question-{index}"] = WordingField(
                label=_("Question"), initial=metric.question.strip(), widget=area
            )
            for position, (key, text) in enumerate(anchors(metric)):
                self.fields[f"anchor-{index}-{position}"] = WordingField(
                    label=key,
                    initial=" ".join(text.split()),
                    max_length=MAX_ANCHOR_LENGTH,
                    widget=forms.TextInput(attrs=language),
                )

    @property
    def sections(self) -> Iterator[tuple[str, list[forms.BoundField]]]:
        """Name and fields of each metric."""
        for index, metric in enumerate(self.base.metrics):
            names = [f"question-{index}", *(name for name in self.fields if name.startswith(f"anchor-{index}-"))]
            yield metric.name, [self[name] for name in names]

    def clean(self) -> dict[str, Any]:
        if not self.errors and not set(self.changed_data) - {"note"}:
            raise forms.ValidationError(_("Nothing was changed."))
        return self.cleaned_data

    def rubric(self) -> Rubric:
        """Return the rubric with the changed texts. Score maps are dropped, because they were fitted to the earlier
        texts."""
        texts = {name: self.cleaned_data[name] for name in self.changed_data}
        metrics = []
        for index, metric in enumerate(self.base.metrics):
            kind = "levels" if metric.levels else "labels"
            rows = tuple(
                row.model_copy(update={"text": texts.get(f"anchor-{index}-{position}", row.text)})
                for position, row in enumerate(getattr(metric, kind))
            )
            question = texts.get(f"question-{index}", metric.question)
            metrics.append(metric.model_copy(update={"question": question, kind: rows, "score_map": ()}))
        instruction = texts.get("instruction", self.base.instruction)
        return self.base.model_copy(update={"instruction": instruction, "metrics": tuple(metrics), "mapped_from": ""})


def anchors(metric: RubricMetric) -> list[tuple[str, str]]:
    """Return the levels or labels of a metric with their texts."""
    return [(f"{level.value:g}", level.text) for level in metric.levels] + [
        (label.label, label.text) for label in metric.labels
    ]
