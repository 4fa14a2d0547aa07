"""Which metrics of a rubric family apply to an answer: a metric without its input is not applicable, not zero."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evaluation.registry import MetricSpec
from evaluation.samples import AnswerSpec, QuestionSpec, Result

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


def applicability(specs: Iterable[MetricSpec], question: QuestionSpec, answer: AnswerSpec) -> Applicability:
    """Split a family's metrics by whether their declared inputs are there."""
    asked: list[MetricSpec] = []
    left_out: dict[str, Result] = {}
    for spec in specs:
        if reason := missing_input(spec, question, answer):
            left_out[spec.name] = Result.not_applicable(reason)
        else:
            asked.append(spec)
    return Applicability(tuple(asked), left_out)


def missing_input(spec: MetricSpec, question: QuestionSpec, answer: AnswerSpec) -> str:
    """The reason why the metric does not apply, or an empty text.

    Expected keywords stand in for a missing reference. An empty list of contexts is an input: the system
    retrieves and found nothing.
    """
    if "reference" in spec.inputs and not (question.references or question.keywords):
        return "no_reference"
    if "contexts" in spec.inputs and answer.contexts is None:
        return "does_not_retrieve"
    if "nuggets" in spec.inputs and not question.nuggets:
        return "no_nuggets"
    if "check" in spec.inputs and question.category.casefold() != NEGATIVE and not question.check:
        return "not_negative"
    return ""
