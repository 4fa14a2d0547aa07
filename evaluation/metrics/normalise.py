"""Text normalization for comparison, with offsets into the original; token and sentence boundaries; content words;
Korean particles and morphemes.

Folding: NFC, a selective compatibility fold (full-width forms, spaces, unit signs; not NFKC, which turns 10² into 102),
zero-width characters dropped, dashes, quotes and middle dots unified, case folded, white space collapsed. Every offset
in the folded text maps back to the original, which is what people see.

Particles and copula endings are a closed list. A particle must agree with the syllable before it: 은, 이, 을, 과 follow
a final consonant, 는, 가, 를, 와 a vowel; this keeps the list from cutting off the end of another noun. Morphemes come
from kiwipiepy if the extra ``ko`` is installed; without it the functions return ``None``. Analyses are cached, because
one takes milliseconds and all keywords of a question search the same answer."""

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
_MAX_CHAIN = 3
_UNAMBIGUOUS = ("에서는", "으로는", "에서", "에게", "에는", "으로", "까지", "부터", "은", "는", "을", "를")
_FINAL_RIEUL = 8


def final_consonant(character: str) -> int | None:
    """Number of a Hangul syllable's final consonant, 0 for none; ``None`` for other characters."""
    return (ord(character) - 0xAC00) % 28 if "가" <= character <= "힣" else None


def _agrees(particle: str, final: int | None) -> bool:
    # The pronunciation of digits and Latin letters is unknown.
    if final is None:
        return True
    if particle in _CONSONANT:
        return final != 0 and not (final == _FINAL_RIEUL and particle.startswith("으로"))
    if particle in _VOWEL:
        return final == 0 or (final == _FINAL_RIEUL and particle.startswith("로"))
    return True


_CONSONANT = frozenset(_AFTER_CONSONANT.split())
_VOWEL = frozenset(_AFTER_VOWEL.split())
_PARTICLES = tuple(sorted({*_CONSONANT, *_VOWEL, *_AFTER_ANY.split()}, key=len, reverse=True))


@lru_cache(maxsize=4096)
def is_particle_chain(before: str, run: str, max_particles: int = _MAX_CHAIN) -> bool:
    """Return whether the Hangul ``run`` after the character ``before`` consists of one to three particles."""
    if not run or max_particles == 0:
        return not run
    final = final_consonant(before)
    return any(
        run.startswith(particle)
        and _agrees(particle, final)
        and is_particle_chain(particle[-1], run[len(particle) :], max_particles - 1)
        for particle in _PARTICLES
    )


def without_particle(word: str) -> str:
    """Word without one particle that is rarely part of a noun, if at least two syllables remain.

    Ambiguous particles (이, 가, 과, 와, 도, 로, 만, 의, 에) stay: 만족도, 전문가 and 고양이 are nouns."""
    for particle in _UNAMBIGUOUS:
        stem = word.removesuffix(particle)
        if stem != word and len(stem) >= 2 and final_consonant(stem[-2]) is not None:
            final = final_consonant(stem[-1])
            return stem if final is not None and _agrees(particle, final) else word
    return word


# The extra is optional; results record the analysis used.
kiwi_installed = find_spec("kiwipiepy") is not None

KIWI, CLOSED_LIST = "kiwi", "closed_list"
_PLURAL = "들"


@dataclass(frozen=True, slots=True)
class Morpheme:
    """Morpheme with its Sejong tag (NNG noun, JX particle, EF ending, ...) and span."""

    form: str
    tag: str
    start: int
    end: int

    @property
    def is_grammatical(self) -> bool:
        """Return whether it is a particle, an ending, the copula or the plural suffix."""
        return self.tag[0] in "JE" or self.tag == "VCP" or (self.tag == "XSN" and self.form == _PLURAL)

    @property
    def is_noun(self) -> bool:
        """Return whether its form equals its spelling, which is not so for irregular verbs."""
        return self.tag[0] == "N" or self.tag in {"SL", "SN", "XR"}


@lru_cache(maxsize=1)
def _analyser() -> Any:
    # Importing takes 0.1 s and loading a second, so both wait until needed.
    from kiwipiepy import Kiwi

    return Kiwi()


def analysis() -> str:
    """Korean analysis of this installation: ``kiwi`` or ``closed_list``."""
    return KIWI if kiwi_installed else CLOSED_LIST


@lru_cache(maxsize=1024)
def _tokens(text: str) -> tuple[Morpheme, ...]:
    return tuple(Morpheme(t.form, str(t.tag), t.start, t.start + t.len) for t in _analyser().tokenize(text))


def morphemes(text: str) -> tuple[Morpheme, ...] | None:
    """Morphemes of a sentence in order; ``None`` without an analyzer."""
    return _tokens(text) if kiwi_installed else None


