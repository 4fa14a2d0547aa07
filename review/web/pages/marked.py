"""A text cut into plain pieces and marked ones, for findings that know their place in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the text; ``note`` is empty for plain pieces, else says what was found there."""

    text: str
    note: str


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text: character offsets, end exclusive."""

    start: int
    end: int
    note: str


def pieces(text: str, spans: Iterable[Span]) -> tuple[Piece, ...]:
    """The text in pieces, in order and without loss. Where spans overlap the one that starts first (of these the
    longer) is marked; spans outside the text are passed over."""
    found: list[Piece] = []
    at = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if not at <= span.start < span.end <= len(text):
            continue
        if span.start > at:
            found.append(Piece(text[at : span.start], ""))
        found.append(Piece(text[span.start : span.end], span.note))
        at = span.end
    if at < len(text):
        found.append(Piece(text[at:], ""))
    return tuple(found)
