"""Whether an answer passes on anything of the passages it was given, beyond what the question says itself."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from evaluation.metrics.boundaries import is_hangul
from evaluation.metrics.content_tokens import content_tokens
from evaluation.metrics.prepared import prepare

_LEAST_WEIGHT = 5.0  # syllables of the words that one sentence shares with one passage; a letter is half a syllable
_LEAST_DIGITS = 3  # of a bare number: 2 may be the number of a list
_GENERIC_LIST = (
    "학교 대학 대학교 기관 회사 홈페이지 담당 담당자 부서 관련 해당 규정 내용 사항 자세 자세한 문의 확인 참고 안내 "
    "방법 website homepage details information please contact check university institution department office page"
)
_GENERIC = frozenset(_GENERIC_LIST.split())


def passes_on(sentences: Sequence[str], question: str, passages: Sequence[str]) -> bool:
    """Whether any of the sentences holds a fact of a passage: a number or article, or content words that weigh at
    least five syllables together, none of them in the question already and none that fits every answer."""
    asked_values, asked_words = _values(question), frozenset(content_tokens(question)) | _GENERIC
    given = [(_values(sentence), frozenset(content_tokens(sentence))) for sentence in sentences]
    for passage in passages:
        values, words = _values(passage) - asked_values, frozenset(content_tokens(passage)) - asked_words
        if any(values & said or _weight(words & spoken) >= _LEAST_WEIGHT for said, spoken in given):
            return True
    return False


def _values(text: str) -> frozenset[str]:
    """The numbers and articles of a text that say something by themselves."""
    return frozenset(
        quantity.canonical
        for quantity in prepare(text).quantities
        if quantity.unit or quantity.is_counted or len(quantity.canonical) >= _LEAST_DIGITS
    )


def _weight(words: Collection[str]) -> float:
    return sum(len(word) if is_hangul(word[0]) else len(word) / 2 for word in words)
