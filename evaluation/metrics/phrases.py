"""Phrases of a check in an answer: predicates that start a token and may go on with any ending.

"찾을 수 없" is found in "찾을수 없습니다"; "없습니다" neither in "문제없습니다" nor behind 문제가, 틀림 and others.
A phrase may hold gaps written "…": its parts then occur in this order within one clause.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from evaluation.metrics.korean import CLOSED_LIST, analysis
from evaluation.metrics.negation import clause_span, holds_negation, is_negated, is_spared
from evaluation.metrics.normalise import folded, is_boundary, is_hangul
from evaluation.metrics.prepared import prepare

_GAP = "…"


@dataclass(frozen=True, slots=True)
class PhraseHit:
    """Where a phrase occurs in the original text. ``counts`` is false for a hit in a negated clause that a
    morphological analyser confirmed, unless the phrase holds a negation itself."""

    phrase: str
    start: int
    end: int
    negated: bool
    counts: bool


@lru_cache(maxsize=2048)
def _patterns(phrase: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(_spaced(part)) for part in map(folded, phrase.split(_GAP)) if part)


def _spaced(part: str) -> str:
    """The part as a pattern in which a space beside Hangul may be missing."""
    pieces = []
    for place, character in enumerate(part):
        if character == " ":
            pieces.append(r"\s?" if is_hangul(part[place - 1]) or is_hangul(part[place + 1]) else r"\s")
        else:
            pieces.append(re.escape(character))
    return "".join(pieces)


def find_phrase(phrase: str, original: str) -> PhraseHit | None:
    """The first occurrence that counts, else the first negated one, else ``None``."""
    patterns = _patterns(phrase)
    if not patterns:
        return None
    prepared = prepare(original)
    text = prepared.lined
    negated: PhraseHit | None = None
    for match in patterns[0].finditer(text):
        end = _end_of_all(text, match, patterns[1:])
        if end is None:
            continue
        start, stop = prepared.folded.span(match.start(), end)
        if holds_negation(match[0]) or len(patterns) > 1 or not is_negated(text, match.start(), end):
            return PhraseHit(phrase, start, stop, negated=False, counts=True)
        negated = negated or PhraseHit(phrase, start, stop, negated=True, counts=analysis() == CLOSED_LIST)
    return negated


def _end_of_all(text: str, first: re.Match[str], others: tuple[re.Pattern[str], ...]) -> int | None:
    """Where the phrase ends whose first part was matched; ``None`` where a part is missing or stands in a word."""
    if not _stands(text, first):
        return None
    end, limit = first.end(), clause_span(text, first.end() - 1)[1]
    for pattern in others:
        following = next((m for m in pattern.finditer(text, end, limit) if _stands(text, m)), None)
        if following is None:
            return None
        end = following.end()
    return end


def _stands(text: str, match: re.Match[str]) -> bool:
    """Starts a token, is no part of a pattern such as 문제없습니다, and ends a token unless it ends in Hangul."""
    ends = is_hangul(text[match.end() - 1]) or is_boundary(text, match.end())
    return ends and is_boundary(text, match.start()) and not is_spared(text, match.start())
