from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judging.prompt import Span, locate_quote

TEXT = "휴학은 통산 3년까지 가능합니다(학칙 제21조). The fee is  “20 euros” per term.\n- Ask the office first."


@pytest.mark.parametrize(
    ("quote", "located"),
    [
        ("통산 3년까지 가능합니다", "통산 3년까지 가능합니다"),
        ('the FEE is "20 euros"', "The fee is  “20 euros”"),  # case, white space and quotation marks
        ("  Ask the office first. ", "Ask the office first."),
        ("Ask the office first…", "Ask the office first"),
    ],
)
def test_quote_is_located_despite_spelling_differences(quote: str, located: str) -> None:
    span = locate_quote(quote, TEXT)
    assert span is not None
    assert (TEXT[span.start : span.end], span.approximate) == (located, False)


def test_reworded_quote_is_located_approximately() -> None:
    span = locate_quote("You have to ask at the office first", TEXT)
    assert span is not None
    assert (TEXT[span.start : span.end], span.approximate) == ("- Ask the office first.", True)


@pytest.mark.parametrize("quote", ["", "   ", "The library opens at nine", "…"])
def test_absent_quote_has_no_span(quote: str) -> None:
    assert locate_quote(quote, TEXT) is None


@given(st.text(max_size=60), st.text(max_size=60))
def test_span_is_within_the_text(quote: str, text: str) -> None:
    span = locate_quote(quote, text)
    if span is not None:
        assert 0 <= span.start < span.end <= len(text)


@given(st.text(max_size=30), st.text(min_size=1, max_size=30).filter(lambda t: t.strip()), st.text(max_size=30))
def test_verbatim_quote_is_located_exactly(prefix: str, quote: str, suffix: str) -> None:
    text = prefix + quote + suffix
    span = locate_quote(quote, text)
    assert span is not None
    assert not span.approximate
    assert text[span.start : span.end] == quote.strip()


def test_spans_compare_by_position() -> None:
    assert Span(1, 2) == Span(1, 2, approximate=False)
