"""Response latency (source 000, 2.1 D): seconds from the request to the complete answer."""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Direction, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind

_SECONDS = Scale(ScaleKind.SECONDS, 0, 86_400)


@rule_metric(
    name="latency",
    scale=_SECONDS,
    title=Bilingual("Latency", "응답 지연시간"),
    formula=Bilingual(
        "seconds from the request to the complete answer; mean, median and 95th percentile",
        "요청부터 전체 답변까지의 시간(초); 평균, 중앙값, 95번째 백분위수",
    ),
    source="000",
    direction=Direction.LOWER,
    inputs=("latency",),
    aggregation="latency",
    review_form=ReviewForm.NONE,
)
def latency(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """Seconds; not applicable (``no_latency``) where none was measured, failed (``scale``) where it is no time of a
    day at most."""
    seconds = answer.latency_seconds
    if seconds is None:
        return Result.not_applicable("no_latency")
    return Result.scored(seconds) if _SECONDS.holds(seconds) else Result.failed(f"scale: {seconds}")
