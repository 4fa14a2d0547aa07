"""Claims in a text: their numbers where they are made, in the rendered answer and in its raw text, and the judge's
supporting words in the passages where it may be seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.judging.formulas import CONTRADICTED, IRRELEVANT, PARTIAL, RELEVANT, SUPPORTED, UNSUPPORTED
from evaluation.wording.markdown import language_of, render
from review.evidence.rated_claims import CITED, MISSING, PRESENT, UNCITED
from review.ratings.claims import Claim
from review.web.pages.marked import Piece, Span, pieces

VERDICTS = {
    SUPPORTED: _("supported"),
    PARTIAL: _("partly"),
    UNSUPPORTED: _("not supported"),
    CONTRADICTED: _("contradicted"),
    RELEVANT: _("relevant"),
    IRRELEVANT: _("not relevant"),
    PRESENT: _("present"),
    MISSING: _("missing"),
    CITED: _("used"),
    UNCITED: _("not used"),
}
_FIRST, _MOST = 0xE000, 500  # private characters stand for the ends of claims while Markdown is read
_PRIVATE = re.compile("[\ue000-\uf8ff]")
_LINE_START = re.compile(r"[\s\-*+#>|]*(?:\d{1,9}[.)]\s+)?")


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A claim in the list beside the answer. ``verdict`` is empty while the judge is hidden, then its title;
    ``state`` names its look. ``passage`` is the number of the passage it rests on."""

    number: int
    text: str
    language: str
    approximate: bool
    verdict: str
    state: str
    reason: str
    passage: int | None
    quote_approximate: bool


def verdict_title(verdict: str) -> str:
    """The verdict in the reader's language."""
    return str(VERDICTS.get(verdict, verdict))


def claim_views(claims: Iterable[Claim]) -> tuple[ClaimView, ...]:
    """The claims as the list shows them."""
    return tuple(
        ClaimView(
            number=claim.number,
            text=claim.text,
            language=language_of(claim.text),
            approximate=claim.approximate,
            verdict=verdict_title(claim.judge.verdict) if claim.judge else "",
            state=_state(claim),
            reason=claim.judge.reason if claim.judge else "",
            passage=claim.judge.passage if claim.judge else None,
            quote_approximate=bool(claim.judge and claim.judge.approximate),
        )
        for claim in claims
    )


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


def quoted_pieces(text: str, number: int, claims: Iterable[Claim]) -> tuple[Piece, ...]:
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


def _state(claim: Claim) -> str:
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
        mark = format_html('<mark class="claim {}">', _state(claim))
        return f"{before}{mark}{inside}</mark>{number}{after}"
    return html.replace(opened, "").replace(closed, str(number), 1)
