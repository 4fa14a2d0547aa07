"""Where a quote stands in a text: word for word, else as texts are compared, else the most alike sentence."""

from __future__ import annotations

from dataclasses import dataclass

from evaluation.judging.lexical.words import content_words, coverage
from evaluation.metrics.normalise import fold, fold_with_lines, sentences

LEAST_ALIKE = 0.6  # share of the quote's content words that a sentence must hold to be taken for its place


@dataclass(frozen=True, slots=True)
class Span:
    """A place in a text, the end exclusive. ``approximate``: found by likeness, not word for word."""

    start: int
    end: int
    approximate: bool = False


def locate(quote: str, text: str) -> Span | None:
    """The place of the quote; ``None`` where nothing in the text is like it.

    Case, white space, width and quotation marks do not matter. Where the words differ, the sentence that holds most
    of the quote's content words is taken, from 60% on, and marked approximate.
    """
    quote = quote.strip()
    if not quote:
        return None
    start = text.find(quote)
    if start >= 0:
        return Span(start, start + len(quote))
    view = fold(text)
    wanted = fold(quote).text.strip(" .…")
    start = view.text.find(wanted) if wanted else -1
    if start >= 0:
        return Span(*view.span(start, start + len(wanted)))
    return _most_alike(quote, text)


def _most_alike(quote: str, text: str) -> Span | None:
    words = content_words(quote)
    if not words:
        return None
    view = fold(text)
    best, place = 0.0, None
    for start, end in sentences(fold_with_lines(text)):
        share = coverage(words, content_words(view.text[start:end]))
        if share > best:
            best, place = share, (start, end)
    if place is None or best < LEAST_ALIKE:
        return None
    start, end = view.span(*place)
    kept = text[start:end]
    return Span(start + len(kept) - len(kept.lstrip()), end - len(kept) + len(kept.rstrip()), approximate=True)
