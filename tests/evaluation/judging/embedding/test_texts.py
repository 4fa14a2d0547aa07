"""How texts are told apart, and how many go into one call."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judging.embedding.similarity import MAX_CHARACTERS, MAX_TEXTS, batches, is_korean, text_hash


def test_a_text_and_its_decomposed_form_are_one() -> None:
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
def test_korean_is_what_has_a_tenth_of_its_letters_in_hangul(text: str, korean: bool) -> None:
    assert is_korean(text) is korean


@given(st.lists(st.text(max_size=5), max_size=200))
def test_every_text_goes_out_once_in_batches_of_at_most_64(texts: list[str]) -> None:
    made = list(batches(texts))
    assert [text for batch in made for text in batch] == list(dict.fromkeys(texts))
    assert all(0 < len(batch) <= MAX_TEXTS for batch in made)


def test_long_texts_share_a_call_only_within_its_characters() -> None:
    half = MAX_CHARACTERS // 2
    texts = ["a" * half, "b" * half, "c", "d" * (MAX_CHARACTERS + 1), "e"]
    assert [[text[0] for text in batch] for batch in batches(texts)] == [["a", "b"], ["c"], ["d"], ["e"]]
