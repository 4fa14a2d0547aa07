"""One normalisation of both sides, and the way back to the original."""

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
def test_texts_that_mean_the_same_fold_to_the_same(written: str, compared: str) -> None:
    assert folded(written) == compared


def test_half_width_jamo_are_left_alone() -> None:
    # blanket NFKC would turn U+FFA1 into a leading consonant
    assert folded("ﾡ") == "ﾡ"


def test_a_span_of_the_folded_text_leads_back_to_the_original() -> None:
    original = unicodedata.normalize("NFD", "가  ㈜나") + "\u200b 다"
    view = fold(original)
    assert view.text == "가 (주)나 다"
    start = view.text.index("(주)나")
    begin, end = view.span(start, start + len("(주)나"))
    assert unicodedata.normalize("NFC", original[begin:end]).rstrip("\u200b") == "㈜나"
    last = view.text.index("다")
    assert unicodedata.normalize("NFC", original[slice(*view.span(last, last + 1))]) == "다"


def test_line_breaks_are_kept_place_by_place_for_the_clauses() -> None:
    original = "원금  \n 손실\n없음 A  B"
    assert fold(original).text == "원금 손실 없음 a b"
    assert fold_with_lines(original) == "원금\n손실\n없음 a b"


@given(st.text())
@example("\u1100\u1161\u11a8")
@example("a\u0301\u200b\u0302")
@example("\u200b")
def test_every_folded_character_comes_from_a_span_inside_the_original(original: str) -> None:
    view = fold(original)
    spans = [view.span(i, i + 1) for i in range(len(view.text))]
    assert all(0 <= start < end <= len(original) for start, end in spans)
    assert spans == sorted(spans)


@given(st.text())
def test_folding_ignores_the_unicode_form_of_the_input(original: str) -> None:
    assert fold(unicodedata.normalize("NFD", original)).text == fold(unicodedata.normalize("NFC", original)).text


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_folding_twice_changes_nothing_more(original: str) -> None:
    assert fold(fold(original).text).text == fold(original).text
