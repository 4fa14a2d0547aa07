"""Required information (source 003): the share of the question's required points that occur in the answer."""

from __future__ import annotations

from evaluation.metrics.keyword_findings import keyword_detail, keyword_finding, keyword_hits, occurs
from evaluation.metrics.normalise import folded
from evaluation.registry import Bilingual, Kind, MetricSpec, RuleSettings, rule_metric
from evaluation.samples import AnswerSpec, QuestionSpec, Result
from evaluation.scales import Scale, ScaleKind


@rule_metric(
    MetricSpec(
        name="required_info_coverage",
        version=1,
        kind=Kind.RULE,
        scale=Scale(ScaleKind.REAL, 0, 1),
        title=Bilingual("Required information", "필수 정보 포함률"),
        formula=Bilingual(
            "required points that occur in the answer / required points",
            "답변에 나온 필수 항목 수 / 필수 항목 수",
        ),
        source="003",
        inputs=("required_info",),
    )
)
def required_info_coverage(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1, points matched as keywords are; not applicable (``no_required_info``) without points."""
    points = tuple((point,) for point in dict.fromkeys(question.required_info) if folded(point))
    if not points:
        return Result.not_applicable("no_required_info")
    hits = keyword_hits(points, answer, settings)
    return Result.scored(
        sum(map(occurs, hits)) / len(hits),
        detail=keyword_detail(hits, settings),
        findings=tuple(map(keyword_finding, points, hits)),
    )
