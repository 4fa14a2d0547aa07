"""The first tier over whole answers: which keywords certainly occur, which certainly do not, and which need more.

It folds a text only as far as it must, searches each keyword as it is written, and looks at the characters beside the
place. It gives up (``None``) wherever the other tiers could see more: another spacing, an equal number, a particle that
an analyser has to judge, a negated clause. A test holds it against the full tiers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from evaluation.metrics.matching import Keyword, compile_keyword
from evaluation.metrics.negation import holds_negation, may_negate_in_english, may_negate_in_korean
from evaluation.metrics.normalise import CLOSED_LIST, KIWI, analysis, fold, is_hangul, stems

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
    a text with line breaks or more than one space where it has one. ``squeezed`` is the needle without
    spaces, where an answer may space it otherwise. ``stem_words`` are what the particle tier needs; ``None``: it cannot
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
    squeezed: str
    has_value: bool
    stem_words: tuple[str, ...] | None


@lru_cache(maxsize=65_536)
def probe(written: str, analysis: str) -> Probe:
    """The probe of a wording that holds more than white space. ``analysis`` is what Korean is read with."""
    keyword = compile_keyword(written)
    text = keyword.text
    stem_words = _stem_words(keyword, analysis)
    squeezed = text.replace(" ", "") if keyword.may_be_split else ""
    has_value = bool(keyword.canonical)
    is_final = not (squeezed or has_value) and stem_words is None
    # A number in front of the keyword could go on in it: 3 만기 looks like it, 이자 does not.
    opens_number = not text[0].isalnum() or text[0].isdigit() or text[0] in _BEHIND_NUMBERS
    ends_number = _ends_number(text)
    # What may stand in front of a space and the keyword where one number spans the space.
    leads = OF_NUMBERS | SPACES | (_BEFORE_DIGITS if text[0].isdigit() else frozenset())
    behind_space = keyword.may_go_on and is_hangul(text[-1]) and not ends_number
    # Where the search with the space failed, the needle may still stand elsewhere.
    is_spaced = " " in text and not squeezed
    words = text.split()
    only_needle = (text, ANYWHERE) if behind_space else (words[0], words[-1]) if is_spaced else (NEVER, NEVER)
    return Probe(
        needle=text,
        searched=f" {text}" if behind_space else text,
        settles=behind_space and not opens_number,
        leads=leads if behind_space and opens_number else None,
        gates=only_needle if is_final else _gates(text, stem_words, has_value),
        first=kind_of(text[0]),
        last=kind_of(text[-1]),
        may_go_on=keyword.may_go_on and not text[-1].isdigit(),
        opens_number=opens_number,
        ends_number=ends_number,
        is_negative=keyword.is_negative,
        is_final=is_final,
        is_spaced=is_spaced,
        squeezed=squeezed,
        has_value=has_value,
        stem_words=stem_words,
    )


def kind_of(character: str) -> int:
    """What a character of a plain text is to a boundary."""
    if is_hangul(character):
        return HANGUL
    return LETTER_OR_DIGIT if character.isalnum() else NO_WORD


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


# Characters that fold to themselves but for the case of Latin letters, are single, and compose with nothing.
_SYMBOLS = "·…→※□■○●△▲▽▼◇◆☆★①-⑳°×÷"
_PLAIN = re.compile(rf"[\t\n\r -_a-~가-힣{_SYMBOLS}]*")
# Of those the texts that surely negate nothing: English negates with an n or with "without", Korean with one of the
# syllables left out here where nothing beside it tells otherwise. One scan in place of two and a dozen searches. (Only
# the run of characters is possessive: Python before 3.11.5 fails to match possessive groups.)
_CALM = re.compile(
    rf"(?:[\t\n\r -MO-VX-_a-mo-vx-~가-맇막-맏맑-몺몼-앃악-앇앉앋-업엇-힣{_SYMBOLS}]++"
    r"|아(?![니닌닙닐님])|마(?![세십라요.!\s])|(?<![지\s])말|(?<=[가-힣])안)*"
)
_NUMERIC = re.compile(r"[\d십백천만억조]")
_BEFORE_NUMBERS = OF_NUMBERS | frozenset("+-.,")
_BEHIND_DIGITS = frozenset("조항호장절편tmb")  # of articles, and of thousand, million, billion
_BESIDE = 16  # characters that are looked at for the next one that is no space


class FirstTier:
    """The probes of a question's keywords, each with its alternative wordings."""

    __slots__ = ("_confirms_negation", "_has_letters", "_others", "_plan", "_wordings")

    def __init__(self, keywords: tuple[tuple[str, ...], ...]) -> None:
        used = analysis()
        self._wordings = tuple(tuple(probe(written, used) for written in keyword) for keyword in keywords)
        every = [one for wordings in self._wordings for one in wordings]
        self._plan = tuple(
            (one.settles, one.searched, one.leads, one.opens_number or one.ends_number, *one.gates, one)
            for one, *_ in self._wordings
        )
        self._others = tuple((place, others) for place, (_, *others) in enumerate(self._wordings) if others)
        self._confirms_negation = used == KIWI
        self._has_letters = any(one.needle.upper() != one.needle for one in every)

    def states(self, original: str) -> list[bool | None]:
        """For each keyword whether it occurs (and counts), ``None`` where this tier cannot tell."""
        watches_negation = self._confirms_negation
        if original.isascii() and "`" not in original:
            text = original.lower()
        elif watches_negation and _CALM.fullmatch(original):
            text = original.lower() if self._has_letters else original
            watches_negation = False
        elif _PLAIN.fullmatch(original):
            text = original.lower() if self._has_letters else original
        else:
            view = fold(original)
            text = view.text
            if view.changes or not _PLAIN.fullmatch(text):
                return [None] * len(self._plan)
        if watches_negation:
            # English negates with an n or with "without", which a text need not be in lower case for to be without.
            english = self._has_letters or "n" in text or "N" in text or "w" in text or "W" in text
            text = text.lower() if english and not self._has_letters else text
            if (not original.isascii() and may_negate_in_korean(text)) or (english and may_negate_in_english(text)):
                return [_of_any(wordings, text, False, may_be_negated=True) for wordings in self._wordings]
        text = f" {text} "  # so that a keyword at either end has a space beside it as elsewhere
        states: list[bool | None] = []
        add = states.append
        for settles, searched, leads, touches_numbers, gate, last_gate, one in self._plan:
            if settles:
                add(searched in text or (gate in text and last_gate in text and _state(one, text, False)))
            elif (start := text.find(searched)) < 0:
                add(gate in text and last_gate in text and _state(one, text, False))
            elif leads is not None:
                add(text[start - 1] not in leads or _look(one, text, text.find(one.needle), False))
            else:
                end = start + len(searched)
                add(
                    (
                        not touches_numbers
                        and (text[start - 1] == " " or not text[start - 1].isalnum())
                        and (text[end] == " " or not text[end].isalnum())
                    )
                    or _look(one, text, start, False)
                )
        for place, others in self._others:
            if not states[place]:
                states[place] = _of_any(others, text, states[place], may_be_negated=False)
        return states


