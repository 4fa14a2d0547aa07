"""Reading a judge's reply strictly, and finding where its quotes stand.

A verdict is taken only where it literally stands, on the scale, in one JSON object of exactly the shape asked for.
Everything else is a failure with its reason. A quote stands word for word, else as texts are compared, else in the
most alike sentence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evaluation.core.samples import Finding
from evaluation.judging.asking import Heard
from evaluation.judging.calls import VERDICT, Ask, JudgeReply, Outcome, Rung
from evaluation.judging.lexical.words import content_words, coverage
from evaluation.judging.logprobs import level_chances
from evaluation.judging.shapes import conforms
from evaluation.judging.wire import storable
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


def placed(part: Finding, place: Span | None) -> Finding:
    """The part of an answer with its place there, where it has one."""
    if place is None:
        return part
    return replace(part, start=place.start, end=place.end, approximate=place.approximate)


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


_LONGEST_NUMBER = 18


def hear(reply: JudgeReply, ask: Ask, rung: Rung = Rung.JSON_SCHEMA) -> Heard:
    """What stands in a reply. Never raises for it. ``rung`` says where the object has to stand.

    A delivered reply has outcome ``parse`` when it is not one JSON object, has a part that was not asked for, no part
    of the right shape, or, where the ask wants the whole, not all of them.
    """
    if reply.outcome is not Outcome.OK:
        return Heard(reply.outcome, {})
    shapes: Mapping[str, Any] = (ask.shape or ask.schema)["properties"]
    found = one_object(_last_line(reply.raw) if rung is Rung.TEXT else reply.raw)
    if found is None or not found.keys() <= shapes.keys():
        return Heard(Outcome.PARSE, {})
    try:
        parts = {name: _storable(part) for name, part in found.items() if conforms(part, shapes[name])}
    except RecursionError:  # nested deeper than any verdict
        return Heard(Outcome.PARSE, {})
    if not parts or (ask.whole and len(parts) < len(shapes)):
        return Heard(Outcome.PARSE, {})
    return Heard(Outcome.OK, parts, level_chances(reply, ask, rung, parts))


def _last_line(text: str) -> str:
    """What follows ``VERDICT:`` on the last line; nothing where the last line does not begin with it, or where the word
    begins several lines, of which any could be the quoted one."""
    lines = [line.strip() for line in text.strip().splitlines()]
    if not lines or sum(line.startswith(VERDICT) for line in lines) != 1:
        return ""
    return lines[-1].removeprefix(VERDICT) if lines[-1].startswith(VERDICT) else ""


def one_object(text: str) -> dict[str, Any] | None:
    """The reply's one JSON object; ``None`` for anything before or after it, a repeated key, or no object."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_int=_number)
    except (ValueError, RecursionError):  # RecursionError: nested deeper than any verdict
        return None
    return value if isinstance(value, dict) else None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("a key is there twice")
    return value


def _number(digits: str) -> int | float:
    """Numbers too long to be a level stay numbers, so that they fail by scale and not by length."""
    return int(digits) if len(digits) <= _LONGEST_NUMBER else float("inf")


def _storable(part: Any) -> Any:
    """The part with every text as a database takes it."""
    if isinstance(part, str):
        return storable(part.strip())
    if isinstance(part, list):
        return [_storable(item) for item in part]
    if isinstance(part, dict):
        return {key: _storable(item) for key, item in part.items()}
    return part
