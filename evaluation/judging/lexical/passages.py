"""The offline baseline's view of whether a passage helps to answer a question."""

from __future__ import annotations

from typing import Any

from evaluation.core.registry import Bilingual
from evaluation.core.samples import QuestionSpec
from evaluation.judging.calls import JudgeCall
from evaluation.judging.formulas import IRRELEVANT, RELEVANT
from evaluation.judging.lexical.grades import named, wanted_words
from evaluation.judging.lexical.words import content_words, coverage, reasons_in, sentences

_HELPS, _ON_TOPIC = 0.5, 0.6  # share of a reference sentence's words; of the question's, where there is no reference


def helps(passage: str, question: QuestionSpec) -> bool:
    """Whether the passage holds half of the words of a sentence of a reference, else names a required point, else
    holds most of the question's words."""
    given = content_words(passage)
    if question.references:
        wanted = (wanted_words(s, question) for reference in question.references for s in sentences(reference))
        return any(words and coverage(words, given) >= _HELPS for words in wanted)
    if question.keywords:
        return any(named(point, given) for point in question.keywords)
    return coverage(content_words(question.text), given) >= _ON_TOPIC


def rated_passages(call: JudgeCall) -> dict[str, Any]:
    """A verdict on each passage of the request."""
    yes = Bilingual("Holds words of the expected answer.", "기대 답변의 낱말이 있습니다.")
    no = Bilingual("Holds hardly any words of the expected answer.", "기대 답변의 낱말이 거의 없습니다.")
    found = {}
    for context in call.ask.blocks["contexts"]:
        relevant = helps(context["text"], call.question)
        said = (yes if relevant else no).in_language(reasons_in(call))
        found[f"context_{context['number']}"] = {"reason": said, "verdict": RELEVANT if relevant else IRRELEVANT}
    return found