def _of_any(wordings: Iterable[Probe], text: str, state: bool | None, *, may_be_negated: bool) -> bool | None:
    """The state of a keyword that these wordings may raise from false to unknown, or to true."""
    for one in wordings:
        found = _state(one, text, may_be_negated)
        if found:
            return True
        state = None if found is None else state
    return state


@lru_cache(maxsize=4)
def _squeezed(text: str) -> str:
    """The text without any white space, made once for all keywords that look at it."""
    return "".join(text.split())


def _state(one: Probe, text: str, may_be_negated: bool) -> bool | None:
    if one.squeezed and one.squeezed not in _squeezed(text):  # which finds the needle as well
        return None if _may_be_there(one, text) else False
    start = text.find(one.needle)
    if start < 0 and one.is_spaced and _has_odd_spaces(text):
        text = " ".join(text.split())
        start = text.find(one.needle)
    if start >= 0:
        return _look(one, text, start, may_be_negated)
    return None if not one.is_final and (one.squeezed or _may_be_there(one, text)) else False


def _look(one: Probe, text: str, start: int, may_be_negated: bool) -> bool | None:
    """Whether any occurrence stands between boundaries, is no part of a number and is not negated."""
    needle, end_of_text = one.needle, len(text)
    doubt = False
    while start >= 0:
        end = start + len(needle)
        if start == 0 or not text[start - 1].isalnum() or _starts(one.first, text[start - 1]):
            right = True if end == end_of_text or not text[end].isalnum() else _ends(one, text[end])
            if right and (one.opens_number or one.ends_number) and _may_cut(one, text, start, end):
                right = None
            if right and may_be_negated and not one.is_negative and _negator_near(text, start, end):
                right = None
            if right:
                return True
            doubt = doubt or right is None
        start = text.find(needle, start + 1)
    if doubt or not one.is_final:
        return None
    return None if one.is_spaced and _has_odd_spaces(text) else False  # another place could be spaced otherwise


