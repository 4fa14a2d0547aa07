"""Checks of question texts: similarity of two questions, and questions that leak their answer or passage."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evaluation.core.samples import QuestionSpec
from evaluation.metrics.matching import find_keyword
from evaluation.metrics.normalise import folded

# Length of a verbatim copy from a passage, without white space.
MIN_COPIED_LENGTH = 40
# Share of common character trigrams of two questions.
SIMILARITY_THRESHOLD = 0.7
_NAMES_A_PASSAGE = re.compile(
    r"\b(this|the|these|above|following|given|first|second|third)\s+(passage|text|excerpt|document|paragraph|context)s?\b"
    r"|\b(passage|excerpt)\s*\d"
    r"|(이|위|본|해당|다음|주어진|첫 ?번째|두 ?번째)\s*(지문|본문|글|문서|단락|발췌|문단|구절)|지문에|발췌문",
    re.IGNORECASE,
)
_NOT_LETTERS = re.compile(r"\W+")


def find_leak(question: QuestionSpec, passages: Sequence[str]) -> str:
    """Return the words by which a question refers to its passage, contains its own answer, or copies the passage.

    Empty if it does none of these."""
    if match := _NAMES_A_PASSAGE.search(question.text):
        return match[0]
    if question.keywords and all(find_keyword(alternatives, question.text) for alternatives in question.keywords):
        return ", ".join(alternatives[0] for alternatives in question.keywords)
    question_letters = _letters_only(question.text)
    for passage in map(_letters_only, passages):
        for start in range(len(question_letters) - MIN_COPIED_LENGTH + 1):
            if (words := question_letters[start : start + MIN_COPIED_LENGTH]) in passage:
                return words
    return ""


def trigram_similarity(first: str, second: str) -> float:
    """Jaccard similarity of the trigrams of letters and digits of two texts, 0 to 1; 1 for two empty texts."""
    first_trigrams, second_trigrams = _trigrams(first), _trigrams(second)
    return (
        len(first_trigrams & second_trigrams) / len(first_trigrams | second_trigrams)
        if first_trigrams or second_trigrams
        else 1.0
    )


def _letters_only(text: str) -> str:
    return _NOT_LETTERS.sub("", folded(text))


def _trigrams(text: str) -> frozenset[str]:
    letters = _letters_only(text)
    return frozenset(letters[i : i + 3] for i in range(max(1, len(letters) - 2))) if letters else frozenset()
