"""Numbers are compared by value, and articles by name."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.metrics.citations import article_references
from evaluation.metrics.prepared_text import prepare, quantities, starts_with_counter, value_of


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("1,000억", "100000000000"),
        ("천억", "100000000000"),
        ("1천억", "100000000000"),
        ("1천5백만", "15000000"),
        ("3억5천만", "350000000"),
        ("2조 3,400억", "2340000000000"),
        ("1.5억", "150000000"),
        ("삼천만", "30000000"),
        ("이십", "20"),
        ("12,345.60", "12345.60"),
    ],
)
def test_korean_and_grouped_numbers_have_their_value(written: str, value: str) -> None:
    assert value_of(written) == Decimal(value)


def test_a_text_without_digits_is_no_number() -> None:
    with pytest.raises(ValueError, match="not a number"):
        value_of("원")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("규모는 천억 원이다", [("100000000000", "원")]),
        ("50bp 인하", [("0.5", "%")]),
        ("0.5퍼센트", [("0.5", "%")]),
        ("-3.5% 하락", [("-3.5", "%")]),
        ("10-20명", [("10", ""), ("20", "")]),
        ("5만 명", [("50000", "")]),
        ("케이크 2조각", [("2", "")]),
        ("3만 5,000원", [("35000", "원")]),
        ("1.5 million users", [("1500000", "")]),
        ("2 trillion", [("2000000000000", "")]),
        ("3 billion", [("3000000000", "")]),
        ("4 thousand", [("4000", "")]),
        ("5,000 won and 6 KRW".lower(), [("5000", "원"), ("6", "원")]),
        ("천만", [("10000000", "")]),
        ("경제 구조와 이만 총총", []),
        ("2024.05.12", []),
        ("경제 15조 원", [("15000000000000", "원")]),
        ("제15조의2와 제 3 조 제2항", [("제15조의2", ""), ("제3조", ""), ("제2항", "")]),
    ],
)
def test_quantities_are_extracted_from_text(text: str, found: list[tuple[str, str]]) -> None:
    assert [(q.canonical, q.unit) for q in quantities(text) if not q.is_code] == found


@pytest.mark.parametrize("text", ["005930", "kodex 200tr", "s&p500"])
def test_codes_and_glued_digits_are_not_values(text: str) -> None:
    assert all(q.is_code for q in quantities(text))


@pytest.mark.parametrize("text", ["경제 조건", "규정상 문제가 조금 있다", "제2조건", "제3항목", "경제15조건"])
def test_an_article_needs_its_number_and_its_kind(text: str) -> None:
    assert article_references(text) == ()


def test_conditions_of_an_article_are_not_its_second_branch() -> None:
    assert [a.name for a in article_references("제15조의 2가지 요건, 제15조의2가지 요건")] == ["제15조", "제15조"]


@given(st.integers(min_value=0, max_value=10**15))
def test_grouping_does_not_change_a_number(number: int) -> None:
    assert value_of(f"{number:,}") == value_of(str(number)) == number


@given(st.text(alphabet="0123456789,.제조의항만억천십일이원%- 개kgm", max_size=40))
def test_quantities_are_ordered_and_never_overlap(text: str) -> None:
    found_quantities = quantities(text)
    assert all(0 <= q.start < q.end <= q.unit_end <= len(text) for q in found_quantities)
    assert all(a.end <= b.start for a, b in pairwise(found_quantities))


def test_counter_may_follow_the_suffix_for_about() -> None:
    assert [(quantity.canonical, quantity.is_counted) for quantity in quantities("10여명과 3명")] == [
        ("10", True),
        ("3", True),
    ]


def test_number_with_a_leading_zero_is_a_code() -> None:
    assert [(quantity.canonical, quantity.is_code) for quantity in quantities("07 and 7")] == [
        ("07", True),
        ("7", False),
    ]


@pytest.mark.parametrize(
    ("run", "counts"),
    [
        *[
            (text, True)
            for text in ("명", "개월간", "원으로", "여", "여명", "명대는", "번째", "원짜리", "명씩은", "명당")
        ],
        *[(text, True) for text in ("명여", "명쯤", "명가량", "일이내에")],
        *[(text, False) for text in ("인버스", "선물", "여름", "명랑", "")],
    ],
)
def test_counting_suffixes_are_distinguished_from_other_words(run: str, counts: bool) -> None:
    assert starts_with_counter(run) == counts


def test_only_an_edge_inside_a_number_splits_it() -> None:
    text = prepare("약 200명이 1억 200만원을")
    number = text.folded.text.index("200명")
    assert not text.is_cut(number, number + 3)
    assert not text.is_cut(0, number)  # up to where it begins
    assert text.is_cut(number + 1, number + 3)
    assert text.is_cut(number, number + 2)
