"""Metrics made of other results of the same answer: the overall score of an answer under a per-answer profile, and
source 001's RAGAS score. What is not listed in ``DERIVED_METRICS`` does not exist."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm
from evaluation.core.samples import Result, Status
from evaluation.core.scales import PERCENT, UNIT, Scale
from evaluation.profiles.per_answer import BY_ANSWER, AnswerOverall, PartValue, overall_of_answer
from evaluation.profiles.spec import ProfileSpec, Unit

NEGATIVE = "negative"  # questions whose right answer is to abstain or correct

ANSWER_OVERALL = MetricSpec(
    name="answer_overall",
    kind=Kind.DERIVED,
    scale=UNIT,
    title=Bilingual("Overall score of the answer", "답변 종합 점수"),
    formula=Bilingual(
        "the profile's weights x the parts on a scale from 0 to 1, plus its constant; parts that do not apply to the "
        "question or the system are left out and the others renormalised",
        "프로필의 가중치 x 0~1로 바꾼 항목 값의 합 + 상수. 질문이나 시스템에 해당하지 않는 항목은 빼고 나머지를 다시 "
        "정규화함",
    ),
    source="",
    review_form=ReviewForm.NONE,
)


def has_answer_overall(profile: ProfileSpec) -> bool:
    """Whether the profile scores single answers."""
    return profile.unit is Unit.PER_ANSWER and bool(profile.parts)


def answer_overall(
    profile: ProfileSpec, results: Mapping[str, Result], scales: Mapping[str, Scale], category: str
) -> Result:
    """The score of an answer to a question of ``category``; the weights used stand in the detail."""
    values = [
        PartValue(
            name,
            result.status,
            scales[name].low,
            scales[name].high,
            result.value,
            by_answer=result.reason.partition(":")[0] in BY_ANSWER,
        )
        for name, result in results.items()
        if name in profile.metrics and not scales[name].labels
    ]
    return _as_result(overall_of_answer(profile, values, category=category, answerable=category != NEGATIVE))


def _as_result(overall: AnswerOverall) -> Result:
    detail = {"weights": dict(overall.weights_used), "contributions": dict(overall.contributions)}
    if overall.zeroed:
        detail["zeroed"] = dict.fromkeys(overall.zeroed, 0.0)
    if overall.low is not None and overall.high is not None:
        detail["bounds"] = {"low": overall.low, "high": overall.high}
    if overall.status is Status.SCORED and overall.value is not None:
        return Result.scored(overall.value, detail=detail)
    if overall.status is Status.FAILED:
        return Result.failed(overall.reason, detail=detail)
    return Result.not_applicable(overall.reason)


@dataclass(frozen=True, slots=True)
class DerivedMetric:
    """A description whose ``inputs`` are names of metrics, and the function that computes it from their results."""

    spec: MetricSpec
    compute: Callable[[Mapping[str, Result]], Result]


WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"claim_support": 0.30, "context_precision": 0.20, "context_recall": 0.20, "answer_relevance": 0.30}
)
_TO_PERCENT: Mapping[str, float] = MappingProxyType({"claim_support": 100.0})


def ragas_score(results: Mapping[str, Result]) -> Result:
    """The score of an answer from the results of its parts; what was not computed is missing. A failed part makes it
    failed (``failed_part: NAME, ...``); without any part it is not applicable (``no_parts``)."""
    there = {name: results[name] for name in WEIGHTS if name in results}
    if lost := [name for name, result in there.items() if result.status is Status.FAILED]:
        return Result.failed(f"failed_part: {', '.join(lost)}")
    values = {
        name: result.value * _TO_PERCENT.get(name, 1.0)
        for name, result in there.items()
        if result.status is Status.SCORED and result.value is not None
    }
    if not values:
        return Result.not_applicable("no_parts")
    total = sum(WEIGHTS[name] for name in values)
    used = {name: WEIGHTS[name] / total for name in values}
    detail = {"weights": used, "missing": [name for name in WEIGHTS if name not in values]}
    return Result.scored(sum(used[name] * value for name, value in values.items()), detail=detail)


_RAGAS_SCORE = MetricSpec(
    name="ragas_score",
    kind=Kind.DERIVED,
    scale=PERCENT,
    title=Bilingual("RAGAS score", "RAGAS 종합 점수"),
    formula=Bilingual(
        "0.3 x faithfulness (claim_support x 100) + 0.2 x context_precision + 0.2 x context_recall + 0.3 x "
        "answer_relevance; what does not apply is left out and the rest divided by its weights",
        "0.3 x 충실도(claim_support x 100) + 0.2 x context_precision + 0.2 x context_recall + 0.3 x answer_relevance. "
        "해당하지 않는 것은 빼고 나머지 가중치의 합으로 나눔",
    ),
    source="001",
    inputs=tuple(WEIGHTS),
    review_form=ReviewForm.NONE,
)
DERIVED_METRICS = (DerivedMetric(_RAGAS_SCORE, ragas_score),)
