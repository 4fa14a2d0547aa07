"""Texts with places marked in them: the numbers of claims where they are made, in the rendered answer and in its raw
text, what was found in a text, and in the passages the judge's supporting words where it may be seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, gettext

from evaluation.judging.formulas import SUPPORTED
from evaluation.wording.markdown import language_of, render
from review.ratings.card import Claim, Passage

_FIRST, _MOST = 0xE000, 500  # private characters stand for the ends of claims while Markdown is read
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_LINE_START = re.compile(r"[\s\-*+#>|]*(?:\d{1,9}[.)]\s+)?")


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


def numbered_html(text: str, claims: Sequence[Claim]) -> SafeString:
    """The answer as safe HTML with each claim's number behind it, and the claim marked where no other markup begins or
    ends inside it. Where the numbers cannot be kept apart from the text, the answer stands without them. An empty
    answer is said to be empty: nothing at all would look like a fault of the page."""
    if not text.strip():
        return format_html('<p class="quiet" lang="{}">{}</p>', get_language() or "en", gettext("The answer is empty."))
    placed = [c for c in claims if _is_placed(c, text) and c.number < _MOST]
    plain = render(text)
    if not placed or _PRIVATE.search(text):
        return plain
    html = str(render(_with_ends(text, placed)))
    if "%ee%8" in html.lower():  # an end fell into an address
        return plain
    for claim in placed:
        html = _numbered(html, claim)
    return mark_safe(_PRIVATE.sub("", html))  # noqa: S308  -- render() has cleaned it; only marks of ours were put in


def raw_pieces(text: str, claims: Iterable[Claim]) -> tuple[Piece, ...]:
    """The raw text with the claims marked by their numbers."""
    return pieces(
        text, [Span(c.start, c.end, str(c.number)) for c in claims if c.start is not None and c.end is not None]
    )


def passages(found: Sequence[Passage] | None, claims: Sequence[Claim] = ()) -> tuple[PassageView, ...] | None:
    """The passages, with the words that decide claims where the judge may be seen; ``None`` without retrieval."""
    if found is None:
        return None
    return tuple(
        PassageView(
            one.number,
            one.source,
            one.text,
            language_of(one.text),
            one.link,
            _quoted(one.text, one.number, claims),
        )
        for one in found
    )


def _quoted(text: str, number: int, claims: Iterable[Claim]) -> tuple[Piece, ...]:
    """A passage with the words that decide claims marked by the claims' numbers; plain while the judge is hidden."""
    spans = [
        Span(c.judge.quote_start, c.judge.quote_end, str(c.number))
        for c in claims
        if c.judge and c.judge.passage == number and c.judge.quote_start is not None and c.judge.quote_end is not None
    ]
    return pieces(text, spans)


def _is_placed(claim: Claim, text: str) -> bool:
    """Whether the claim has a place inside the text; verdicts made elsewhere may name one behind its end."""
    return claim.start is not None and claim.end is not None and 0 <= claim.start < claim.end <= len(text)


def claim_look(claim: Claim) -> str:
    """The look of a claim: neutral while the judge is hidden, else whether it holds."""
    if claim.judge is None:
        return "neutral"
    return "held" if claim.judge.verdict == SUPPORTED else "open"


def _ends(claim: Claim) -> tuple[str, str]:
    return chr(_FIRST + 2 * claim.number), chr(_FIRST + 2 * claim.number + 1)


def _with_ends(text: str, claims: Iterable[Claim]) -> str:
    places: list[tuple[int, int, str]] = []
    for claim in claims:
        start, end = int(claim.start or 0), int(claim.end or 0)
        begins_line = start == 0 or text[start - 1] == "\n"
        inside = _LINE_START.match(text, start, end) if begins_line else None
        opened, closed = _ends(claim)
        places += [(inside.end() if inside else start, 1, opened), (end, 0, closed)]
    for at, _order, sign in sorted(places, key=lambda place: (place[0], place[1]), reverse=True):
        text = text[:at] + sign + text[at:]
    return text


def _numbered(html: str, claim: Claim) -> str:
    opened, closed = _ends(claim)
    before, found, rest = html.partition(opened)
    inside, ended, after = rest.partition(closed)
    number = format_html('<sup class="k">{}</sup>', claim.number)
    if found and ended and "<" not in inside:
        mark = format_html('<mark class="claim {}">', claim_look(claim))
        return f"{before}{mark}{inside}</mark>{number}{after}"
    return html.replace(opened, "").replace(closed, str(number), 1)
