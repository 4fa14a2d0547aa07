"""Where a token starts and ends: places between characters, not words of a dictionary."""

from __future__ import annotations

import re

_HANGUL = re.compile(r"[가-힣ㄱ-ㅣ]")
_HANGUL_RUN = re.compile(r"[가-힣]+")
_SENTENCE_END = re.compile(r"[!?。…;\n]+|\.(?=\s|$)|(?<=[가-힣])\.(?!\d)")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")  # kana and Han characters


def is_hangul(character: str) -> bool:
    """Whether it is a Hangul syllable or letter."""
    return _HANGUL.match(character) is not None


def _script(character: str) -> str:
    if _HANGUL.match(character):
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


def sentence_span(text: str, place: int) -> tuple[int, int]:
    """Start and end of the sentence around ``place``; the end is exclusive and behind the closing mark."""
    start = 0
    for match in _SENTENCE_END.finditer(text):
        if match.end() > place:
            return start, match.end()
        start = match.end()
    return start, len(text)


def sentences(text: str) -> tuple[tuple[int, int], ...]:
    """The spans of all sentences that hold more than white space."""
    spans: list[tuple[int, int]] = []
    start = 0
    for end in (*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)):
        if text[start:end].strip():
            spans.append((start, end))
        start = end
    return tuple(spans)
