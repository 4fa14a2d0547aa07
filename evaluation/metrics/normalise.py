"""One normalisation of every compared text, with a map back to the original; where tokens and sentences start and end,
which words carry content; and Korean particles and morphemes.

NFC, a selective compatibility fold (full-width forms, spaces and unit signs; never blanket NFKC, which turns 10² into
102), zero-width characters dropped, dashes, quotes and middle dots unified, case folded, white space collapsed. The
original stays what people see: every offset found in the folded text leads back to it.

Particles and copula endings are a closed list. A particle must agree with the syllable before it: 은, 이, 을, 과 follow
a final consonant, 는, 가, 를, 와 a vowel, which keeps the list from eating the end of another noun. Morphemes come from
kiwipiepy where the extra ``ko`` is installed; without it every function says so by ``None``. A sentence is analysed
once and kept, because that costs some milliseconds and all keywords of a question look at the same answer.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import pairwise
from operator import itemgetter
from typing import Any

_AFTER_CONSONANT = (
    "은 이 을 과 으로 으로는 으로도 으로서 으로써 으로부터 이나 이란 이라 이라는 이라고 이랑 이든 이든지 아"
)
_AFTER_VOWEL = "는 가 를 와 로 로는 로도 로서 로써 로부터 나 란 라 라는 라고 랑 든지 여 야 며 였다 였습니다 예요"
_AFTER_ANY = (
    "의 에 에서 에서는 에서도 에서의 에게 에게서 에게는 께 께서 한테 에는 에도 에만 에의 에까지 도 만 까지 부터 마다 "
    "조차 마저 밖에 보다 처럼 같이 만큼 만큼은 대로 하고 뿐 뿐만 들 끼리 씩 쯤 입니다 입니까 이다 이며 이고 이자 "
    "이지만 이므로 이어서 이면 이라면 인 인데 인지 임 일 이었다 이었습니다 이었으며 이에요 이죠 이지요 이니 이니까 요"
)
_LONGEST_CHAIN = 3
_UNAMBIGUOUS = ("에서는", "으로는", "에서", "에게", "에는", "으로", "까지", "부터", "은", "는", "을", "를")
_FINAL_RIEUL = 8


def final_consonant(character: str) -> int | None:
    """The number of a Hangul syllable's final consonant, 0 for none; ``None`` where it is no Hangul syllable."""
    return (ord(character) - 0xAC00) % 28 if "가" <= character <= "힣" else None


def _agrees(particle: str, final: int | None) -> bool:
    if final is None:  # digits and Latin letters: how they are read aloud is not known
        return True
    if particle in _CONSONANT:
        return final != 0 and not (final == _FINAL_RIEUL and particle.startswith("으로"))
    if particle in _VOWEL:
        return final == 0 or (final == _FINAL_RIEUL and particle.startswith("로"))
    return True


_CONSONANT = frozenset(_AFTER_CONSONANT.split())
_VOWEL = frozenset(_AFTER_VOWEL.split())
_ALL = tuple(sorted({*_CONSONANT, *_VOWEL, *_AFTER_ANY.split()}, key=len, reverse=True))


@lru_cache(maxsize=4096)
def is_particle_chain(before: str, run: str, longest: int = _LONGEST_CHAIN) -> bool:
    """Whether the Hangul ``run`` behind the character ``before`` is nothing but one to three particles."""
    if not run or longest == 0:
        return not run
    final = final_consonant(before)
    return any(
        run.startswith(particle)
        and _agrees(particle, final)
        and is_particle_chain(particle[-1], run[len(particle) :], longest - 1)
        for particle in _ALL
    )


def without_particle(word: str) -> str:
    """The word without one particle that is hardly ever part of a noun, where two syllables or more remain.

    Ambiguous ones (이, 가, 과, 와, 도, 로, 만, 의, 에) stay: 만족도, 전문가 and 고양이 are nouns.
    """
    for particle in _UNAMBIGUOUS:
        stem = word.removesuffix(particle)
        if stem != word and len(stem) >= 2 and final_consonant(stem[-2]) is not None:
            final = final_consonant(stem[-1])
            return stem if final is not None and _agrees(particle, final) else word
    return word


