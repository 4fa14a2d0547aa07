"""Hashes, language detection and batches of texts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judging.embedding.similarity import MAX_CHARACTERS, MAX_TEXTS, batches, is_korean, text_hash


def test_text_hash_ignores_unicode_decomposition() -> None:
    text = "원금은 보장되지 않습니다"
    assert text_hash(text) == text_hash(unicodedata.normalize("NFD", text)) != text_hash(text + ".")


@pytest.mark.parametrize(
    ("text", "korean"),
    [
        ("The fund tracks an index.", False),
        ("펀드는 지수를 추종합니다.", True),
        (unicodedata.normalize("NFD", "펀드"), True),
        ("KODEX 200 ETF는 KOSPI 200 index fund", False),  # 1 of 23 letters
        ("KODEX 200은 지수를 추종하는 ETF", True),  # 9 of 17 letters
        ("12,000 (+3%)", False),
        ("", False),
    ],
)
def test_text_is_korean_if_a_tenth_of_its_letters_are_hangul(text: str, korean: bool) -> None:
    assert is_korean(text) is korean


@given(st.lists(st.text(max_size=5), max_size=200))
def test_each_text_is_in_one_batch_of_at_most_64(texts: list[str]) -> None:
    text_batches = list(batches(texts))
    assert [text for batch in text_batches for text in batch] == list(dict.fromkeys(texts))
    assert all(0 < len(batch) <= MAX_TEXTS for batch in text_batches)


def test_batches_respect_the_character_limit() -> None:
    half = MAX_CHARACTERS // 2
    texts = ["a" * half, "b" * half, "c", "d" * (MAX_CHARACTERS + 1), "e"]
    assert [[text[0] for text in batch] for batch in batches(texts)] == [["a", "b"], ["c"], ["d"], ["e"]]
