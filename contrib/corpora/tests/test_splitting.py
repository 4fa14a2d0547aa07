"""Splitting: chunks are spans of the text that end after sentences."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contrib.corpora.documents import tidy
from contrib.corpora.splitting import Splitting, split, split_sentences
from tests.hostile_runs import RUNS, assert_linear


def _sentences(text: str) -> list[str]:
    return [text[s.start : s.end] for s in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Kim paid 3.5 won, e.g. in cash. Then he left.", ["Dr. Kim paid 3.5 won, e.g. in cash.", "Then he left."]),
        ('"Is it?" he said. J. R. Smith came.', ['"Is it?"', "he said.", "J. R. Smith came."]),
        (
            "휴가는 15일이다. 신청은 3.1일부터 한다.그러나 예외가 있다!",
            ["휴가는 15일이다.", "신청은 3.1일부터 한다.", "그러나 예외가 있다!"],
        ),
        ("그는 “간다.”라고 말했다. 끝.", ["그는 “간다.”", "라고 말했다.", "끝."]),
        ("a line\nthat goes on\n\nA paragraph", ["a line\nthat goes on", "A paragraph"]),
        ("# Title\nText of it.", ["# Title", "Text of it."]),
        ("Items:\n- one\n- two", ["Items:", "- one", "- two"]),
        ("제1조. 목적은 이렇다.", ["제1조.", "목적은 이렇다."]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentence_boundaries(text: str, expected: list[str]) -> None:
    assert _sentences(text) == expected


def test_a_chunk_takes_sentences_while_they_fit() -> None:
    text = " ".join(f"Sentence number {n} says it." for n in range(10))  # 27 characters each, 28 with the space
    spans = split(text, Splitting(characters=100))
    assert [text[a:b].count("says") for a, b in spans] == [3, 3, 3, 1]  # 3 * 27 + 2 = 83 fits, 111 does not
    assert [text[a:b].count("says") for a, b in split(text, Splitting(characters=100, overlap=1))] == [3, 3, 3, 3, 2]


def test_chunk_past_half_its_length_ends_at_a_paragraph() -> None:
    text = "A" * 60 + ".\n\nShort one. Another."
    assert [text[a:b] for a, b in split(text, Splitting(characters=100))] == ["A" * 60 + ".", "Short one. Another."]
    text = "A" * 40 + ".\n\nShort one. Another."
    assert split(text, Splitting(characters=100)) == ((0, len(text)),)


@given(st.text(st.sampled_from("ab. !?\n가다나0#-“”\"'"), max_size=600), st.integers(100, 300), st.integers(0, 5))
def test_chunks_cover_all_visible_characters_within_the_limit(text: str, characters: int, overlap: int) -> None:
    spans = split(text, Splitting(characters=characters, overlap=overlap))
    covered = {position for start, end in spans for position in range(start, end)}
    assert all(position in covered for position, character in enumerate(text) if not character.isspace())
    assert all(0 < end - start <= characters for start, end in spans)
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)
    assert all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(spans))
    if not overlap:
        assert all(a[1] <= b[0] for a, b in pairwise(spans))


@pytest.mark.slow
@pytest.mark.parametrize("run", RUNS)
def test_time_of_splitting_grows_with_the_length_of_the_text(run: str) -> None:
    assert_linear(lambda text: list(split_sentences(tidy(text))), RUNS[run])
