"""Required information (source 003): the share of the question's required points that occur in the answer."""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Kind, MetricSpec, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind
from evaluation.metrics.keyword_findings import in_answer, keyword_set


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
    wanted = keyword_set(tuple((point,) for point in dict.fromkeys(question.required_info)), settings.matching)
    if not wanted.keywords:
        return Result.not_applicable("no_required_info")
    found = in_answer(wanted, answer.text)
    return found.scored(found.share)
