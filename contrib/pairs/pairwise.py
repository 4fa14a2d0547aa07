"""A judge's preference between two answers, asked in both orders; a tie if the orders disagree.

Judges favour a position (Zheng et al. 2023, "Judging LLM-as-a-Judge", section 3.3); a verdict that changes sides with
the order says nothing about the answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.judging.calls import JudgeRequest, ParsedReply
from evaluation.judging.formulas import read_verdict
from evaluation.judging.lexical import correctness
from evaluation.judging.rubric import Rubric, object_schema

FAMILY, METRIC = "pairwise", "preference"
PREFERENCE_VALUES: Mapping[str, int] = {
    "FIRST_MUCH_BETTER": -2,
    "FIRST_BETTER": -1,
    "EQUAL": 0,
    "SECOND_BETTER": 1,
    "SECOND_MUCH_BETTER": 2,
}


class JoinedPreference(NamedTuple):
    """Joined preference of both orders: ``value`` from -2 (A much better) to 2 (B much better), or ``None`` with the
    reason code in ``failure``. ``disagree``: the orders named different sides, which counts as a tie."""

    value: float | None
    failure: str
    disagree: bool


def pairwise_request(rubric: Rubric, question: str, reference: str, first: str, second: str) -> JudgeRequest:
    """Build the judge request for one order; it never contains the systems' names."""
    blocks: dict[str, Any] = {"question": question}
    if reference:
        blocks["reference"] = reference
    blocks |= {"first": first, "second": second}
    metric = rubric.metric(METRIC)
    shape = object_schema({METRIC: metric.lenient_verdict_schema})
    return JudgeRequest(blocks, object_schema({METRIC: metric.verdict_schema}), (METRIC,), accepted_schema=shape)


def read_preference(rubric: Rubric, reply: ParsedReply) -> Result:
    """Read the verdict of one order, from -2 (first much better) to 2."""
    if reply.failure:
        return Result.failed(reply.failure)
    result = read_verdict(rubric.metric(METRIC), reply.parts.get(METRIC))
    return result if result.label is None else Result.scored(PREFERENCE_VALUES[result.label], reason=result.reason)


def join_orders(forward: Result, backward: Result) -> JoinedPreference:
    """Join both orders: ``forward`` shows A first, ``backward`` B first. The value is their mean, or 0 if they name
    different sides."""
    if forward.value is None or backward.value is None:
        failed_result = forward if forward.value is None else backward
        return JoinedPreference(None, failed_result.reason, disagree=False)
    a, b = forward.value, -backward.value
    if a * b < 0:
        return JoinedPreference(0.0, "", disagree=True)
    return JoinedPreference((a + b) / 2, "", disagree=False)


def baseline_preference(question: QuestionSpec, first: str, second: str) -> Result:
    """Preference of the offline baseline: difference of the two answers' levels of word overlap with the expected
    answer. Not applicable without a reference."""
    if not question.references:
        return Result.not_applicable("no_reference")
    levels = [correctness(question, AnswerSpec(text)).level for text in (first, second)]
    return Result.scored(max(-2, min(2, levels[1] - levels[0])))
