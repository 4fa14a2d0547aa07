"""A judge's preference between two answers: asked in both orders, a tie where the orders disagree.

Judges favour a position (Zheng et al. 2023, "Judging LLM-as-a-Judge", section 3.3); a verdict that changes sides with
the order says nothing about the answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.judging.calls import Ask, Heard
from evaluation.judging.formulas import read_verdict
from evaluation.judging.lexical import correctness
from evaluation.judging.rubric import Rubric, closed

FAMILY, METRIC = "pairwise", "preference"
VALUES: Mapping[str, int] = {
    "FIRST_MUCH_BETTER": -2,
    "FIRST_BETTER": -1,
    "EQUAL": 0,
    "SECOND_BETTER": 1,
    "SECOND_MUCH_BETTER": 2,
}


class Joined(NamedTuple):
    """The preference of both orders: ``value`` from -2 (A much better) to 2 (B much better), ``None`` with the reason
    code in ``failure``. ``disagree``: the orders named different sides, which counts as a tie."""

    value: float | None
    failure: str
    disagree: bool


def pairwise_ask(rubric: Rubric, question: str, reference: str, first: str, second: str) -> Ask:
    """The request for one order; the system's names are never shown."""
    blocks: dict[str, Any] = {"question": question}
    if reference:
        blocks["reference"] = reference
    blocks |= {"first": first, "second": second}
    metric = rubric.metric(METRIC)
    shape = closed({METRIC: metric.verdict_shape})
    return Ask(blocks, closed({METRIC: metric.verdict_schema}), (METRIC,), shape=shape)


def read_preference(rubric: Rubric, heard: Heard) -> Result:
    """One order's verdict as -2 (first much better) to 2."""
    if heard.failure:
        return Result.failed(heard.failure)
    result = read_verdict(rubric.metric(METRIC), heard.parts.get(METRIC))
    return result if result.label is None else Result.scored(VALUES[result.label], reason=result.reason)


def joined(forward: Result, backward: Result) -> Joined:
    """Both orders as one: ``forward`` saw A first, ``backward`` B first. The mean where both name one side or one of
    them none; 0 where they name different sides."""
    if forward.value is None or backward.value is None:
        failed = forward if forward.value is None else backward
        return Joined(None, failed.reason, disagree=False)
    a, b = forward.value, -backward.value
    if a * b < 0:
        return Joined(0.0, "", disagree=True)
    return Joined((a + b) / 2, "", disagree=False)


def baseline_preference(question: QuestionSpec, first: str, second: str) -> Result:
    """The offline baseline's: which answer shares more words with the expected one, by its levels of correctness."""
    if not question.references:
        return Result.not_applicable("no_reference")
    levels = [correctness(question, AnswerSpec(text)).level for text in (first, second)]
    return Result.scored(max(-2, min(2, levels[1] - levels[0])))
