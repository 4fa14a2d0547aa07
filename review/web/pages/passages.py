"""Retrieved passages as pages show them."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.wording.markdown import language_of
from review.ratings.card import Card
from review.web.pages.claims import quoted_pieces
from review.web.pages.marked import Piece


@dataclass(frozen=True, slots=True)
class PassageView:
    """A retrieved passage by its number. ``pieces`` are its text with the words that decide claims marked, where the
    judge may be seen; ``link`` leads to its document."""

    number: int
    source: str
    text: str
    language: str
    link: str
    pieces: tuple[Piece, ...]


def passages(card: Card) -> tuple[PassageView, ...] | None:
    """The passages, with the judge's deciding words where the card holds them; ``None`` without retrieval."""
    if card.contexts is None:
        return None
    return tuple(
        PassageView(
            one.number,
            one.source,
            one.text,
            language_of(one.text),
            one.link,
            quoted_pieces(one.text, one.number, card.claims),
        )
        for one in card.contexts
    )
