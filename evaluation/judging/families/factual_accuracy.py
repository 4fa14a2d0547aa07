"""Family ``factual_accuracy`` (source 001): three judged steps in one call; we weigh them and give the grade."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from evaluation.core.metric_specs import Bilingual, judged_spec
from evaluation.core.samples import Finding, Result
from evaluation.core.scales import PERCENT
from evaluation.judging.calls import Ask, Case, Family, Judging, failed
from evaluation.judging.gates import bottom
from evaluation.judging.prompt import data_blocks, shown
from evaluation.judging.rubric import ANYTHING, NUMBER, TEXT, closed

NAME = "factual_accuracy"
STEP, ASK = "step", "assess"
CONFIDENCE = "confidence"
WEIGHTS: Mapping[str, float] = MappingProxyType({"correctness": 0.5, "completeness": 0.3, "consistency": 0.2})
GRADES = ((80.0, "A"), (60.0, "B"), (40.0, "C"), (20.0, "D"))
_DIGITS = 9  # 79.9999999999 from adding up is an 80

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
    source="001",
    inputs=("reference",),
    rubric_family=NAME,
)


def judge(case: Case) -> Judging:
    """Ask for the three steps at once; any step missing or off its scale fails the figure."""
    asked, loose = (
        closed({**dict.fromkeys(WEIGHTS, closed({"reason": TEXT, "score": number})), CONFIDENCE: number})
        for number in (NUMBER, ANYTHING)
    )
    blocks = data_blocks(case.question, case.answer, shown(case))
    heard = yield Ask(blocks, asked, (*WEIGHTS, CONFIDENCE), ASK, shape=loose, whole=True)
    return failed(case, heard) if heard.failure else {NAME: figure(heard.parts)}


def figure(parts: Mapping[str, Any]) -> Result:
    """The weighted figure of the three steps, which stand beside it with their reasons."""
    scores = {name: parts[name]["score"] for name in WEIGHTS}
    off = {name: str(score)[:80] for name, score in scores.items() if not _is_on(score)}
    if off:
        return Result.failed("scale", detail={"got": off})
    value = round(sum(weight * scores[name] for name, weight in WEIGHTS.items()), _DIGITS)
    detail: dict[str, Any] = {**scores, "grade": grade_of(value)}
    if _is_on(parts[CONFIDENCE]):
        detail[CONFIDENCE] = parts[CONFIDENCE]
    findings = tuple(Finding(STEP, name, f"{scores[name]:g}", reason=parts[name]["reason"]) for name in WEIGHTS)
    return Result.scored(value, reason=parts["correctness"]["reason"], detail=detail, findings=findings)


def grade_of(value: float) -> str:
    """The letter of a figure: each starts at its lower end."""
    return next((letter for lower, letter in GRADES if round(value, _DIGITS) >= lower), "E")


def _is_on(score: Any) -> bool:
    return isinstance(score, int | float) and not isinstance(score, bool) and PERCENT.holds(score)


FAMILY = Family(NAME, (SPEC,), judge, floor=bottom)
