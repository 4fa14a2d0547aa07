from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judging.prompt import Span, locate_quote

TEXT = "휴학은 통산 3년까지 가능합니다(학칙 제21조). The fee is  “20 euros” per term.\n- Ask the office first."


@pytest.mark.parametrize(
    ("quote", "found"),
    [
        ("통산 3년까지 가능합니다", "통산 3년까지 가능합니다"),
        ('the FEE is "20 euros"', "The fee is  “20 euros”"),  # case, white space and quotation marks
        ("  Ask the office first. ", "Ask the office first."),
        ("Ask the office first…", "Ask the office first"),
    ],
)
def test_a_quote_is_found_where_it_stands_however_it_is_spelled(quote: str, found: str) -> None:
    span = locate_quote(quote, TEXT)
    assert span is not None
    assert (TEXT[span.start : span.end], span.approximate) == (found, False)


def test_a_reworded_quote_gives_the_most_alike_sentence_and_says_so() -> None:
    span = locate_quote("You have to ask at the office first", TEXT)
    assert span is not None
    assert (TEXT[span.start : span.end], span.approximate) == ("- Ask the office first.", True)


@pytest.mark.parametrize("quote", ["", "   ", "The library opens at nine", "…"])
def test_what_is_nowhere_has_no_place(quote: str) -> None:
    assert locate_quote(quote, TEXT) is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_place_lies_within_the_text(quote: str, text: str) -> None:
    span = locate_quote(quote, text)
    if span is not None:
        assert 0 <= span.start < span.end <= len(text)


@given(st.text(max_size=30), st.text(min_size=1, max_size=30).filter(lambda t: t.strip()), st.text(max_size=30))
def test_words_that_stand_in_the_text_are_found_exactly(before: str, quote: str, after: str) -> None:
    text = before + quote + after
    span = locate_quote(quote, text)
    assert span is not None
    assert not span.approximate
    assert text[span.start : span.end] == quote.strip()


def test_a_span_compares_by_its_places() -> None:
    assert Span(1, 2) == Span(1, 2, approximate=False)
