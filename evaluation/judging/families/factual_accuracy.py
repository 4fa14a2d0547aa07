"""Family ``factual_accuracy`` of RAGAS: three judged steps in one call, combined to a weighted score and a grade."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.samples import Finding, Result
from evaluation.core.scales import PERCENT
from evaluation.judging.calls import Family, JudgeCase, JudgeRequest, Judging, failed_results
from evaluation.judging.prechecks import worst_result
from evaluation.judging.prompt import data_blocks, declared_inputs
from evaluation.judging.rubric import ANY_VALUE, NUMBER, TEXT, object_schema

NAME = "factual_accuracy"
STEP, ASK = "step", "assess"
CONFIDENCE = "confidence"
WEIGHTS: Mapping[str, float] = MappingProxyType({"correctness": 0.5, "completeness": 0.3, "consistency": 0.2})
GRADES = ((80.0, "A"), (60.0, "B"), (40.0, "C"), (20.0, "D"))
# Rounding, so that 79.9999999999 is an 80.
_DIGITS = 9

SPEC = judged_spec(
    name=NAME,
    scale=PERCENT,
    title=Bilingual("Factual accuracy", "사실 정확도"),
    formula=Bilingual(
        "0.5 x correctness + 0.3 x completeness + 0.2 x consistency, each judged from 0 to 100; grade A from 80, B "
        "from 60, C from 40, D from 20, else E",
        "0.5 x 정확성 + 0.3 x 완전성 + 0.2 x 일관성(각각 판정관이 매긴 0~100). 등급은 80 이상 A, 60 이상 B, "
        "40 이상 C, 20 이상 D, 그 밖에 E",
    ),
    source="ragas",
    inputs=("reference",),
    rubric_family=NAME,
)


def judge(case: JudgeCase) -> Judging:
    """Request all steps at once. A missing or off-scale step fails the score."""
    schema, accepted_schema = (
        object_schema({**dict.fromkeys(WEIGHTS, object_schema({"reason": TEXT, "score": number})), CONFIDENCE: number})
        for number in (NUMBER, ANY_VALUE)
    )
    blocks = data_blocks(case.question, case.answer, declared_inputs(case))
    reply = yield JudgeRequest(
        blocks, schema, (*WEIGHTS, CONFIDENCE), ASK, accepted_schema=accepted_schema, all_parts_required=True
    )
    return failed_results(case, reply) if reply.failure else {NAME: weighted_score(reply.parts)}


def weighted_score(parts: Mapping[str, Any]) -> Result:
    """Weighted score of the three steps; the steps and their reasons are in the details."""
    scores = {name: parts[name]["score"] for name in WEIGHTS}
    off_scale = {name: str(score)[:80] for name, score in scores.items() if not _on_scale(score)}
    if off_scale:
        return Result.failed("scale", detail={"got": off_scale})
    value = round(sum(weight * scores[name] for name, weight in WEIGHTS.items()), _DIGITS)
    detail: dict[str, Any] = {**scores, "grade": letter_grade(value)}
    if _on_scale(parts[CONFIDENCE]):
        detail[CONFIDENCE] = parts[CONFIDENCE]
    findings = tuple(Finding(STEP, name, f"{scores[name]:g}", reason=parts[name]["reason"]) for name in WEIGHTS)
    return Result.scored(value, reason=parts["correctness"]["reason"], detail=detail, findings=findings)


def letter_grade(value: float) -> str:
    """Letter grade of a score; each grade includes its lower bound."""
    return next((letter for lower, letter in GRADES if round(value, _DIGITS) >= lower), "E")


def _on_scale(score: Any) -> bool:
    return isinstance(score, int | float) and not isinstance(score, bool) and PERCENT.contains(score)


FAMILY = Family(NAME, (SPEC,), judge, floor=worst_result)
