"""Korean morphology: particles and copula endings as a closed list, and morphemes by kiwipiepy where the extra ``ko``
is installed; without it every function says so by ``None``.

A particle must agree with the syllable before it: 은, 이, 을, 과 follow a final consonant, 는, 가, 를, 와 a vowel,
which keeps the list from eating the end of another noun. A sentence is analysed once and kept, because the analysis
costs some milliseconds and all keywords of a question look at the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
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


try:
    from kiwipiepy import Kiwi as Kiwi
except ImportError:  # the extra is optional, and results say which analysis they used
    Kiwi = None

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
    return Kiwi()  # a second to load, so only when a text asks for it


def analysis() -> str:
    """Which analysis this installation has: ``kiwi`` or ``closed_list``."""
    return CLOSED_LIST if Kiwi is None else KIWI


@lru_cache(maxsize=1024)
def _tokens(text: str) -> tuple[Morpheme, ...]:
    return tuple(Morpheme(t.form, str(t.tag), t.start, t.start + t.len) for t in _analyser().tokenize(text))


def analysed() -> int:
    """How many texts were given to the analyser so far, known ones included; for measuring how seldom it runs."""
    tokens, stemmed = _tokens.cache_info(), stems.cache_info()
    return tokens.hits + tokens.misses + stemmed.hits


def morphemes(text: str) -> tuple[Morpheme, ...] | None:
    """The morphemes of a sentence in order; ``None`` where there is no analyser."""
    return None if Kiwi is None else _tokens(text)


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
