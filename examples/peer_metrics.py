"""Metrics of Ragas and DeepEval as own metrics: ``CONCORD_METRICS=examples/peer_metrics.py``.

Both libraries are imported when a metric is first computed, so that only the process of own metrics loads them. The two
metrics call no model. Metrics that call one need the library's own key and model: Concord then neither limits nor
records these calls. To have a judge of Concord asked, write a judge family."""

from __future__ import annotations

import asyncio
import os

from evaluation.core.metric_specs import Bilingual, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result
from evaluation.metric_packages.package import MetricPackage

# Without these, both libraries report their use to their makers.
os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
os.environ.setdefault("DEEPEVAL_TELEMETRY_OPT_OUT", "YES")


@rule_metric(
    name="ragas_string_similarity",
    title=Bilingual("String similarity (Ragas)", "문자열 유사도(Ragas)"),
    formula=Bilingual(
        "1 - normalised Levenshtein distance between answer and expected answer, the best of several",
        "1 - 답변과 기대 답변의 정규화된 레벤슈타인 거리. 기대 답변이 여럿이면 가장 높은 값",
    ),
    source="Ragas, NonLLMStringSimilarity",
    inputs=("reference",),
)
def ragas_string_similarity(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    from ragas.metrics.collections import NonLLMStringSimilarity

    if not question.references:
        return Result.not_applicable("no_reference")
    metric = NonLLMStringSimilarity()
    scores = [
        asyncio.run(metric.ascore(reference=reference, response=answer.text)) for reference in question.references
    ]
    return Result.scored(max(float(score.value) for score in scores))


@rule_metric(
    name="deepeval_token_f1",
    title=Bilingual("Token F1 (DeepEval)", "토큰 F1(DeepEval)"),
    formula=Bilingual(
        "F1 of the words of answer and expected answer, 1 for an exact match; the best of several",
        "답변과 기대 답변의 단어 F1. 완전히 같으면 1, 기대 답변이 여럿이면 가장 높은 값",
    ),
    source="DeepEval, ExactMatchMetric",
    inputs=("reference",),
)
def deepeval_token_f1(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    from deepeval.metrics import ExactMatchMetric
    from deepeval.test_case import LLMTestCase

    if not question.references:
        return Result.not_applicable("no_reference")
    scores, reasons = [], []
    for reference in question.references:
        metric = ExactMatchMetric()
        case = LLMTestCase(input=question.text, actual_output=answer.text, expected_output=reference)
        scores.append(float(metric.measure(case, _show_indicator=False)))
        reasons.append(str(metric.reason))
    best = max(range(len(scores)), key=scores.__getitem__)
    return Result.scored(scores[best], reason=reasons[best])


PACKAGE = MetricPackage(rule_metrics=(ragas_string_similarity, deepeval_token_f1))
