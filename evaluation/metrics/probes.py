"""What the first tier asks a text about a keyword: plain searches that settle most answers without the other tiers."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from evaluation.metrics.korean import CLOSED_LIST, stems
from evaluation.metrics.matching import Keyword, compile_keyword
from evaluation.metrics.normalise import is_hangul

NEVER = "\ue002"  # a private use character: in no text that the first tier reads
ANYWHERE = ""
OF_NUMBERS = frozenset("0123456789일이삼사오육칠팔구십백천만억조")
SPACES = frozenset(" \n\t\r\v\f\x1c\x1d\x1e\x1f")
_BEFORE_DIGITS = frozenset("제의")  # of articles
NO_WORD, HANGUL, LETTER_OR_DIGIT = 0, 1, 2  # what a character is to a boundary
_FREQUENT = (
    "다이는에의가을를은지로고하한기서사자도시인리대정수스어나과해일제보상전으구"  # in Korean, the first ones most
)
_BEHIND_NUMBERS = "십백천만억조항호장절편"
_NUMERAL = "0123456789., 일이삼사오육칠팔구십백천만억조제항호장절편의"


class Probe(NamedTuple):
    """One wording of a keyword as the first tier sees it.

    ``needle`` is the folded wording. ``searched`` is what is searched first: the needle; or, where anything may
    follow it, a space and the needle, which ``settles`` that the keyword occurs, or does so unless one of its
    ``leads`` stands in front, from which a number could go on into the needle. Where ``searched`` is not found, no
    tier finds the keyword unless both ``gates`` occur. ``first`` and ``last`` are what its edges are to a boundary,
    ``may_go_on`` that Hangul may follow, ``opens_number`` and ``ends_number`` that its first or last edge could cut
    a number. ``is_final`` says that there is no other tier; such a keyword may still be ``is_spaced``, and stand in
    a text with line breaks or more than one space where it has one. ``spacing`` finds the needle with other spaces,
    where an answer may space it otherwise. ``stem_words`` are what the particle tier needs; ``None``: it cannot
    find what the needle does not.
    """

    needle: str
    searched: str
    settles: bool
    leads: frozenset[str] | None
    gates: tuple[str, str]
    first: int
    last: int
    may_go_on: bool
    opens_number: bool
    ends_number: bool
    is_negative: bool
    is_final: bool
    is_spaced: bool
    spacing: re.Pattern[str] | None
    has_value: bool
    stem_words: tuple[str, ...] | None


@lru_cache(maxsize=65_536)
def probe(written: str, analysis: str) -> Probe:
    """The probe of a wording that holds more than white space. ``analysis`` is what Korean is read with."""
    keyword = compile_keyword(written)
    text = keyword.text
    stem_words = _stem_words(keyword, analysis)
    squeezed = text.replace(" ", "") if keyword.has_hangul and keyword.may_be_split else ""
    spacing = re.compile(r"\s*".join(map(re.escape, squeezed))) if squeezed else None
    has_value = bool(keyword.canonical)
    is_final = not (squeezed or has_value) and stem_words is None
    opens_number, ends_number = _opens_number(text), _ends_number(text)
    behind_space = keyword.may_go_on and is_hangul(text[-1]) and not ends_number
    # Where the search with the space failed, the needle may still stand elsewhere.
    is_spaced = " " in text and not squeezed
    words = text.split()
    only_needle = (text, ANYWHERE) if behind_space else (words[0], words[-1]) if is_spaced else (NEVER, NEVER)
    return Probe(
        needle=text,
        searched=f" {text}" if behind_space else text,
        settles=behind_space and not opens_number,
        leads=_leads(text) if behind_space and opens_number else None,
        gates=only_needle if is_final else _gates(text, stem_words, has_value),
        first=kind_of(text[0]),
        last=kind_of(text[-1]),
        may_go_on=keyword.may_go_on and not text[-1].isdigit(),
        opens_number=opens_number,
        ends_number=ends_number,
        is_negative=keyword.is_negative,
        is_final=is_final,
        is_spaced=is_spaced,
        spacing=spacing,
        has_value=has_value,
        stem_words=stem_words,
    )


def kind_of(character: str) -> int:
    """What a character of a plain text is to a boundary."""
    if is_hangul(character):
        return HANGUL
    return LETTER_OR_DIGIT if character.isalnum() else NO_WORD


def _opens_number(text: str) -> bool:
    """Whether a number in front of the keyword could go on in it: 3 만기 looks like it, 이자 does not."""
    return not text[0].isalnum() or text[0].isdigit() or text[0] in _BEHIND_NUMBERS


def _leads(text: str) -> frozenset[str]:
    """What may stand in front of a space and the keyword where one number spans the space."""
    return OF_NUMBERS | SPACES | (_BEFORE_DIGITS if text[0].isdigit() else frozenset())


def _ends_number(text: str) -> bool:
    """Whether the keyword could end in the middle of a number: 200 of 200만 could, 운용사 could not, because numbers in
    Hangul start a word."""
    if not text[-1].isalnum():
        return True
    rest = text.rstrip(_NUMERAL)
    number = text[len(rest) :]
    return bool(number) and (not rest or not is_hangul(rest[-1]) or any(map(str.isdigit, number)))


def _stem_words(keyword: Keyword, analysis: str) -> tuple[str, ...] | None:
    """What must all stand in a text for the particle tier to find there what the needle does not."""
    if not keyword.has_hangul:
        return None
    if analysis == CLOSED_LIST:
        return tuple(keyword.stem.split()) if keyword.stem else None
    wanted = stems(keyword.text)
    nouns = tuple(morpheme.form for morpheme in wanted if morpheme.is_noun)
    return None if not wanted or keyword.text in nouns else nouns


def _gates(text: str, stem_words: tuple[str, ...] | None, has_value: bool) -> tuple[str, str]:
    """The two rarest characters that every spelling has which any other tier would find."""
    if has_value or stem_words == ():
        return ANYWHERE, ANYWHERE
    needed = [c for c in dict.fromkeys(text.replace(" ", "")) if stem_words is None or any(c in w for w in stem_words)]
    if not needed:
        return ANYWHERE, ANYWHERE
    rank = {c: (c not in _FREQUENT, -_FREQUENT.find(c)) for c in needed}
    first = max(needed, key=rank.__getitem__)
    needed.reverse()  # of equally rare ones the outer two: neighbours often stand together in other words
    return first, max((c for c in needed if c != first), key=rank.__getitem__, default=first)
