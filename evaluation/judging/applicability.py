"""Which metrics of a rubric family apply to an answer: a metric without its input is not applicable, not zero."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evaluation.core.registry import MetricSpec, RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result

NEGATIVE = "negative"


@dataclass(frozen=True, slots=True)
class Applicability:
    """The metrics to ask the judge for, and the result of each that needs no asking."""

    specs: tuple[MetricSpec, ...]
    not_applicable: dict[str, Result]

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics to ask for."""
        return tuple(spec.name for spec in self.specs)


def applicability(
    specs: Iterable[MetricSpec], question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings | None = None
) -> Applicability:
    """Split a family's metrics by whether their declared inputs are there."""
    asked: list[MetricSpec] = []
    left_out: dict[str, Result] = {}
    for spec in specs:
        if reason := missing_input(spec, question, answer, settings or RuleSettings()):
            left_out[spec.name] = Result.not_applicable(reason)
        else:
            asked.append(spec)
    return Applicability(tuple(asked), left_out)


def missing_input(spec: MetricSpec, question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> str:
    """The reason why the metric does not apply, or an empty text.

    Expected keywords stand in for a missing reference. An empty list of contexts is an input: the system
    retrieves and found nothing. ``evidence`` is a reference or contexts, ``points`` a reference or required
    information, ``embeddings`` what the run embeds texts with. A question of a category that the metric is not made for
    comes first.
    """
    if spec.categories and question.category not in spec.categories:
        return "other_category"
    reference = bool(question.references or question.keywords)
    retrieves = answer.contexts is not None
    negative = question.category.casefold() == NEGATIVE or bool(question.check)
    there = {
        "reference": (reference, "no_reference"),
        "contexts": (retrieves, "does_not_retrieve"),
        "evidence": (reference or retrieves, "no_reference"),
        "points": (reference or bool(question.required_info), "no_reference"),
        "nuggets": (bool(question.nuggets or settings.nuggets), "no_nuggets"),
        "check": (negative, "not_negative"),
        "required_info": (bool(question.required_info), "no_required_info"),
        "persona": (bool(question.persona), "no_persona"),
        "history": (bool(question.history), "no_history"),
        "embeddings": (settings.embeds, "no_embeddings"),
    }
    return next((reason for name, (is_there, reason) in there.items() if name in spec.inputs and not is_there), "")
