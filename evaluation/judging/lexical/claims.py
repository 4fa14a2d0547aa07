"""The offline baseline as a finder and checker of claims, statements, nuggets and passages, by sentences and words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.core.registry import Bilingual
from evaluation.core.samples import QuestionSpec
from evaluation.judging.calls import JudgeCall
from evaluation.judging.formulas import IRRELEVANT, PARTIAL, RELEVANT, SUPPORTED, UNSUPPORTED
from evaluation.judging.lexical.words import (
    Word,
    claimed_words,
    content_words,
    coverage,
    named,
    numbers,
    sentences,
    states_ignorance,
    told,
    wanted_words,
)
from evaluation.judging.prompt import source_of

FULLY, PARTLY = 0.7, 0.45  # share of a text's words in the passages


@dataclass(frozen=True, slots=True)
class Support:
    """A verdict with the passage that holds most of the words (its place from 0), the sentence there, and why."""

    verdict: str
    context: int | None
    quote: str
    reason: Bilingual


def support(text: str, contexts: Sequence[str], question: str) -> Support:
    """Supported where at least 70% of the words that the question does not hold occur in the passages together, partly
    from 45%; never where a number is in no passage and not in the question."""
    asked = content_words(question)
    words = claimed_words(text, asked) or content_words(text)
    evidence = [word for context in contexts for word in content_words(context)]
    share = coverage(words, evidence)
    foreign = numbers(words) - numbers(evidence) - numbers(asked)
    verdict = SUPPORTED if share >= FULLY else PARTIAL if share >= PARTLY else UNSUPPORTED
    percent = round(100 * share)
    en, ko = f"{percent}% of its words are in the passages.", f"낱말의 {percent}%가 문단에 있습니다."
    if foreign:
        verdict, listed = UNSUPPORTED, ", ".join(sorted(foreign))
        en, ko = f"{en} Numbers that are in none: {listed}.", f"{ko} 어디에도 없는 숫자: {listed}."
    place = best_of(words, contexts) if verdict != UNSUPPORTED else None
    parts = sentences(contexts[place]) if place is not None else ()
    best = best_of(words, parts)
    return Support(verdict, place, parts[best] if best is not None else "", Bilingual(en, ko))


def best_of(words: Sequence[Word], texts: Sequence[str]) -> int | None:
    """The place of the text that holds most of the words; ``None`` where none holds any."""
    shares = [coverage(words, content_words(text)) for text in texts]
    best = max(shares, default=0.0)
    return shares.index(best) if best > 0 else None


_NAMED, _HINTED = 0.8, 0.5  # share of a nugget's words in the answer


def claims_of(call: JudgeCall) -> dict[str, Any]:
    """Every sentence of the answer that says something beyond the question and does not admit ignorance."""
    asked = content_words(call.question.text)
    kept = [s for s in sentences(call.answer.text) if not states_ignorance(s) and _says(claimed_words(s, asked))]
    return {"claims": [{"claim": sentence, "quote": sentence} for sentence in kept]}


def _says(words: Sequence[Word]) -> bool:
    """Whether there is more than numbers: "3." before an item of a list says nothing."""
    return len(words) > len(numbers(words))


def statements_of(call: JudgeCall) -> dict[str, Any]:
    """The sentences of each reference."""
    return {
        "statements": [
            {"reference": number, "statement": sentence}
            for number, reference in enumerate(call.question.references, start=1)
            for sentence in sentences(reference)
        ]
    }


def verified_claims(call: JudgeCall) -> dict[str, Any]:
    """A verdict on each claim."""
    return _checked(call, call.ask.blocks["claims"], partial=True)


def attributed_statements(call: JudgeCall) -> dict[str, Any]:
    """A verdict on each statement, of the wordings of one the best; part of a statement does not count."""
    return _checked(call, call.ask.blocks["statements"], partial=False)


def assigned_nuggets(call: JudgeCall) -> dict[str, Any]:
    """A verdict on each nugget: from 80% of the words of any wording supported, from half of them partly."""
    given = content_words(call.answer.text)
    found = {}
    for key, wordings in call.ask.blocks["nuggets"].items():
        share = max((coverage(w, given) for text in wordings if (w := content_words(text))), default=0.0)
        verdict = SUPPORTED if share >= _NAMED else PARTIAL if share >= _HINTED else UNSUPPORTED
        percent = round(100 * share)
        reason = told(call, Bilingual(f"{percent}% of its words occur.", f"낱말의 {percent}%가 있습니다."))
        quote = _holding(call, wordings) if verdict != UNSUPPORTED else ""
        found[key] = {"reason": reason, "verdict": verdict, "quote": quote}
    return found


def _holding(call: JudgeCall, wordings: list[str]) -> str:
    """The sentence of the answer that holds most of any wording."""
    words = [content_words(text) for text in wordings]
    parts = sentences(call.answer.text)
    return max(parts, key=lambda s: max(coverage(w, content_words(s)) for w in words if w), default="")


def _checked(call: JudgeCall, texts: dict[str, str], *, partial: bool) -> dict[str, Any]:
    contexts = [f"{context.text}\n{source_of(context)}" for context in call.answer.contexts or ()]
    found = {}
    for key, text in texts.items():
        options = [support(wording, contexts, call.question.text) for wording in text.split(" | ")]
        best = min(options, key=lambda one: (SUPPORTED, PARTIAL, UNSUPPORTED).index(one.verdict))
        counts = partial or best.verdict == SUPPORTED
        found[key] = {
            "reason": told(call, best.reason),
            "verdict": best.verdict if counts else UNSUPPORTED,
            "context": best.context + 1 if best.context is not None and counts else 0,
            "quote": best.quote if counts else "",
        }
    return found


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
        verdict = RELEVANT if relevant else IRRELEVANT
        found[f"context_{context['number']}"] = {"reason": told(call, yes if relevant else no), "verdict": verdict}
    return found
