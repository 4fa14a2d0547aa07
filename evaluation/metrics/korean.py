"""Korean morphemes by kiwipiepy where the extra ``ko`` is installed; without it every function says so by ``None``.

A sentence is analysed once and kept, because the analysis costs some milliseconds and all keywords of a question look
at the same answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

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
