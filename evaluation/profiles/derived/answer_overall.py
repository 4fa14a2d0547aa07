"""The overall score of one answer under a per-answer profile, kept with the weights it was made with."""

from __future__ import annotations

from collections.abc import Mapping

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm
from evaluation.core.samples import Result, Status
from evaluation.core.scales import UNIT, Scale
from evaluation.profiles.per_answer import BY_ANSWER, AnswerOverall, PartValue, overall_of_answer
from evaluation.profiles.spec import ProfileSpec, Unit

NEGATIVE = "negative"  # questions whose right answer is to abstain or correct

SPEC = MetricSpec(
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
