"""Where a text is split into chunks: behind the ends of sentences, Korean and English, and rather between paragraphs.

A chunk is a span of the text, so that it can be found again whatever a text was split with before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import Field

from evaluation.core.samples import FrozenModel


class Splitting(FrozenModel):
    """How long chunks are, in characters, and how many sentences at their end are repeated in the next."""

    characters: int = Field(default=800, ge=100, le=8_000, description="Most characters of a chunk.")
    overlap: int = Field(default=0, ge=0, le=5, description="Sentences of a chunk that the next one begins with.")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence's span without the white space around it; ``opens`` says that a paragraph begins with it."""

    start: int
    end: int
    opens: bool


# A mark with the quotes and brackets behind it. A full stop ends a sentence before white space, behind Hangul also
# before the next word ("했다.그러나"), never inside a number; blank lines and lines of lists and headings always do.
_CLOSING = "[\"'”’」』)\\]]*"
_END = re.compile(
    rf"[!?。！？…]+{_CLOSING}|(?<=[가-힣])\.{_CLOSING}(?!\d)|\.{_CLOSING}(?=\s|$)|\n(?=\s*\n)|\n(?=\s*(?:[-*•#|]|\d+[.)]\s))"
    r"|(?<=\n)#{1,6} [^\n]*\n|^#{1,6} [^\n]*\n"
)
_ABBREVIATED = re.compile(
    r"(?:^|[\s(\"'])(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|No|Nos|vs|cf|etc|e\.g|i\.e|Fig|Eq|Sec|Art|pp?|al|approx|[A-Z]|\d{1,3})\.$"
)
_LOOKED_AT = 12  # characters before a full stop, more than any abbreviation has


def sentences_of(text: str) -> Iterator[Sentence]:
    """The sentences in order."""
    start = 0
    opens = True
    for match in _END.finditer(text):
        end = match.end()
        before = text[max(start, match.start() - _LOOKED_AT) : match.start() + 1]
        if match[0].startswith(".") and _ABBREVIATED.search(before):
            continue
        if found := _trimmed(text, start, end, opens):
            yield found
            opens = False
        opens = opens or match[0].startswith("\n") or match[0].endswith("\n")
        start = end
    if found := _trimmed(text, start, len(text), opens):
        yield found


def _trimmed(text: str, start: int, end: int, opens: bool) -> Sentence | None:
    inside = text[start:end]
    kept = inside.strip()
    if not kept:
        return None
    first = start + len(inside) - len(inside.lstrip())
    return Sentence(first, first + len(kept), opens)


def split(text: str, splitting: Splitting) -> tuple[tuple[int, int], ...]:
    """The spans of the chunks, in order: each as many sentences as fit, at least one. Past half its length a chunk ends
    before a new paragraph. A sentence that is longer than a chunk is cut at white space, or where there is none."""
    pieces = [piece for sentence in sentences_of(text) for piece in _cut(text, sentence, splitting.characters)]
    chunks: list[tuple[int, int]] = []
    first = 0
    while first < len(pieces):
        start, behind = pieces[first].start, first + 1
        while behind < len(pieces) and pieces[behind].end - start <= splitting.characters:
            if pieces[behind].opens and 2 * (pieces[behind - 1].end - start) >= splitting.characters:
                break
            behind += 1
        chunks.append((start, pieces[behind - 1].end))
        if behind == len(pieces):
            break
        first = max(first + 1, behind - splitting.overlap)
    return tuple(chunks)


def _cut(text: str, sentence: Sentence, longest: int) -> Iterator[Sentence]:
    start, opens = sentence.start, sentence.opens
    while sentence.end - start > longest:
        place = text.rfind(" ", start + longest // 2, start + longest)
        end = place if place > 0 else start + longest
        if found := _trimmed(text, start, end, opens):
            yield found
        start, opens = end, False
    if found := _trimmed(text, start, sentence.end, opens):
        yield found
