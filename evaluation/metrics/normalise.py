"""One normalisation of every compared text, with a map back to the original.

NFC, a selective compatibility fold (full-width forms, spaces and unit signs; never blanket NFKC, which turns 10² into
102), zero-width characters dropped, dashes, quotes and middle dots unified, case folded, white space collapsed. The
original stays what people see: every offset found in the folded text leads back to it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

_ZERO_WIDTH = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_SPACES = re.compile(r"\s+")
_METRE_EXPONENT = re.compile(r"(?<=m)[²³]")
_EXPONENT_DIGITS = {"²": "2", "³": "3"}


def _fold_table() -> dict[int, str]:
    """One-character replacements; some replace one character by several."""
    table = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}  # full-width ASCII
    table |= {0xFFE0: "¢", 0xFFE1: "£", 0xFFE5: "¥", 0xFFE6: "₩"}
    squared = (*range(0x3371, 0x33E0), *range(0x3200, 0x321F), 0x2103, 0x2109)  # ㎏ ㎡ and the like, ㈜, ℃ ℉
    table |= {code: unicodedata.normalize("NFKC", chr(code)) for code in squared}
    table |= dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣"), "-")
    table |= dict.fromkeys(map(ord, "‘’‚‛′＇`´"), "'")
    table |= dict.fromkeys(map(ord, "“”„‟″«»「」『』＂"), '"')
    table |= dict.fromkeys(map(ord, "ㆍ・‧∙⋅･•"), "·")
    table[ord("〜")] = "~"
    return table


_FOLDS = _fold_table()


@dataclass(frozen=True, slots=True)
class Mapped:
    """A text made from another one, with the span each of its characters came from.

    ``starts`` and ``ends`` are ``None`` where every character stands at its old place.
    """

    text: str
    starts: tuple[int, ...] | None = None
    ends: tuple[int, ...] | None = None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where ``text[start:end]`` (not empty) lies in the text this one was made from, end exclusive."""
        if self.starts is None or self.ends is None:
            return start, end
        return self.starts[start], self.ends[end - 1]


def mapped(pieces: Iterable[tuple[str, int, int]]) -> Mapped:
    """A mapped text from pieces of (new text, start, end in the old text); a piece may be empty or longer."""
    text: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for piece, start, end in pieces:
        text.append(piece)
        starts.extend([start] * len(piece))
        ends.extend([end] * len(piece))
    return Mapped("".join(text), tuple(starts), tuple(ends))


def replaced(text: str, changes: Iterable[tuple[int, int, str]]) -> Mapped:
    """The text with ordered, not overlapping ``(start, end, new)`` spans replaced."""

    def pieces() -> Iterator[tuple[str, int, int]]:
        place = 0
        for start, end, new in changes:
            yield from ((text[i], i, i + 1) for i in range(place, start))
            yield new, start, end
            place = end
        yield from ((text[i], i, i + 1) for i in range(place, len(text)))

    return mapped(pieces())


@lru_cache(maxsize=256)
def fold(original: str) -> Mapped:
    """The text as it is compared, mapped to the original."""
    if unicodedata.is_normalized("NFC", original) and not _ZERO_WIDTH.search(original):
        # None of the three steps can shorten the text, so an unchanged length means unchanged places.
        widened = original.translate(_FOLDS).casefold()
        folded = _SPACES.sub(" ", widened)
        if len(folded) == len(widened) == len(original):
            return Mapped(_fold_exponents(folded))
    composed = mapped(_folded_clusters(original))
    collapsed = replaced(composed.text, ((m.start(), m.end(), " ") for m in _SPACES.finditer(composed.text)))
    spans = [composed.span(*collapsed.span(i, i + 1)) for i in range(len(collapsed.text))]
    return Mapped(_fold_exponents(collapsed.text), tuple(s for s, _ in spans), tuple(e for _, e in spans))


@lru_cache(maxsize=256)
def fold_with_lines(original: str) -> str:
    """The folded text, place by place, with a line feed for each white space that holds one: lists have no full stops
    and yet each line is a statement of its own."""
    whole = fold(original)
    if "\n" not in original:
        return whole.text
    characters = list(whole.text)
    for place, character in enumerate(characters):
        if character == " " and "\n" in original[slice(*whole.span(place, place + 1))]:
            characters[place] = "\n"
    return "".join(characters)


def folded(text: str) -> str:
    """The text as it is compared, without surrounding white space and without the map."""
    return fold(text).text.strip()


def _fold_exponents(text: str) -> str:
    """m² as m2, which is what ㎡ folds to; an exponent of a number stays (10² is not 102)."""
    if "²" not in text and "³" not in text:
        return text
    return _METRE_EXPONENT.sub(lambda match: _EXPONENT_DIGITS[match[0]], text)


def _folded_clusters(original: str) -> Iterator[tuple[str, int, int]]:
    for start, end in _clusters(original):
        cluster = unicodedata.normalize("NFC", _ZERO_WIDTH.sub("", original[start:end]))
        yield cluster.translate(_FOLDS).casefold(), start, end


def _clusters(text: str) -> Iterator[tuple[int, int]]:
    """Spans within which NFC may compose: a character and the marks or Hangul letters that join it."""
    start = 0
    for place in range(1, len(text)):
        if not _joins(text[place]):
            yield start, place
            start = place
    if text:
        yield start, len(text)


def _joins(character: str) -> bool:
    return (
        "\u1160" <= character <= "\u11ff"
        or "\ud7b0" <= character <= "\ud7ff"
        or unicodedata.category(character) in {"Mn", "Mc", "Me"}
        or _ZERO_WIDTH.match(character) is not None
    )
