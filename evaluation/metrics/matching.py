"""Keyword matching in tiers.

- ``exact``: on token boundaries.
- ``spacing``: without the spaces beside Hangul, and between a name and its number, from a token or morpheme start.
- ``particle``: with particles and endings dropped.
- ``number``: an equal value, or a phone number in another spelling.
- ``compound``: a keyword of two or more Hangul syllables, or letters, that continues in Hangul (미래에셋 in
  미래에셋자산운용).
- ``alternative``: a later wording of the keyword.
- ``substring``: plain substring search, as in the original evaluations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from evaluation.core.errors import UnknownName
from evaluation.metrics.negation import holds_negation
from evaluation.metrics.normalise import (
    CLOSED_LIST,
    analysis,
    hangul_run,
    holds_hangul,
    is_boundary,
    is_hangul,
    is_particle_chain,
    only_grammar_follows,
    sentence_span,
    sentences,
    starts_morpheme,
    stems,
    without_particle,
)
from evaluation.metrics.prepared_text import PreparedText, counter_of, prepare, starts_with_counter


class Tier(StrEnum):
    """Kind of match, strictest first."""

    EXACT = "exact"
    SPACING = "spacing"
    PARTICLE = "particle"
    NUMBER = "number"
    COMPOUND = "compound"
    ALTERNATIVE = "alternative"
    SUBSTRING = "substring"


_NUMBER_WITH_UNIT = re.compile(r"\d[십백천만억조]* ?(?P<unit>[가-힣]+)$")
# Characters from a number's last digit to the end of its unit.
_MAX_NUMBER_CHARACTERS = 16


def right_edge(text: str, end: int, *, may_compound: bool) -> Tier | None:
    """Tier that the characters after ``end`` of a folded text allow; ``None`` if they form another word. Particles and
    endings are recognized by morphemes, else by the closed list.

    After a digit only particles and counters may follow ("200은", "200명"), because a product name may continue there
    ("KODEX 200선물인버스"). ``may_compound``: the keyword is long enough to begin a compound."""
    run = hangul_run(text, end)
    if is_boundary(text, end) and (not run or is_hangul(text[end - 1]) or end == 0):
        return Tier.EXACT
    if not run:
        return None
    if text[end - 1].isdigit() and starts_with_counter(run):
        return Tier.EXACT
    start, stop = sentence_span(text, end - 1)
    grammar = only_grammar_follows(text[start:stop], end - start, end - start + len(run))
    if is_particle_chain(text[end - 1], run) if grammar is None else grammar:
        return Tier.PARTICLE
    number = _NUMBER_WITH_UNIT.search(text, max(0, end - _MAX_NUMBER_CHARACTERS), end)
    if number and counter_of(hangul_run(text, number.start("unit"))) == number["unit"]:
        # As in 14일이내.
        return Tier.EXACT
    if not is_hangul(text[end - 1]) and not text[end - 1].isalnum():
        return Tier.EXACT
    return Tier.COMPOUND if may_compound and not text[end - 1].isdigit() else None


_MIN_COMPOUND = 2
_MIN_SPLIT = 3
# A name of at least two letters and its number: S&P 500, ISO27001; not A1.
_CODE = re.compile(r"[a-z&]{2} ?\d")


@dataclass(frozen=True, slots=True)
class Keyword:
    """One wording of a keyword. ``text`` is folded. ``canonical`` is empty without a number or article. ``first_value``
    is its first number, phone number or article. ``without_currency`` is the canonical amount without 원. ``stem`` is
    the text without one unambiguous particle, or empty. ``is_hangul``: only Hangul, spaces and marks."""

    text: str
    squeezed: str
    canonical: str
    without_currency: str
    first_value: str
    stem: str
    has_hangul: bool
    is_hangul: bool
    may_compound: bool
    may_be_split: bool
    is_negative: bool


@lru_cache(maxsize=16_384)
def compile_keyword(wording: str) -> Keyword:
    """Compile a wording for the tiers; ``text`` is empty for a blank one."""
    prepared = PreparedText(wording.strip())
    text = prepared.text.strip()
    syllables = sum(map(is_hangul, text))
    values = prepared.comparable
    canonical = prepared.canonical.text.strip() if values else ""
    is_amount = bool(values) and values[-1].unit == "원" and values[-1].unit_end == len(prepared.text)
    stem = without_particle(text)
    squeezed = prepared.squeezed.text.strip()
    letters = sum(character.isalpha() for character in text)
    return Keyword(
        text=text,
        squeezed=squeezed,
        canonical=canonical,
        without_currency=canonical.removesuffix("원") if is_amount else "",
        first_value=values[0].canonical if values else "",
        stem=stem if stem != text else "",
        has_hangul=syllables > 0,
        is_hangul=syllables > 0 and all(is_hangul(symbol) or not symbol.isalnum() for symbol in text),
        may_compound=(syllables if text and is_hangul(text[-1]) else letters) >= _MIN_COMPOUND,
        may_be_split=(syllables > 0 and (syllables >= _MIN_SPLIT or squeezed != text)) or bool(_CODE.search(text)),
        is_negative=holds_negation(text),
    )


MATCHINGS = ("tiers", "substring")
_ORDER = {tier: place for place, tier in enumerate(Tier)}
# Tier, start and end in the folded text.
_Place = tuple[Tier, int, int]


@dataclass(frozen=True, slots=True)
class KeywordHit:
    """Occurrence of a keyword.

    ``keyword`` is its first wording, ``wording`` the one that occurs. ``wording_tier`` is the tier of that wording if
    ``tier`` is ``alternative``, else equal to it. ``start`` and ``end`` are offsets in the original text. ``counts`` is
    false only for a hit in a negated clause confirmed by a morphological analyzer. ``analysis`` is the Korean analysis
    used (``kiwi`` or ``closed_list``)."""

    keyword: str
    wording: str
    tier: Tier
    wording_tier: Tier
    start: int
    end: int
    negated: bool
    counts: bool
    analysis: str


@lru_cache(maxsize=4096)
def find_keyword(alternatives: tuple[str, ...], original: str, matching: str = "tiers") -> KeywordHit | None:
    """Best hit of a keyword with alternative wordings in an answer; ``None`` if it does not occur.

    Hits outside negated clauses come first, then the earlier wording, then the first position that is not a compound.

    :raises UnknownName: for a matching other than ``tiers`` and ``substring``."""
    if matching not in MATCHINGS:
        raise UnknownName("matching", matching, MATCHINGS)
    negated: KeywordHit | None = None
    for position, wording in enumerate(alternatives):
        hit = _find_wording(wording, original, matching)
        if hit is None:
            continue
        if position:
            hit = replace(hit, keyword=alternatives[0], tier=Tier.ALTERNATIVE)
        if not hit.negated:
            return hit
        negated = negated or hit
    return negated


def _find_wording(wording: str, original: str, matching: str) -> KeywordHit | None:
    if matching == Tier.SUBSTRING:
        start = original.find(wording) if wording else -1
        end = start + len(wording)
        tier = Tier.SUBSTRING
        return None if start < 0 else KeywordHit(wording, wording, tier, tier, start, end, False, True, "")
    keyword = compile_keyword(wording)
    if not keyword.text:
        return None
    prepared = prepare(original)
    best: tuple[bool, int, int, int] | None = None
    for tier, start, end in _places(keyword, prepared):
        negated = not keyword.is_negative and prepared.is_negated(start, end)
        rank = (negated, _ORDER[tier], start, end)
        best = rank if best is None else min(best, rank)
        if not negated and tier is not Tier.COMPOUND:
            break
    if best is None:
        return None
    negated, order, start, end = best
    tier = tuple(Tier)[order]
    counts = not negated or analysis() == CLOSED_LIST
    return KeywordHit(wording, wording, tier, tier, *prepared.folded.span(start, end), negated, counts, analysis())


def _places(keyword: Keyword, prepared: PreparedText) -> Iterator[_Place]:
    """Matches of the cheap tiers; the expensive ones run only if those find none."""
    found_cheaply = False
    for place in _cheap_places(keyword, prepared):
        found_cheaply = True
        yield place
    if not found_cheaply and keyword.has_hangul:
        yield from _stem_places(keyword, prepared)


def _cheap_places(keyword: Keyword, prepared: PreparedText) -> Iterator[_Place]:
    text = prepared.text
    for start in _occurrences(keyword.text, text):
        end = start + len(keyword.text)
        tier = _edge_tier(text, start, end, keyword.may_compound)
        if tier and not prepared.is_cut(start, end):
            yield tier, start, end
    if keyword.may_be_split and keyword.squeezed in prepared.squeezed_text:
        yield from _spacing_places(keyword, prepared)
    if keyword.canonical and keyword.first_value in prepared.values:
        yield from _number_places(keyword, prepared)


def _occurrences(needle: str, text: str) -> Iterator[int]:
    if not needle:
        return
    start = text.find(needle)
    while start >= 0:
        yield start
        start = text.find(needle, start + 1)


def _edge_tier(text: str, start: int, end: int, may_compound: bool) -> Tier | None:
    return right_edge(text, end, may_compound=may_compound) if is_boundary(text, start) else None


def _spacing_places(keyword: Keyword, prepared: PreparedText) -> Iterator[_Place]:
    text, squeezed = prepared.text, prepared.squeezed
    for place in _occurrences(keyword.squeezed, squeezed.text):
        start, end = squeezed.span(place, place + len(keyword.squeezed))
        if text[start:end] == keyword.text or prepared.is_cut(start, end):
            continue
        first, last = sentence_span(text, start)
        starts_token = is_boundary(text, start) or starts_morpheme(text[first:last], start - first)
        if starts_token and right_edge(text, end, may_compound=False):
            yield Tier.SPACING, start, end


def _number_places(keyword: Keyword, prepared: PreparedText) -> Iterator[_Place]:
    canonical = prepared.canonical
    for place in _occurrences(keyword.canonical, canonical.text):
        start, end = canonical.span(place, place + len(keyword.canonical))
        if prepared.text[start:end] != keyword.text and _is_whole(prepared, start, end):
            yield Tier.NUMBER, start, end
    if keyword.without_currency:
        round_ends = {q.end for q in prepared.quantities if q.is_round and not q.unit and not q.is_counted}
        for place in _occurrences(keyword.without_currency, canonical.text):
            start, end = canonical.span(place, place + len(keyword.without_currency))
            if end in round_ends and _is_whole(prepared, start, end):
                yield Tier.NUMBER, start, end


def _is_whole(prepared: PreparedText, start: int, end: int) -> bool:
    """Return whether the span starts and ends at a number or at a token boundary."""
    starts, ends = prepared.ends
    if not is_boundary(prepared.text, start) and start not in starts:
        return False
    return end in ends or right_edge(prepared.text, end, may_compound=False) is not None


def _stem_places(keyword: Keyword, prepared: PreparedText) -> Iterator[_Place]:
    """Matches of the keyword without particles and endings, which may differ in the answer."""
    text = prepared.text
    if analysis() == CLOSED_LIST:
        for start in _occurrences(keyword.stem, text):
            end = start + len(keyword.stem)
            if _edge_tier(text, start, end, may_compound=False) and not prepared.is_cut(start, end):
                yield Tier.PARTICLE, start, end
        return
    # The analyzer is slow to load and to run, so it is used only if the stem can occur.
    if keyword.is_hangul and not holds_hangul(text):
        return
    keyword_stems = stems(keyword.text)
    if not keyword_stems or not all(m.form in text for m in keyword_stems if m.is_noun):
        return
    forms = [m.form for m in keyword_stems]
    needs_hangul = any(map(holds_hangul, forms))
    for first, last in sentences(text):
        if needs_hangul and not holds_hangul(text[first:last]):
            continue
        text_stems = stems(text[first:last])
        for i in range(len(text_stems) - len(forms) + 1):
            if [m.form for m in text_stems[i : i + len(forms)]] != forms:
                continue
            start, end = first + text_stems[i].start, first + text_stems[i + len(forms) - 1].end
            follower = text_stems[i + len(forms)] if i + len(forms) < len(text_stems) else None
            glued = follower is not None and not is_boundary(text, first + follower.start)
            if is_boundary(text, start) and not glued and not prepared.is_cut(start, end):
                yield Tier.PARTICLE, start, end