kiwi_installed = find_spec("kiwipiepy") is not None  # the extra is optional; results say which analysis they used

KIWI, CLOSED_LIST = "kiwi", "closed_list"
_PLURAL = "들"


@dataclass(frozen=True, slots=True)
class Morpheme:
    """A morpheme with its tag of the Sejong set (NNG noun, JX particle, EF ending, ...) and its place in the text."""

    form: str
    tag: str
    start: int
    end: int

    @property
    def is_grammatical(self) -> bool:
        """Whether it is a particle, an ending, the copula or the plural suffix: what a noun drags behind it."""
        return self.tag[0] in "JE" or self.tag == "VCP" or (self.tag == "XSN" and self.form == _PLURAL)

    @property
    def is_noun(self) -> bool:
        """Whether it is written as its form says, which irregular verbs are not."""
        return self.tag[0] == "N" or self.tag in {"SL", "SN", "XR"}


@lru_cache(maxsize=1)
def _analyser() -> Any:
    from kiwipiepy import Kiwi  # costs 0.1 s at import and a second to load, so only when a text asks for it

    return Kiwi()


def analysis() -> str:
    """Which analysis this installation has: ``kiwi`` or ``closed_list``."""
    return KIWI if kiwi_installed else CLOSED_LIST


@lru_cache(maxsize=1024)
def _tokens(text: str) -> tuple[Morpheme, ...]:
    return tuple(Morpheme(t.form, str(t.tag), t.start, t.start + t.len) for t in _analyser().tokenize(text))


def morphemes(text: str) -> tuple[Morpheme, ...] | None:
    """The morphemes of a sentence in order; ``None`` where there is no analyser."""
    return _tokens(text) if kiwi_installed else None


@lru_cache(maxsize=1024)
def stems(text: str) -> tuple[Morpheme, ...]:
    """The morphemes that carry meaning: without particles, endings and punctuation.

    :raises RuntimeError: where there is no analyser; ask :func:`analysis` first.
    """
    found = morphemes(text)
    if found is None:
        raise RuntimeError("stems need the extra 'ko'")
    return tuple(m for m in found if not m.is_grammatical and (m.tag[0] != "S" or m.tag in {"SL", "SN", "SH"}))


def only_grammar_follows(sentence: str, place: int, run_end: int) -> bool | None:
    """Whether a morpheme ends at ``place`` and nothing but particles and endings stands between it and ``run_end``;
    ``None`` where there is no analyser."""
    found = morphemes(sentence)
    if found is None:
        return None
    behind = [m for m in found if place <= m.start < run_end]
    cut = any(m.start < place < m.end for m in found)
    return bool(behind) and not cut and all(m.is_grammatical for m in behind)


def starts_morpheme(sentence: str, place: int) -> bool:
    """Whether the analyser sees a morpheme start there; never without an analyser."""
    return any(m.start == place for m in morphemes(sentence) or ())


_ZERO_WIDTH = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_SPACES = re.compile(r"\s+")
_METRE_EXPONENT = re.compile(r"(?<=m)[²³]")
_EXPONENT_DIGITS = {"²": "2", "³": "3"}


def _fold_table() -> dict[int, str]:
    """One-character replacements; some replace one character by several."""
    table = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}  # full-width ASCII
    table |= {0xFFE0: "¢", 0xFFE1: "£", 0xFFE5: "¥", 0xFFE6: "₩"}
    squared = (*range(0x3371, 0x33E0), *range(0x3200, 0x321F), 0x2103, 0x2109)  # ㎏ ㎡ and the like, ㈜, ℃ ℉
    table |= {code: unicodedata.normalize("NFKC", chr(code)) for code in squared}
    table |= dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣"), "-")
    table |= dict.fromkeys(map(ord, "‘’‚‛′＇`´"), "'")
    table |= dict.fromkeys(map(ord, "“”„‟″«»「」『』＂"), '"')
    table |= dict.fromkeys(map(ord, "ㆍ・‧∙⋅･•"), "·")
    table[ord("〜")] = "~"
    return table


