"""Rule metric: the share of sentences that are short enough to be read easily."""

from __future__ import annotations

import re

from evaluation.core.metric_specs import Bilingual, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, Finding, QuestionSpec, Result

MAX_WORDS = 25
_SENTENCE = re.compile(r"[^.!?。\n]*\w[^.!?。\n]*[.!?。]?")


@rule_metric(
    name="short_sentences",
    title=Bilingual("Short sentences", "짧은 문장"),
    formula=Bilingual(
        "sentences of at most 25 words / sentences of the answer", "25단어 이하인 문장 수 / 답변의 문장 수"
    ),
    source="",
)
def short_sentences(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """Sentences of at most 25 words / sentences, with the long ones as findings."""
    sentences = list(_SENTENCE.finditer(answer.text))
    if not sentences:
        return Result.not_applicable("The answer has no sentences.")
    long_ones = [sentence for sentence in sentences if len(sentence[0].split()) > MAX_WORDS]
    findings = tuple(
        Finding("sentence", sentence[0].strip(), "long", start=sentence.start(), end=sentence.end())
        for sentence in long_ones
    )
    share = 1 - len(long_ones) / len(sentences)
    return Result.scored(share, detail={"sentences": len(sentences), "long": len(long_ones)}, findings=findings)
