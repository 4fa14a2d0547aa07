"""Keyword matching in tiers: which keyword occurs in an answer, how, and where.

``exact`` on token boundaries; ``spacing`` without the spaces beside Hangul, and between a name and its number, from a
token or morpheme start; ``particle`` with particles and endings dropped; ``number`` as an equal value or the same phone
number in another spelling; ``compound`` where a keyword of two or more Hangul syllables, or letters, goes on in Hangul
(미래에셋 in 미래에셋자산운용); ``alternative`` where a later wording of the keyword occurs; ``substring`` for the
sources' plain matching.
"""

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
from evaluation.metrics.prepared import PreparedText, counter_of, prepare, starts_with_counter


class Tier(StrEnum):
    """How a keyword was found, the strictest way first."""

    EXACT = "exact"
    SPACING = "spacing"
    PARTICLE = "particle"
    NUMBER = "number"
    COMPOUND = "compound"
    ALTERNATIVE = "alternative"
    SUBSTRING = "substring"


_NUMBER_WITH_UNIT = re.compile(r"\d[십백천만억조]* ?(?P<unit>[가-힣]+)$")
_LONGEST_NUMBER = 16  # characters from a number's last digit to the end of its unit


def right_edge(text: str, end: int, *, may_go_on: bool) -> Tier | None:
    """The tier that the characters behind ``end`` of a folded text allow, or ``None`` where they make another word.
    Particles and endings are told by morphemes, else by the closed list.

    Behind a digit only particles and counters may follow ("200은", "200명"), because a product name may go on there
    ("KODEX 200선물인버스"). ``may_go_on``: the keyword is long enough to begin a compound.
    """
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
    number = _NUMBER_WITH_UNIT.search(text, max(0, end - _LONGEST_NUMBER), end)
    if number and counter_of(hangul_run(text, number.start("unit"))) == number["unit"]:
        return Tier.EXACT  # 14일이내
    if not is_hangul(text[end - 1]) and not text[end - 1].isalnum():
        return Tier.EXACT
    return Tier.COMPOUND if may_go_on and not text[end - 1].isdigit() else None


_LEAST_COMPOUND = 2
_LEAST_SPLIT = 3
_CODE = re.compile(r"[a-z&]{2} ?\d")  # a name of two letters or more and its number: S&P 500, ISO27001; no A1


@dataclass(frozen=True, slots=True)
class Keyword:
    """One wording of a keyword. ``text`` is folded; ``canonical`` is empty where it holds no number or article;
    ``first_value`` is its first number, phone number or article; ``without_currency`` is the canonical text of an
    amount without its 원; ``stem`` is the text without one unambiguous particle, empty where it has none.
    ``is_hangul``: it is written in nothing else, but for spaces and marks."""

    text: str
    squeezed: str
    canonical: str
    without_currency: str
    first_value: str
    stem: str
    has_hangul: bool
    is_hangul: bool
    may_go_on: bool
    may_be_split: bool
    is_negative: bool


@lru_cache(maxsize=16_384)
def compile_keyword(written: str) -> Keyword:
    """The keyword as the tiers search it; ``text`` is empty where nothing but white space was written."""
    prepared = PreparedText(written.strip())
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
        is_hangul=syllables > 0 and all(is_hangul(one) or not one.isalnum() for one in text),
        may_go_on=(syllables if text and is_hangul(text[-1]) else letters) >= _LEAST_COMPOUND,
        may_be_split=(syllables > 0 and (syllables >= _LEAST_SPLIT or squeezed != text)) or bool(_CODE.search(text)),
        is_negative=holds_negation(text),
    )


MATCHINGS = ("tiers", "substring")
_ORDER = {tier: place for place, tier in enumerate(Tier)}
_Place = tuple[Tier, int, int]  # tier, start and end in the folded text


@dataclass(frozen=True, slots=True)
class KeywordHit:
    """Where a keyword was found.

    ``keyword`` is its first wording, ``written`` the one that occurs. ``within`` is the tier that wording was found by
    where ``tier`` is ``alternative``, else the same. ``start`` and ``end`` are offsets into the original text.
    ``counts`` is false only for a hit in a negated clause that a morphological analyser confirmed; ``analysis`` says
    what Korean was read with (``kiwi`` or ``closed_list``).
    """

    keyword: str
    written: str
    tier: Tier
    within: Tier
    start: int
    end: int
    negated: bool
    counts: bool
    analysis: str