_FOLDS = _fold_table()


_Change = tuple[int, int, int, int]  # start and end in the new text, start and end in the old one


@dataclass(frozen=True, slots=True)
class Mapped:
    """A text made from another one by ordered changes; between them every character stands for itself."""

    text: str
    changes: tuple[_Change, ...] = ()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where ``text[start:end]`` (not empty) lies in the text this one was made from, end exclusive."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, place: int) -> tuple[int, int]:
        """The old span of one character: of the change it is part of, or its own."""
        index = bisect_right(self.changes, place, key=itemgetter(0)) - 1
        if index < 0:
            return place, place + 1
        _, new_end, old_start, old_end = self.changes[index]
        if place < new_end:
            return old_start, old_end
        moved = place - new_end + old_end
        return moved, moved + 1


def replaced(text: str, changes: Iterable[tuple[int, int, str]]) -> Mapped:
    """The text with ordered, not overlapping ``(start, end, new)`` spans replaced."""
    pieces: list[str] = []
    kept: list[_Change] = []
    old_place = new_place = 0
    for start, end, new in changes:
        pieces += text[old_place:start], new
        new_place += start - old_place
        kept.append((new_place, new_place + len(new), start, end))
        new_place += len(new)
        old_place = end
    pieces.append(text[old_place:])
    return Mapped("".join(pieces), tuple(kept))


@lru_cache(maxsize=256)
def fold(original: str) -> Mapped:
    """The text as it is compared, mapped to the original."""
    if unicodedata.is_normalized("NFC", original) and not _ZERO_WIDTH.search(original):
        # None of the three steps can shorten the text, so an unchanged length means unchanged places.
        widened = original.translate(_FOLDS).casefold()
        folded = _SPACES.sub(" ", widened)
        if len(folded) == len(widened) == len(original):
            return Mapped(_fold_exponents(folded))
    clusters = ((*span, _folded_cluster(original[slice(*span)])) for span in _clusters(original))
    composed = replaced(original, (c for c in clusters if original[c[0] : c[1]] != c[2]))
    collapsed = replaced(composed.text, ((*m.span(), " ") for m in _SPACES.finditer(composed.text)))
    places = range(len(collapsed.text))
    straight = tuple((i, i + 1, *composed.span(*collapsed.span(i, i + 1))) for i in places)  # back to the original
    return Mapped(_fold_exponents(collapsed.text), straight)


@lru_cache(maxsize=256)
def fold_with_lines(original: str) -> str:
    """The folded text, place by place, with a line feed for each white space that holds one: lists have no full stops
    and yet each line is a statement of its own."""
    whole = fold(original)
    if "\n" not in original:
        return whole.text
    characters = list(whole.text)
    for place, character in enumerate(characters):
        if character == " " and "\n" in original[slice(*whole.span(place, place + 1))]:
            characters[place] = "\n"
    return "".join(characters)


def folded(text: str) -> str:
    """The text as it is compared, without surrounding white space and without the map."""
    return fold(text).text.strip()


def _fold_exponents(text: str) -> str:
    """m² as m2, which is what ㎡ folds to; an exponent of a number stays (10² is not 102)."""
    if "²" not in text and "³" not in text:
        return text
    return _METRE_EXPONENT.sub(lambda match: _EXPONENT_DIGITS[match[0]], text)


def _folded_cluster(cluster: str) -> str:
    return unicodedata.normalize("NFC", _ZERO_WIDTH.sub("", cluster)).translate(_FOLDS).casefold()


def _clusters(text: str) -> Iterable[tuple[int, int]]:
    """Spans within which NFC may compose: a character and the marks or Hangul letters that join it."""
    return pairwise((*(place for place in range(len(text)) if not place or not _joins(text[place])), len(text)))