@lru_cache(maxsize=1024)
def stems(text: str) -> tuple[Morpheme, ...]:
    """Morphemes that carry meaning: without particles, endings and punctuation.

    :raises RuntimeError: without an analyzer; check :func:`analysis` first."""
    all_morphemes = morphemes(text)
    if all_morphemes is None:
        raise RuntimeError("stems need the extra 'ko'")
    return tuple(m for m in all_morphemes if not m.is_grammatical and (m.tag[0] != "S" or m.tag in {"SL", "SN", "SH"}))


def only_grammar_follows(sentence: str, place: int, run_end: int) -> bool | None:
    """Return whether a morpheme ends at ``place`` and only particles and endings follow up to ``run_end``; ``None``
    without an analyzer."""
    all_morphemes = morphemes(sentence)
    if all_morphemes is None:
        return None
    following = [m for m in all_morphemes if place <= m.start < run_end]
    is_cut = any(m.start < place < m.end for m in all_morphemes)
    return bool(following) and not is_cut and all(m.is_grammatical for m in following)


def starts_morpheme(sentence: str, place: int) -> bool:
    """Return whether a morpheme starts at ``place``; false without an analyzer."""
    return any(m.start == place for m in morphemes(sentence) or ())


_ZERO_WIDTH = re.compile("[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]")
_SPACES = re.compile(r"\s+")
_METRE_EXPONENT = re.compile(r"(?<=m)[²³]")
_EXPONENT_DIGITS = {"²": "2", "³": "3"}


def _fold_table() -> dict[int, str]:
    """Replacements of single characters, some by several."""
    # Full-width ASCII.
    table = {code: chr(code - 0xFEE0) for code in range(0xFF01, 0xFF5F)}
    table |= {0xFFE0: "¢", 0xFFE1: "£", 0xFFE5: "¥", 0xFFE6: "₩"}
    # ㎏, ㎡ and similar, ㈜, ℃, ℉.
    squared = (*range(0x3371, 0x33E0), *range(0x3200, 0x321F), 0x2103, 0x2109)
    table |= {code: unicodedata.normalize("NFKC", chr(code)) for code in squared}
    table |= dict.fromkeys(map(ord, "‐‑‒–—―−﹘﹣"), "-")
    table |= dict.fromkeys(map(ord, "‘’‚‛′＇`´"), "'")
    table |= dict.fromkeys(map(ord, "“”„‟″«»「」『』＂"), '"')
    table |= dict.fromkeys(map(ord, "ㆍ・‧∙⋅･•"), "·")
    table[ord("〜")] = "~"
    return table


_FOLDS = _fold_table()


