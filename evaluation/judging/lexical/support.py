"""How well passages support a text, by its words: the offline baseline's view of claims, statements and passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.registry import Bilingual
from evaluation.judging.formulas import PARTIAL, SUPPORTED, UNSUPPORTED
from evaluation.judging.lexical.grades import claimed_words
from evaluation.judging.lexical.words import Word, content_words, coverage, numbers, sentences

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
    en, ko = (
        f"{round(100 * share)}% of its words are in the passages.",
        f"낱말의 {round(100 * share)}%가 문단에 있습니다.",
    )
    if foreign:
        verdict, listed = UNSUPPORTED, ", ".join(sorted(foreign))
        en, ko = f"{en} Numbers that are in none: {listed}.", f"{ko} 어디에도 없는 숫자: {listed}."
    place = best_of(words, contexts) if verdict != UNSUPPORTED else None
    quote = _best_sentence(words, contexts[place]) if place is not None else ""
    return Support(verdict, place, quote, Bilingual(en, ko))


def best_of(words: Sequence[Word], texts: Sequence[str]) -> int | None:
    """The place of the text that holds most of the words; ``None`` where none holds any."""
    shares = [coverage(words, content_words(text)) for text in texts]
    best = max(shares, default=0.0)
    return shares.index(best) if best > 0 else None


def _best_sentence(words: Sequence[Word], text: str) -> str:
    parts = sentences(text)
    place = best_of(words, parts)
    return parts[place] if place is not None else ""
