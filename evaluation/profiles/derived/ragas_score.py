"""RAGAS score (source 001): the weighted mean of four figures of one answer. Figures that do not apply are left out and
the other weights renormalised; which were used stands in the result."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm
from evaluation.core.samples import Result, Status
from evaluation.core.scales import PERCENT
from evaluation.profiles.derived.metric import DerivedMetric

WEIGHTS: Mapping[str, float] = MappingProxyType(
    {"claim_support": 0.30, "context_precision": 0.20, "context_recall": 0.20, "answer_relevance": 0.30}
)
_TO_PERCENT: Mapping[str, float] = MappingProxyType({"claim_support": 100.0})

SPEC = MetricSpec(
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


METRIC = DerivedMetric(SPEC, ragas_score)
