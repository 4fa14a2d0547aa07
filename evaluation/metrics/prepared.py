"""A text made ready for matching once, whatever number of keywords will look at it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache

from evaluation.metrics.negation import holds_negation, is_negated
from evaluation.metrics.normalise import Mapped, fold, fold_with_lines, replaced
from evaluation.metrics.numbers import Quantity, quantities

_SPACE = re.compile(" ")
_FREE_SPACE = re.compile(r"(?<=[가-힣ㄱ-ㅣ]) (?=.)|(?<=.) (?=[가-힣ㄱ-ㅣ])")
_NUMERIC = re.compile(r"[\d십백천만억조]")
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
    def squeezed_text(self) -> str:
        """Without the spaces that stand beside Hangul, where writers disagree about them."""
        return _FREE_SPACE.sub("", self.text)

    @cached_property
    def squeezed(self) -> Mapped:
        """The squeezed text with its way back to ``text``."""
        return replaced(self.text, ((*match.span(), "") for match in _FREE_SPACE.finditer(self.text)))

    @cached_property
    def quantities(self) -> tuple[Quantity, ...]:
        """The numbers and articles of the folded text."""
        return quantities(self.text)

    @cached_property
    def canonical(self) -> Mapped:
        """With every number and article in its one spelling, and without the spaces beside Hangul and numbers."""
        spans = {q.start: q for q in self.quantities if not q.is_code}
        return replaced(self.text, sorted([*_canonical_numbers(self.text, spans), *_spaces_between(self.text, spans)]))

    @cached_property
    def values(self) -> frozenset[str]:
        """The canonical forms of all numbers and articles."""
        return frozenset(q.canonical for q in self.quantities)

    @cached_property
    def may_negate(self) -> bool:
        """Whether anything in the text could negate."""
        return holds_negation(self.text)

    def is_negated(self, start: int, end: int) -> bool:
        """Whether the place of ``text`` lies in a negated clause."""
        return self.may_negate and is_negated(self.lined, start, end)

    def is_cut(self, start: int, end: int) -> bool:
        """Whether one of the edges lies inside a number or article, so that a part of a value would be taken for it."""
        if not _NUMERIC.search(self.text, max(start - 1, 0), end + 1):
            return False
        return any(q.start < start < q.end or q.start < end < q.end for q in self.quantities)


@lru_cache(maxsize=64)
def prepare(original: str) -> PreparedText:
    """The prepared text, shared by the metrics that look at the same answer one after another."""
    return PreparedText(original)


def marked(canonical: str) -> str:
    """A canonical number as it stands in :attr:`PreparedText.canonical`."""
    return f"{_OPEN}{canonical}{_CLOSE}"


def _canonical_numbers(text: str, spans: dict[int, Quantity]) -> Iterator[tuple[int, int, str]]:
    for quantity in spans.values():
        yield quantity.start, quantity.end, marked(quantity.canonical)
        if quantity.unit:
            yield quantity.end, quantity.unit_end, quantity.unit


def _spaces_between(text: str, spans: dict[int, Quantity]) -> Iterator[tuple[int, int, str]]:
    """Free spaces outside numbers and units, and those between one article and the next (제3조 제2항)."""
    taken = {place for q in spans.values() for place in range(q.start, q.unit_end)}
    ends = {q.end for q in spans.values() if q.canonical.startswith("제")}
    for match in _SPACE.finditer(text):
        place = match.start()
        between_articles = place in ends and place + 1 in spans
        if (between_articles or _FREE_SPACE.match(text, place)) and place not in taken:
            yield place, place + 1, ""
