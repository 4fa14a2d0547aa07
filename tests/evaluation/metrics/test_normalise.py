"""Normalisation for comparison, and mapping back to the original text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaluation.metrics.normalise import fold, fold_with_lines, folded


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        (unicodedata.normalize("NFD", "삼성전자"), "삼성전자"),
        ("ＫＯＤＥＸ　２００％", "kodex 200%"),
        ("㈜한국 5㎏ 84㎡", "(주)한국 5kg 84m2"),
        ("84m²", "84m2"),
        ("10²", "10²"),
        ("½", "½"),
        ("삼\u200b성\ufeff전자", "삼성전자"),
        ("2019–2020 — ‘a’ “b” 「c」", '2019-2020 - \'a\' "b" "c"'),
        ("가ㆍ나・다", "가·나·다"),
        ("  a\t\n b  ", "a b"),
        ("XXL „a‟", 'xxl "a"'),
        ("STRASSE Straße", "strasse strasse"),
    ],
)
def test_equivalent_texts_fold_to_equal_text(written: str, compared: str) -> None:
    assert folded(written) == compared


def test_half_width_jamo_stay_unchanged() -> None:
    # blanket NFKC would turn U+FFA1 into a leading consonant
    assert folded("ﾡ") == "ﾡ"


def test_span_of_folded_text_maps_back_to_the_original() -> None:
    original = unicodedata.normalize("NFD", "가  ㈜나") + "\u200b 다"
    view = fold(original)
    assert view.text == "가 (주)나 다"
    start = view.text.index("(주)나")
    original_start, end = view.span(start, start + len("(주)나"))
    assert unicodedata.normalize("NFC", original[original_start:end]).rstrip("\u200b") == "㈜나"
    last = view.text.index("다")
    assert unicodedata.normalize("NFC", original[slice(*view.span(last, last + 1))]) == "다"


def test_line_breaks_are_preserved_for_clause_splitting() -> None:
    original = "원금  \n 손실\n없음 A  B"
    assert fold(original).text == "원금 손실 없음 a b"
    assert fold_with_lines(original) == "원금\n손실\n없음 a b"


@given(st.text())
@example("\u1100\u1161\u11a8")
@example("a\u0301\u200b\u0302")
@example("\u200b")
def test_every_folded_character_maps_to_a_span_of_the_original(original: str) -> None:
    view = fold(original)
    spans = [view.span(i, i + 1) for i in range(len(view.text))]
    assert all(0 <= start < end <= len(original) for start, end in spans)
    assert spans == sorted(spans)


@given(st.text())
def test_folding_ignores_the_unicode_form(original: str) -> None:
    assert fold(unicodedata.normalize("NFD", original)).text == fold(unicodedata.normalize("NFC", original)).text


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_folding_is_idempotent(original: str) -> None:
    assert fold(fold(original).text).text == fold(original).text
