"""Admitting not to know (source 001): by phrases, where an answer would stand, not anywhere in a long one."""

from __future__ import annotations

import re

from evaluation.core.registry import Bilingual, Direction, ReviewForm, RuleSettings, rule_metric
from evaluation.core.samples import AnswerSpec, Finding, QuestionSpec, Result
from evaluation.core.scales import YES_NO
from evaluation.metrics.normalise import fold, fold_with_lines, folded, sentences
from evaluation.metrics.phrases import PhraseHit, find_phrase

PURPOSE = "dont_know"  # the profile's list of this name replaces PHRASES
PHRASES = (
    "i don't know", "i do not know", "not sure", "cannot determine", "can't determine", "no information",
    "insufficient data", "insufficient information", "unable to answer", "cannot answer", "can't answer",
    "don't have enough information", "do not have enough information", "not available", "no data", "is unknown",
    "모르겠", "모릅니다", "알 수 없", "알 수가 없", "알지 못", "정보가 없", "정보는 없", "정보를 찾을 수 없",
    "답변할 수 없", "답변드릴 수 없", "답할 수 없", "확인할 수 없",
)  # fmt: skip
_BARE = re.compile(r"(?:n/a|none|null|unknown|없음|모름|알 수 없음)")
_SHORT = 2  # sentences: in longer answers only the first one is looked at


@rule_metric(
    name="dont_know",
    scale=YES_NO,
    title=Bilingual("Admits not knowing", "모름 인정"),
    formula=Bilingual(
        "1 if the answer admits not knowing: a phrase in an answer of at most two sentences or in the first "
        "sentence of a longer one, or a bare n/a, none, null or unknown; else 0",
        "답변이 모른다고 인정하면 1, 아니면 0: 두 문장 이하의 답변 또는 긴 답변의 첫 문장에 표현이 있거나, "
        "답변이 n/a, none, null, unknown뿐인 경우",
    ),
    source="001",
    direction=Direction.NONE,
    review_form=ReviewForm.YES_NO,
)
def dont_know(question: QuestionSpec, answer: AnswerSpec, settings: RuleSettings) -> Result:
    """1 or 0, for every answer."""
    bare = folded(answer.text).strip(" .!\"'()[]")
    if _BARE.fullmatch(bare):
        return Result.scored(1.0, detail={"bare": bare})
    hit = _admission(answer.text, settings.phrases.get(PURPOSE, PHRASES))
    if hit is None:
        return Result.scored(0.0)
    return Result.scored(1.0, findings=(Finding("flag", hit.phrase, "dont_know", start=hit.start, end=hit.end),))


def _admission(text: str, phrases: tuple[str, ...]) -> PhraseHit | None:
    view = fold(text)
    spans = sentences(fold_with_lines(text))
    limit = len(text) if len(spans) <= _SHORT else view.span(*spans[0])[1]
    hits = (find_phrase(phrase, text[:limit]) for phrase in phrases)
    return min((hit for hit in hits if hit is not None and hit.counts), key=lambda hit: hit.start, default=None)
