"""A text made ready for matching once, whatever number of keywords will look at it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache

from evaluation.metrics.boundaries import is_hangul
from evaluation.metrics.normalise import Mapped, fold, fold_with_lines, replaced
from evaluation.metrics.numbers import Quantity, quantities

_OPEN, _CLOSE = "\ue000", "\ue001"  # private use characters around a canonical number


class PreparedText:
    """The views of one text that the tiers of keyword matching search; each is made when first needed.

    ``text`` is the folded text, and all offsets of the other views lead back to it.
    """

    def __init__(self, original: str) -> None:
        self.original = original
        self.folded = fold(original)
        self.text = self.folded.text

    @cached_property
    def lined(self) -> str:
        """The folded text with its line breaks, place by place the same."""
        return fold_with_lines(self.original)

    @cached_property
    def squeezed(self) -> Mapped:
        """Without the spaces that stand beside Hangul, where writers disagree about them."""
        return replaced(self.text, ((i, i + 1, "") for i in _spaces(self.text) if _is_free(self.text, i)))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The numbers and articles of the folded text."""
        return quantities(self.text)

    @cached_property
    def canonical(self) -> Mapped:
        """With every number and article in its one spelling, and without the spaces beside Hangul and numbers."""
        spans = {q.start: q for q in self.quantities if not q.is_code}
        return replaced(self.text, sorted([*_canonical_numbers(self.text, spans), *_spaces_between(self.text, spans)]))

    def is_cut(self, start: int, end: int) -> bool:
        """Whether one of the edges lies inside a number or article, so that a part of a value would be taken for it."""
        return any(q.start < start < q.end or q.start < end < q.end for q in self.quantities)


@lru_cache(maxsize=64)
def prepare(original: str) -> PreparedText:
    """The prepared text, shared by the metrics that look at the same answer one after another."""
    return PreparedText(original)


def marked(canonical: str) -> str:
    """A canonical number as it stands in :attr:`PreparedText.canonical`."""
    return f"{_OPEN}{canonical}{_CLOSE}"


def _is_free(text: str, place: int) -> bool:
    """Whether a space stands beside Hangul, and so may be left out."""
    return 0 < place < len(text) - 1 and (is_hangul(text[place - 1]) or is_hangul(text[place + 1]))


def _spaces(text: str) -> Iterator[int]:
    return (place for place, character in enumerate(text) if character == " ")


def _canonical_numbers(text: str, spans: dict[int, Quantity]) -> Iterator[tuple[int, int, str]]:
    for quantity in spans.values():
        yield quantity.start, quantity.end, marked(quantity.canonical)
        if quantity.unit:
            yield quantity.end, quantity.unit_end, quantity.unit


def _spaces_between(text: str, spans: dict[int, Quantity]) -> Iterator[tuple[int, int, str]]:
    """Free spaces outside numbers and units, and those between one article and the next (제3조 제2항)."""
    taken = [(q.start, q.unit_end) for q in spans.values()]
    ends = {q.end for q in spans.values() if q.canonical.startswith("제")}
    for place in _spaces(text):
        between_articles = place in ends and place + 1 in spans
        if (_is_free(text, place) or between_articles) and not any(s <= place < e for s, e in taken):
            yield place, place + 1, ""
