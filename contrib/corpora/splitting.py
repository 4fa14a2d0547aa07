"""Splits texts into chunks at the ends of Korean and English sentences, preferably between paragraphs.

A chunk is a span of the text, so it can be located in a version with another splitting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import Field

from evaluation.core.samples import FrozenModel


class Splitting(FrozenModel):
    """Maximum length of chunks in characters, and the number of sentences that the next chunk repeats."""

    characters: int = Field(default=800, ge=100, le=8_000, description="Maximum characters of a chunk.")
    overlap: int = Field(default=0, ge=0, le=5, description="Sentences of a chunk that the next chunk repeats.")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence's span without surrounding white space; ``starts_paragraph`` marks the first sentence of a
    paragraph."""

    start: int
    end: int
    starts_paragraph: bool


# An end mark with its closing quotes and brackets. A full stop ends a sentence before white space, and after Hangul
# before the next word too ("했다.그러나"), never inside a number. Blank lines, list items and headings always end one.
_CLOSING = "[\"'”’」』)\\]]*"
_END = re.compile(
    rf"[!?。！？…]+{_CLOSING}|(?<=[가-힣])\.{_CLOSING}(?!\d)|\.{_CLOSING}(?=\s|$)|\n(?=[^\S\n]*\n)|\n(?=[^\S\n]*(?:[-*•#|]|\d+[.)]\s))"
    r"|(?<=\n)#{1,6} [^\n]*\n|^#{1,6} [^\n]*\n"
)
_ABBREVIATED = re.compile(
    r"(?:^|[\s(\"'])(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|No|Nos|vs|cf|etc|e\.g|i\.e|Fig|Eq|Sec|Art|pp?|al|approx|[A-Z]|\d{1,3})\.$"
)
# Characters before a full stop, longer than any abbreviation.
_LOOKBEHIND = 12


def split_sentences(text: str) -> Iterator[Sentence]:
    """Yield the sentences in order."""
    start = 0
    starts_paragraph = True
    for match in _END.finditer(text):
        end = match.end()
        before = text[max(start, match.start() - _LOOKBEHIND) : match.start() + 1]
        if match[0].startswith(".") and _ABBREVIATED.search(before):
            continue
        if sentence := _strip_span(text, start, end, starts_paragraph):
            yield sentence
            starts_paragraph = False
        starts_paragraph = starts_paragraph or match[0].startswith("\n") or match[0].endswith("\n")
        start = end
    if sentence := _strip_span(text, start, len(text), starts_paragraph):
        yield sentence


def _strip_span(text: str, start: int, end: int, starts_paragraph: bool) -> Sentence | None:
    raw = text[start:end]
    stripped = raw.strip()
    if not stripped:
        return None
    first = start + len(raw) - len(raw.lstrip())
    return Sentence(first, first + len(stripped), starts_paragraph)


def split(text: str, splitting: Splitting) -> tuple[tuple[int, int], ...]:
    """Return the spans of the chunks in order, each of as many sentences as fit and at least one.

    Past half its maximum length a chunk ends before a new paragraph. A sentence longer than a chunk is cut at white
    space, or anywhere without it."""
    pieces = [
        piece for sentence in split_sentences(text) for piece in _split_long(text, sentence, splitting.characters)
    ]
    chunks: list[tuple[int, int]] = []
    first = 0
    while first < len(pieces):
        start, stop = pieces[first].start, first + 1
        while stop < len(pieces) and pieces[stop].end - start <= splitting.characters:
            if pieces[stop].starts_paragraph and 2 * (pieces[stop - 1].end - start) >= splitting.characters:
                break
            stop += 1
        chunks.append((start, pieces[stop - 1].end))
        if stop == len(pieces):
            break
        first = max(first + 1, stop - splitting.overlap)
    return tuple(chunks)


def _split_long(text: str, sentence: Sentence, max_length: int) -> Iterator[Sentence]:
    start, starts_paragraph = sentence.start, sentence.starts_paragraph
    while sentence.end - start > max_length:
        space = text.rfind(" ", start + max_length // 2, start + max_length)
        end = space if space > 0 else start + max_length
        if piece := _strip_span(text, start, end, starts_paragraph):
            yield piece
        start, starts_paragraph = end, False
    if piece := _strip_span(text, start, sentence.end, starts_paragraph):
        yield piece