def _joins(character: str) -> bool:
    return (
        "\u1160" <= character <= "\u11ff"
        or "\ud7b0" <= character <= "\ud7ff"
        or unicodedata.category(character) in {"Mn", "Mc", "Me"}
        or _ZERO_WIDTH.match(character) is not None
    )


_HANGUL_RUN = re.compile(r"[가-힣]+")
_SENTENCE_END = re.compile(r"[!?。…;\n]+|\.(?=\s|$)|(?<=[가-힣])\.(?!\d)")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")  # kana and Han characters


def is_hangul(character: str) -> bool:
    """Whether it is a Hangul syllable or letter."""
    return "가" <= character <= "힣" or "ㄱ" <= character <= "ㅣ"


_HANGUL = re.compile("[가-힣ㄱ-ㅣ]")


def holds_hangul(text: str) -> bool:
    """Whether any character is a Hangul syllable or letter."""
    return not text.isascii() and _HANGUL.search(text) is not None


@lru_cache(maxsize=4096)
def _script(character: str) -> str:
    if is_hangul(character):
        return "hangul"
    if _UNSPACED.match(character) or not character.isalnum():
        return ""  # a boundary on either side: not a word character, or a script written without spaces
    return "other"


def is_boundary(text: str, place: int) -> bool:
    """Whether a token may start or end between ``text[place - 1]`` and ``text[place]``.

    True at both ends of the text, beside anything that is no word character, and where Hangul meets Latin letters or
    digits ("200은"); false inside a run of Hangul and inside a run of letters and digits ("200tr", "2012").
    """
    if place <= 0 or place >= len(text):
        return True
    before, after = _script(text[place - 1]), _script(text[place])
    return not before or before != after


def hangul_run(text: str, place: int) -> str:
    """The Hangul syllables that start at ``place``, empty if none does."""
    match = _HANGUL_RUN.match(text, place)
    return match[0] if match else ""


@lru_cache(maxsize=256)
def _sentence_starts(text: str) -> tuple[int, ...]:
    return (0, *(match.end() for match in _SENTENCE_END.finditer(text)))


def sentence_span(text: str, place: int) -> tuple[int, int]:
    """Start and end of the sentence around ``place``; the end is exclusive and behind the closing mark."""
    starts = _sentence_starts(text)
    index = bisect_right(starts, place)
    return starts[index - 1], starts[index] if index < len(starts) else len(text)


def sentences(text: str) -> tuple[tuple[int, int], ...]:
    """The spans of all sentences that hold more than white space."""
    starts = _sentence_starts(text)
    return tuple((s, e) for s, e in pairwise((*starts, len(text))) if text[s:e].strip())


_WORD = re.compile(r"[가-힣]+|[^\W_가-힣]+")
_FUNCTION_WORD_LIST = (
    "a an the of in on at to for from by with and or but is are was were be been being it its this that these "
    "those as into than then there their they he she his her him has have had do does did will would can "
    "could should may which who what when where why how also 그 이 저 것 수 등 및 또 때 또는 그리고 "
    "그러나 따라서 대한 대해 대하여 위한 통해 경우"
)
_PREDICATE_LIST = "not 있다 있는 있습니다 한다 하는 합니다 됩니다 된다 되는 없는 없습니다 없다"
FUNCTION_WORDS = frozenset(_FUNCTION_WORD_LIST.split())
_STOP_WORDS = FUNCTION_WORDS.union(_PREDICATE_LIST.split())


def content_tokens(text: str) -> tuple[str, ...]:
    """The folded words without function words; Hangul without particles, by the closed list."""
    words = (_stem(match[0]) for match in _WORD.finditer(folded(text)))
    return tuple(word for word in words if word not in _STOP_WORDS)


@lru_cache(maxsize=16_384)
def _stem(word: str) -> str:
    """The word without its chain of particles, where two syllables or more remain."""
    if not "가" <= word[0] <= "힣":
        return word
    for cut in range(2, len(word)):
        if is_particle_chain(word[cut - 1], word[cut:]):
            return word[:cut]
    return word