def _starts(first: int, before: str) -> bool:
    """Whether a token of this kind may start behind the character."""
    if first == HANGUL:
        return not ("가" <= before <= "힣" or "ㄱ" <= before <= "ㅣ")
    if first == LETTER_OR_DIGIT:
        return not before.isalnum() or "가" <= before <= "힣" or "ㄱ" <= before <= "ㅣ"
    return True


def _ends(one: Probe, behind: str) -> bool | None:
    """Whether the keyword may end before the character; ``None`` where the Hangul there has to be read."""
    if not one.last:
        return True
    if "가" <= behind <= "힣" or "ㄱ" <= behind <= "ㅣ":
        return True if one.may_go_on else None
    return one.last == HANGUL


def _may_cut(one: Probe, text: str, start: int, end: int) -> bool:
    """Whether an edge could lie inside a number or article."""
    if not _NUMERIC.search(text, max(start - 1, 0), end + 1):
        return False
    return (one.opens_number and _cuts_before(text, start)) or (one.ends_number and _cuts_behind(text, end))


def _cuts_before(text: str, start: int) -> bool:
    """Whether the first edge could lie inside a number or article: what stands before it could be part of one."""
    place = start - 1
    while place >= 0 and text[place] in SPACES:
        place -= 1
        if start - place > _BESIDE:
            return True  # further away than one looks here
    before = text[place] if place >= 0 else ""
    return before in _BEFORE_NUMBERS or (before in "제의" and before != "" and text[start].isdigit())


def _cuts_behind(text: str, end: int) -> bool:
    """Whether the last edge could lie inside a number or article."""
    place, length = end, len(text)
    while place < length and text[place] in SPACES:
        place += 1
        if place - end > _BESIDE:
            return True
    if place == length:
        return False
    behind = text[place]
    if behind in ".,":
        return text[place + 1 : place + 2].isdigit()
    if behind in OF_NUMBERS or (text[end - 1] == "조" and behind == "의"):
        return True
    return text[end - 1].isdigit() and behind in _BEHIND_DIGITS


def _negator_near(text: str, start: int, end: int) -> bool:
    """Whether a negating word stands in the sentence, taken too long rather than too short."""
    first = text.rfind(". ", 0, start) + 1
    last = text.find(". ", end)
    window = text[first : last if last >= 0 else len(text)]
    return holds_negation(f" {' '.join(window.split())} ")


def _may_be_there(one: Probe, text: str) -> bool:
    """Whether a tier other than spacing could find a keyword that does not stand in the text as it is written."""
    if one.has_value and _NUMERIC.search(text):
        return True
    if one.stem_words is None:
        return False
    for word in one.stem_words:  # noqa: SIM110 -- a generator costs more than the searches
        if word not in text:
            return False
    return True


def _has_odd_spaces(text: str) -> bool:
    """Whether any white space of the text is not one space."""
    if "\n" in text or "\t" in text or "\r" in text or "  " in text or "\v" in text or "\f" in text:
        return True
    return "\x1c" in text or "\x1d" in text or "\x1e" in text or "\x1f" in text