# Start and end in the new text, start and end in the old one.
_Change = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class MappedText:
    """Text made from another one by ordered changes. Characters between changes are unchanged."""

    text: str
    changes: tuple[_Change, ...] = ()

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Span of ``text[start:end]`` (not empty) in the original text, end exclusive."""
        return self._original_span(start)[0], self._original_span(end - 1)[1]

    def _original_span(self, position: int) -> tuple[int, int]:
        """Original span of one character, or of the change it belongs to."""
        index = bisect_right(self.changes, position, key=itemgetter(0)) - 1
        if index < 0:
            return position, position + 1
        _, new_end, old_start, old_end = self.changes[index]
        if position < new_end:
            return old_start, old_end
        shifted = position - new_end + old_end
        return shifted, shifted + 1


def replace_spans(text: str, changes: Iterable[tuple[int, int, str]]) -> MappedText:
    """Replace ordered, non-overlapping ``(start, end, new)`` spans."""
    pieces: list[str] = []
    new_changes: list[_Change] = []
    old_position = new_position = 0
    for start, end, new in changes:
        pieces += text[old_position:start], new
        new_position += start - old_position
        new_changes.append((new_position, new_position + len(new), start, end))
        new_position += len(new)
        old_position = end
    pieces.append(text[old_position:])
    return MappedText("".join(pieces), tuple(new_changes))


@lru_cache(maxsize=256)
def fold(original: str) -> MappedText:
    """Folded text, mapped to the original."""
    if unicodedata.is_normalized("NFC", original) and not _ZERO_WIDTH.search(original):
        # None of the three steps can shorten the text, so an equal length means equal offsets.
        widened = original.translate(_FOLDS).casefold()
        folded = _SPACES.sub(" ", widened)
        if len(folded) == len(widened) == len(original):
            return MappedText(_fold_exponents(folded))
    clusters = ((*span, _folded_cluster(original[slice(*span)])) for span in _clusters(original))
    composed = replace_spans(original, (c for c in clusters if original[c[0] : c[1]] != c[2]))
    collapsed = replace_spans(composed.text, ((*m.span(), " ") for m in _SPACES.finditer(composed.text)))
    places = range(len(collapsed.text))
    # Map both steps back to the original.
    changes = tuple((i, i + 1, *composed.span(*collapsed.span(i, i + 1))) for i in places)
    return MappedText(_fold_exponents(collapsed.text), changes)


@lru_cache(maxsize=256)
def fold_with_lines(original: str) -> str:
    """Folded text with a line feed for white space that contains one, at equal offsets: list items are statements of
    their own without a full stop."""
    mapped = fold(original)
    if "\n" not in original:
        return mapped.text
    characters = list(mapped.text)
    for place, character in enumerate(characters):
        if character == " " and "\n" in original[slice(*mapped.span(place, place + 1))]:
            characters[place] = "\n"
    return "".join(characters)


def folded(text: str) -> str:
    """Folded text without surrounding white space."""
    return fold(text).text.strip()


def _fold_exponents(text: str) -> str:
    """Fold m² to m2, as ㎡ does. An exponent of a number stays (10² is not 102)."""
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


# Longer runs are no particles or counters, and longer sentences are cut, so that the time to read a text does not grow
# with the square of its length.
MAX_RUN, MAX_SENTENCE = 100, 1_000
_HANGUL_RUN = re.compile(rf"[가-힣]{{1,{MAX_RUN}}}")
_SENTENCE_END = re.compile(r"[!?。…;\n]+|\.(?=\s|$)|(?<=[가-힣])\.(?!\d)")
# Kana and Han characters.
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")


def is_hangul(character: str) -> bool:
    """Return whether the character is a Hangul syllable or letter."""
    return "가" <= character <= "힣" or "ㄱ" <= character <= "ㅣ"


_HANGUL = re.compile("[가-힣ㄱ-ㅣ]")


def holds_hangul(text: str) -> bool:
    """Return whether the text contains a Hangul syllable or letter."""
    return not text.isascii() and _HANGUL.search(text) is not None


@lru_cache(maxsize=4096)
def _script(character: str) -> str:
    if is_hangul(character):
        return "hangul"
    if _UNSPACED.match(character) or not character.isalnum():
        # A boundary on either side: not a word character, or a script without spaces.
        return ""
    return "other"


def is_boundary(text: str, place: int) -> bool:
    """Return whether a token may start or end between ``text[place - 1]`` and ``text[place]``.

    True at both ends of the text, beside any non-word character, and where Hangul meets Latin letters or digits
    ("200은"); false inside a run of Hangul and inside a run of letters and digits ("200tr", "2012")."""
    if place <= 0 or place >= len(text):
        return True
    before, after = _script(text[place - 1]), _script(text[place])
    return not before or before != after


def hangul_run(text: str, place: int) -> str:
    """Hangul syllables that start at ``place``, at most ``MAX_RUN``; empty if none do."""
    match = _HANGUL_RUN.match(text, place)
    return match[0] if match else ""


@lru_cache(maxsize=256)
def _sentence_starts(text: str) -> tuple[int, ...]:
    starts = [0]
    for end in (*(match.end() for match in _SENTENCE_END.finditer(text)), len(text)):
        while end - starts[-1] > MAX_SENTENCE:
            limit = starts[-1] + MAX_SENTENCE
            space = text.rfind(" ", starts[-1], limit)
            starts.append(limit if space < 0 else space + 1)
        starts.append(end)
    return tuple(starts[:-1])


def sentence_span(text: str, place: int) -> tuple[int, int]:
    """Start and end of the sentence around ``place``; the end is exclusive and after the closing mark."""
    starts = _sentence_starts(text)
    index = bisect_right(starts, place)
    return starts[index - 1], starts[index] if index < len(starts) else len(text)


def covered_places(spans: Iterable[tuple[int, int]]) -> frozenset[int]:
    """Positions within the spans. Looking one up takes no longer if there are many spans."""
    return frozenset(place for span in spans for place in range(*span))


def sentences(text: str) -> tuple[tuple[int, int], ...]:
    """Spans of all sentences that are not blank."""
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
    """Folded words without function words; Hangul without particles, by the closed list."""
    words = (_stem(match[0]) for match in _WORD.finditer(folded(text)))
    return tuple(word for word in words if word not in _STOP_WORDS)


@lru_cache(maxsize=16_384)
def _stem(word: str) -> str:
    """Word without its chain of particles, if at least two syllables remain."""
    if not "가" <= word[0] <= "힣":
        return word
    for cut in range(max(2, len(word) - _MAX_CHAIN * len(_PARTICLES[0])), len(word)):
        if is_particle_chain(word[cut - 1], word[cut:]):
            return word[:cut]
    return word
