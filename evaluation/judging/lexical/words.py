"""Content words of Korean and English text for counting overlap. A heuristic of the offline baseline, not a
metric: keywords are matched by ``metrics/``.

In which language the offline baseline gives its reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluation.judging.calls import JudgeCall
from evaluation.metrics.normalise import folded

_ALPHANUMERIC = r"[^\W_가-힣]"  # a Latin letter or a digit: 200TR is one run, not a number
_RUN = re.compile(rf"(?<!{_ALPHANUMERIC})\d+(?:[.,]\d+)*(?!{_ALPHANUMERIC})|[가-힣]+|{_ALPHANUMERIC}+")
_SENTENCE_END = re.compile(r"(?<=[.!?。])\s+|(?<=다\.)|[\n;]+")
_SOURCE_MARK = re.compile(r"\[[^\]\n]{0,200}\]|\(출처[^)\n]{0,200}\)")
_HALF_FOUND = 0.5

_ENDING_LIST = (
    "입니다 합니다 됩니다 습니다 했습니다 되었습니다 하였습니다 이다 한다 된다 하는 되는 하여 "
    "하고 되고 하며 되며 하면 되면 하지 되지 하지만 되지만 할 될 이라고 이라는 이며 이고 이나 "
    "으로부터 에서는 에서도 에게서 까지는 부터는 에서 에게 으로 까지 부터 보다 처럼 만큼 마다 "
    "이란 에는 에도 로는 은 는 이 가 을 를 의 에 로 와 과 도 만 며"
)
_STOP_WORD_LIST = (
    "그 이 저 것 수 등 및 또 할 한 될 된 때 또는 그리고 그러나 따라서 대한 대해 대하여 위한 통해 경우 "
    "a an the of in on at to for from by with and or but is are was were be been being it its this that these those "
    "as into than then there their they he she his her him has have had do does did will would can could should may "
    "which who whom whose what when where why how also s"
)
# Longest first, so that 에서는 goes before 는.
_ENDINGS = tuple(sorted(_ENDING_LIST.split(), key=len, reverse=True))
_FUNCTION_VERBS = ("있", "없", "않", "아니", "아닙", "합니", "됩니", "입니", "해당")
_STOP_WORDS = frozenset(_STOP_WORD_LIST.split())


@dataclass(frozen=True, slots=True)
class Word:
    """A content word: how it stands in the text, and the pieces it is compared by (Hangul: pairs of syllables)."""

    surface: str
    pieces: frozenset[str]


def content_words(text: str) -> tuple[Word, ...]:
    """The distinct content words in order; numbers without grouping commas, Hangul without particles."""
    found: dict[str, Word] = {}
    for match in _RUN.finditer(compared := folded(text)):
        behind_a_digit = compared[match.start() - 1 : match.start()].isdigit()
        stem = _stem(match[0], shortest=1 if behind_a_digit else 2)
        if stem not in _STOP_WORDS and not stem.startswith(_FUNCTION_VERBS):
            found.setdefault(stem, Word(stem, _pieces(stem)))
    return tuple(found.values())


def numbers(words: Iterable[Word]) -> frozenset[str]:
    """The words that are numbers written in digits."""
    return frozenset(word.surface for word in words if word.surface[0].isdigit())


def coverage(wanted: Sequence[Word], given: Iterable[Word]) -> float:
    """Share of the wanted words that occur among the given ones, 0 to 1; a Hangul word counts by the share of its
    syllable pairs, from half of them on. Nothing wanted is covered wholly."""
    return sum(shares(wanted, given).values()) / len(wanted) if wanted else 1.0


def shares(wanted: Sequence[Word], given: Iterable[Word]) -> dict[str, float]:
    """How far each wanted word is found, 0 or from 0.5 to 1."""
    pieces = frozenset().union(*(word.pieces for word in given))
    found = {word.surface: len(word.pieces & pieces) / len(word.pieces) for word in wanted}
    return {surface: share if share >= _HALF_FOUND else 0.0 for surface, share in found.items()}


def sentences(text: str) -> tuple[str, ...]:
    """The text's sentences without source marks such as ``[Source: ...]``."""
    parts = _SENTENCE_END.split(_SOURCE_MARK.sub(" ", text))
    return tuple(part.strip() for part in parts if part and part.strip())


def _stem(run: str, *, shortest: int) -> str:
    if run[0].isdigit():
        return run.replace(",", "")
    if "가" <= run[0] <= "힣":
        return _without_ending(run, shortest)
    return run[:-1] if len(run) > 3 and run.endswith("s") and not run.endswith("ss") else run


def _without_ending(run: str, shortest: int) -> str:
    """The word without one ending, where ``shortest`` syllables remain (one behind a digit: 3년까지)."""
    for ending in _ENDINGS:
        if run.endswith(ending) and len(run) - len(ending) >= shortest:
            return run[: -len(ending)]
    return run


def _pieces(stem: str) -> frozenset[str]:
    if "가" <= stem[0] <= "힣" and len(stem) > 2:
        return frozenset(stem[i : i + 2] for i in range(len(stem) - 1))
    return frozenset({stem})


def reasons_in(call: JudgeCall) -> str:
    """The rubric's language, and Korean for a Korean question whatever the rubric is written in: whoever can judge the
    answer can read why it got its level."""
    asked_in_korean = any("가" <= letter <= "힣" for letter in call.question.text)
    return "ko" if asked_in_korean else call.rubric.language