@lru_cache(maxsize=4096)
def find_keyword(alternatives: tuple[str, ...], original: str, matching: str = "tiers") -> KeywordHit | None:
    """The best hit of a keyword, given by its alternative wordings, in an answer; ``None`` where it does not occur.

    A hit outside negated clauses comes first, then the earlier wording, then the first place that is no compound.

    :raises UnknownName: for a matching other than ``tiers`` and ``substring``.
    """
    if matching not in MATCHINGS:
        raise UnknownName("matching", matching, MATCHINGS)
    negated: KeywordHit | None = None
    for position, written in enumerate(alternatives):
        hit = _find_written(written, original, matching)
        if hit is None:
            continue
        if position:
            hit = replace(hit, keyword=alternatives[0], tier=Tier.ALTERNATIVE)
        if not hit.negated:
            return hit
        negated = negated or hit
    return negated


def _find_written(written: str, original: str, matching: str) -> KeywordHit | None:
    if matching == Tier.SUBSTRING:
        start = original.find(written) if written else -1
        end = start + len(written)
        tier = Tier.SUBSTRING
        return None if start < 0 else KeywordHit(written, written, tier, tier, start, end, False, True, "")
    keyword = compile_keyword(written)
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
    return KeywordHit(written, written, tier, tier, *prepared.folded.span(start, end), negated, counts, analysis())


def _places(keyword: Keyword, prepared: PreparedText) -> Iterator[_Place]:
    """All places by the cheap tiers; the dear ones are asked only where those found none."""
    found = False
    for place in _cheap_places(keyword, prepared):
        found = True
        yield place
    if not found and keyword.has_hangul:
        yield from _stem_places(keyword, prepared)


def _cheap_places(keyword: Keyword, prepared: PreparedText) -> Iterator[_Place]:
    text = prepared.text
    for start in _occurrences(keyword.text, text):
        end = start + len(keyword.text)
        tier = _edges(text, start, end, keyword.may_go_on)
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


def _edges(text: str, start: int, end: int, may_go_on: bool) -> Tier | None:
    return right_edge(text, end, may_go_on=may_go_on) if is_boundary(text, start) else None


def _spacing_places(keyword: Keyword, prepared: PreparedText) -> Iterator[_Place]:
    text, squeezed = prepared.text, prepared.squeezed
    for place in _occurrences(keyword.squeezed, squeezed.text):
        start, end = squeezed.span(place, place + len(keyword.squeezed))
        if text[start:end] == keyword.text or prepared.is_cut(start, end):
            continue
        first, last = sentence_span(text, start)
        starts = is_boundary(text, start) or starts_morpheme(text[first:last], start - first)
        if starts and right_edge(text, end, may_go_on=False):
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
    """A number ends where it ends; anything else in a keyword with numbers needs its boundaries."""
    if not is_boundary(prepared.text, start) and not any(q.start == start for q in prepared.quantities):
        return False
    if any(q.end == end for q in prepared.quantities):
        return True
    return right_edge(prepared.text, end, may_go_on=False) is not None


def _stem_places(keyword: Keyword, prepared: PreparedText) -> Iterator[_Place]:
    """The keyword without its own particles and endings, where those of the answer may differ."""
    text = prepared.text
    if analysis() == CLOSED_LIST:
        for start in _occurrences(keyword.stem, text):
            end = start + len(keyword.stem)
            if _edges(text, start, end, may_go_on=False) and not prepared.is_cut(start, end):
                yield Tier.PARTICLE, start, end
        return
    # The analyser is slow to load and to run: it is asked only where the stem can be there.
    if keyword.is_hangul and not holds_hangul(text):
        return
    wanted = stems(keyword.text)
    if not wanted or not all(m.form in text for m in wanted if m.is_noun):
        return
    forms = [m.form for m in wanted]
    needs_hangul = any(map(holds_hangul, forms))
    for first, last in sentences(text):
        if needs_hangul and not holds_hangul(text[first:last]):
            continue
        found = stems(text[first:last])
        for i in range(len(found) - len(forms) + 1):
            if [m.form for m in found[i : i + len(forms)]] != forms:
                continue
            start, end = first + found[i].start, first + found[i + len(forms) - 1].end
            follower = found[i + len(forms)] if i + len(forms) < len(found) else None
            glued = follower is not None and not is_boundary(text, first + follower.start)
            if is_boundary(text, start) and not glued and not prepared.is_cut(start, end):
                yield Tier.PARTICLE, start, end
