"""Where a token starts and ends: places between characters, not words of a dictionary."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from itertools import pairwise

_HANGUL_RUN = re.compile(r"[가-힣]+")
_SENTENCE_END = re.compile(r"[!?。…;\n]+|\.(?=\s|$)|(?<=[가-힣])\.(?!\d)")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")  # kana and Han characters


def is_hangul(character: str) -> bool:
    """Whether it is a Hangul syllable or letter."""
    return "가" <= character <= "힣" or "ㄱ" <= character <= "ㅣ"


@lru_cache(maxsize=4096)
def _script(character: str) -> str:
    if is_hangul(character):
        return "hangul"
    if _UNSPACED.match(character) or not character.isalnum():
        return ""  # a boundary on either side: not a word character, or a script written without spaces
    return "other"


def is_boundary(text: str, place: int) -> bool:
    """Whether a token may start or end between ``text[place - 1]`` and ``text[place]``.

    True at both ends of the text, beside anything that is no word character, and where Hangul meets Latin letters or
    digits ("200은"); false inside a run of Hangul and inside a run of letters and digits ("200tr", "2012").
    """
    if place <= 0 or place >= len(text):
        return True
    before, after = _script(text[place - 1]), _script(text[place])
    return not before or before != after


def hangul_run(text: str, place: int) -> str:
    """The Hangul syllables that start at ``place``, empty if none does."""
    match = _HANGUL_RUN.match(text, place)
    return match[0] if match else ""


@lru_cache(maxsize=256)
def _sentence_starts(text: str) -> tuple[int, ...]:
    return (0, *(match.end() for match in _SENTENCE_END.finditer(text)))


def sentence_span(text: str, place: int) -> tuple[int, int]:
    """Start and end of the sentence around ``place``; the end is exclusive and behind the closing mark."""
    starts = _sentence_starts(text)
    index = bisect_right(starts, place)
    return starts[index - 1], starts[index] if index < len(starts) else len(text)


def sentences(text: str) -> tuple[tuple[int, int], ...]:
    """The spans of all sentences that hold more than white space."""
    starts = _sentence_starts(text)
    return tuple((s, e) for s, e in pairwise((*starts, len(text))) if text[s:e].strip())
