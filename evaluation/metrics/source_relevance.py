"""Source relevance (source 003): the retriever's own scores, early passages weighing more."""

from __future__ import annotations

from evaluation.core.registry import Bilingual, Kind, MetricSpec, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.core.scales import Scale, ScaleKind

_UNIT = Scale(ScaleKind.REAL, 0, 1)
_DECAY = 0.1


@rule_metric(
    MetricSpec(
        name="source_relevance",
        version=1,
        kind=Kind.RULE,
        scale=_UNIT,
        title=Bilingual("Source relevance", "출처 관련도"),
        formula=Bilingual(
            "sum of score x weight / sum of weights, weight = 1 / (1 + 0.1 x position from 0)",
            "점수 x 가중치의 합 / 가중치의 합, 가중치 = 1 / (1 + 0.1 x 0부터 센 위치)",
        ),
        source="003",
        inputs=("contexts",),
        review_form=ReviewForm.NONE,
    )
)
def source_relevance(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """A share between 0 and 1, 0 where nothing was retrieved; not applicable where the system does not retrieve, a
    passage has no score, or a score is not between 0 and 1 (BM25, distances)."""
    if answer.contexts is None:
        return Result.not_applicable("does_not_retrieve")
    if not answer.contexts:
        return Result.scored(0.0)
    scores = [context.score for context in answer.contexts]
    known = [score for score in scores if score is not None]
    if len(known) < len(scores):
        return Result.not_applicable("no_retrieval_scores")
    if not all(map(_UNIT.holds, known)):
        return Result.not_applicable("scores_off_unit")
    weights = [1 / (1 + _DECAY * position) for position in range(len(known))]
    return Result.scored(sum(s * w for s, w in zip(known, weights, strict=True)) / sum(weights))
