"""Checks of a question's words: whether two are worded alike, and whether one gives itself away."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evaluation.core.samples import QuestionSpec
from evaluation.metrics.matching import find_keyword
from evaluation.metrics.normalise import folded

COPIED_CHARACTERS = 40  # that stand word for word in a passage, without white space
ALIKE = 0.7  # share of triples of characters that two questions have in common
_NAMES_A_PASSAGE = re.compile(
    r"\b(this|the|these|above|following|given|first|second|third)\s+(passage|text|excerpt|document|paragraph|context)s?\b"
    r"|\b(passage|excerpt)\s*\d"
    r"|(이|위|본|해당|다음|주어진|첫 ?번째|두 ?번째)\s*(지문|본문|글|문서|단락|발췌|문단|구절)|지문에|발췌문",
    re.IGNORECASE,
)
_NOT_LETTERS = re.compile(r"\W+")


def leaked(question: QuestionSpec, passages: Sequence[str]) -> str:
    """The words by which a question names its passage, holds all of its own answer, or repeats the passage; empty where
    it does none of these."""
    if named := _NAMES_A_PASSAGE.search(question.text):
        return named[0]
    if question.keywords and all(find_keyword(one, question.text) for one in question.keywords):
        return ", ".join(one[0] for one in question.keywords)
    asked = _bare(question.text)
    for passage in map(_bare, passages):
        for start in range(len(asked) - COPIED_CHARACTERS + 1):
            if (words := asked[start : start + COPIED_CHARACTERS]) in passage:
                return words
    return ""


def alike(one: str, other: str) -> float:
    """Share of the triples of letters and digits of two texts that both have (Jaccard), 0 to 1."""
    mine, others = _triples(one), _triples(other)
    return len(mine & others) / len(mine | others) if mine or others else 1.0


def _bare(text: str) -> str:
    return _NOT_LETTERS.sub("", folded(text))


def _triples(text: str) -> frozenset[str]:
    bare = _bare(text)
    return frozenset(bare[at : at + 3] for at in range(max(1, len(bare) - 2))) if bare else frozenset()
