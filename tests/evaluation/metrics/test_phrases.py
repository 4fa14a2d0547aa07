"""Phrases start at a token, accept any ending, and may have a gap within a clause."""

from __future__ import annotations

import pytest

from evaluation.metrics.phrases import find_phrase


@pytest.mark.parametrize(
    ("phrase", "answer", "found"),
    [
        ("없습니다", "정보가 없습니다", True),
        ("없습니다", "문제없습니다", False),
        ("없습니다", "문제는 없습니다", False),
        ("찾을 수 없", "찾을수없었습니다", True),
        ("보장하는…아닙", "보장하는 상품이 아닙니다", True),
        ("보장하는…아닙", "보장하는 상품이지만 예금이 아닙니다", False),
        ("보장하는…아닙", "보장하는 상품. 예금이 아닙니다", False),
        ("보장하는…아닙", "이것을 보장하는. 예금이 아닙니다", False),  # the clause ends with the first part
        ("not found", "was Not  Found.", True),
        ("no data", "no database", False),
        ("", "anything", False),
    ],
)
def test_phrase_matches_only_at_a_token_start_within_a_clause(phrase: str, answer: str, found: bool) -> None:
    assert (find_phrase(phrase, answer) is not None) == found
