"""Keyword matching in tiers, with a case for each sentence of the definition."""

from __future__ import annotations

import unicodedata
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.errors import UnknownName
from evaluation.metrics.matching import KeywordHit, find_keyword

BOTH_ANALYSES = [
    ("Cornish heath", "It is the Cornish Heath.", "exact", "Cornish Heath"),
    ("삼성전자", "2위 삼성전자, 3위", "exact", "삼성전자"),
    ("삼성전자", unicodedata.normalize("NFD", "삼성전자"), "exact", unicodedata.normalize("NFD", "삼성전자")),
    ("삼성전자", "삼성 전자의 실적", "spacing", "삼성 전자"),
    ("안됩니다", "여기에 버리면 안 됩니다", "spacing", "안 됩니다"),
    ("원금 보장", "원금보장 상품", "spacing", "원금보장"),
    ("규정", "규정은 다음과 같다", "particle", "규정"),
    ("규정", "규정을 따른다", "particle", "규정"),
    ("규정", "규정에 따라", "particle", "규정"),
    ("규정을", "규정에 따라", "particle", "규정"),
    ("200", "지수 200은 올랐다", "particle", "200"),
    ("KODEX 200", "KODEX 200은 ETF입니다", "particle", "KODEX 200"),
    ("200", "학생 200명이", "exact", "200"),
    ("미래에셋", "미래에셋자산운용이 운용한다", "compound", "미래에셋"),
    ("분리", "분리수거함 옆", "compound", "분리"),
    ("ETF", "ETF상품", "compound", "ETF"),
    ("1,000억원", "규모는 천억 원이다", "number", "천억 원"),
    *(
        (keyword, f"수수료는 {spelling}입니다.", "number", spelling)
        for keyword, spelling in permutations(("1,000원", "천 원", "1천 원"), 2)
    ),
    ("천원", "수수료는 1000원입니다.", "number", "1000원"),
    ("1,000원", "수수료는 천원입니다.", "number", "천원"),
    ("백 명", "100명이 왔다", "number", "100명"),
    ("S&P500", "the S&P 500 index", "spacing", "S&P 500"),
    ("S&P 500", "S&P500 지수를 따릅니다", "spacing", "S&P500"),
    ("ISO27001", "ISO 27001 인증", "spacing", "ISO 27001"),
    ("ISO 27001", "ISO27001 인증", "spacing", "ISO27001"),
    ("1,000억원", "총 1천억 규모", "number", "1천억"),
    ("1,000억원", "100,000,000,000원", "number", "100,000,000,000원"),
    ("0.5%", "50bp 인하했다", "number", "50bp"),
    ("제15조", "제15조에 따라", "particle", "제15조"),
    ("제15조", "제 15 조에 따라", "number", "제 15 조"),
    ("제3조 제2항", "제3조제2항", "spacing", "제3조제2항"),
    ("84m2", "전용 84㎡ 아파트", "exact", "84㎡"),
]

MISSED_BY_BOTH = [
    ("KODEX 200", "KODEX 200TR"),
    ("KODEX 200", "KODEX 200선물인버스"),
    ("12", "2012년"),
    ("규정", "중규정 참조"),
    ("제15조", "제15조의2에 따라"),
    ("15", "제15조에 따라"),
    ("3", "3.5점"),
    ("3.5%", "-3.5%"),
    ("200", "200만원"),
    ("9조", "경제 구조가"),
    ("10²", "102"),
    ("이자", "이 자동차"),
    ("가", "가방"),
    ("press", "express"),
    ("GPT4", "GPT 40"),
    ("KODEX200", "KODEX 2000"),
    ("A1", "vitamin a 1 tablet"),
    ("1,000원", "천원형 이사"),
]


@pytest.mark.parametrize(("keyword", "answer", "tier", "span"), BOTH_ANALYSES)
def test_keyword_is_found_with_tier_and_position(keyword: str, answer: str, tier: str, span: str) -> None:
    assert _tier_and_span(keyword, answer) == (tier, span)


@pytest.mark.parametrize(("keyword", "answer", "tier", "span"), BOTH_ANALYSES)
def test_morpheme_analysis_finds_all_keywords(kiwi: None, keyword: str, answer: str, tier: str, span: str) -> None:
    assert _tier_and_span(keyword, answer) == (tier, span)


@pytest.mark.parametrize(("keyword", "answer"), MISSED_BY_BOTH)
def test_similar_text_is_not_the_keyword(keyword: str, answer: str) -> None:
    assert find_keyword((keyword,), answer) is None


@pytest.mark.parametrize(("keyword", "answer"), MISSED_BY_BOTH)
def test_morpheme_analysis_skips_similar_text(kiwi: None, keyword: str, answer: str) -> None:
    assert find_keyword((keyword,), answer) is None


def test_morpheme_analysis_ignores_verb_endings(kiwi: None) -> None:
    assert _tier_and_span("보장합니다", "원금을 보장하는 상품")[0] == "particle"


def test_morpheme_analysis_distinguishes_nouns_from_particles(kiwi: None) -> None:
    assert find_keyword(("주",), "주가가 오른다") is None


def test_hit_names_the_closed_list_analysis() -> None:
    assert _hit("규정", "규정은").analysis == "closed_list"


def test_hit_names_the_morpheme_analysis(kiwi: None) -> None:
    assert _hit("규정", "규정은").analysis == "kiwi"


def test_alternative_counts_as_the_keyword_and_is_reported() -> None:
    hit = find_keyword(("S&P500", "에스앤피500"), "에스앤피500을 따른다")
    assert hit is not None
    assert (hit.keyword, hit.wording, hit.tier, hit.wording_tier) == (
        "S&P500",
        "에스앤피500",
        "alternative",
        "particle",
    )


def test_substring_matching_is_plain_and_case_sensitive() -> None:
    assert _hit("12", "2012년", "substring").tier == "substring"
    assert find_keyword(("cornish",), "Cornish", "substring") is None


def test_unknown_matching_method_is_refused() -> None:
    with pytest.raises(UnknownName, match="tiers"):
        find_keyword(("a",), "a", "fuzzy")


@pytest.mark.parametrize(
    ("keyword", "answer"),
    [
        ("미래에셋", "미래에셋이 아니라 삼성이 운용합니다"),
        ("보장", "원금은 보장되지 않습니다"),
        ("손실", "손실 없이 원금이 보장됩니다"),
        ("Cornish heath", "It is not Cornish heath."),
        ("판매", "그 상품은 못 판매합니다"),
    ],
)
class TestNegatedClauses:
    def test_negation_is_reported_and_counts_without_an_analyser(self, keyword: str, answer: str) -> None:
        hit = _hit(keyword, answer)
        assert (hit.negated, hit.counts) == (True, True)

    def test_negation_is_reported_and_does_not_count_with_an_analyser(
        self, kiwi: None, keyword: str, answer: str
    ) -> None:
        hit = _hit(keyword, answer)
        assert (hit.negated, hit.counts) == (True, False)


NOT_NEGATED = [
    ("삼성", "미래에셋이 아니라 삼성이 운용합니다"),
    ("보장", "손실 없이 원금이 보장됩니다"),
    ("설명", "정보 없이도 잘 설명"),
    ("품질", "품질뿐 아니라 가격도 좋다"),
    ("Cornish heath", "It is not only Cornish heath but also Erica vagans."),
    ("위험", "위험이 없지 않다"),
    ("물건", "상자 안 물건"),
    ("Cornish heath", "No, it is Cornish heath."),
    ("수수료", "수수료\n원금 손실 없음"),
    ("보장되지 않", "원금은 보장되지 않습니다"),
]


@pytest.mark.parametrize(("keyword", "answer"), NOT_NEGATED)
def test_unnegated_clauses_and_patterns_count(kiwi: None, keyword: str, answer: str) -> None:
    hit = _hit(keyword, answer)
    assert (hit.negated, hit.counts) == (False, True)


def test_hit_outside_the_negated_clause_is_preferred(kiwi: None) -> None:
    answer = "미래에셋이 아닙니다. 운용사는 미래에셋입니다."
    hit = _hit("미래에셋", answer)
    assert (hit.start, hit.counts) == (answer.rindex("미래에셋"), True)


@given(st.text(alphabet="가나 은는 ab 12.", max_size=30), st.text(alphabet="가나 은ab12", min_size=1, max_size=5))
def test_span_lies_within_the_answer(answer: str, keyword: str) -> None:
    hit = find_keyword((keyword,), answer)
    assert hit is None or 0 <= hit.start < hit.end <= len(answer)


@given(st.text(alphabet="가나다 abc", max_size=12), st.sampled_from(["삼성전자", "Cornish heath"]))
def test_keyword_between_full_stops_matches_exactly(filler: str, keyword: str) -> None:
    answer = f"{filler}. {keyword}. {filler}"
    assert _hit(keyword, answer).tier == "exact"


def _hit(keyword: str, answer: str, matching: str = "tiers") -> KeywordHit:
    hit = find_keyword((keyword,), answer, matching)
    assert hit is not None
    return hit


def _tier_and_span(keyword: str, answer: str) -> tuple[str, str]:
    hit = _hit(keyword, answer)
    return str(hit.tier), answer[hit.start : hit.end]


@pytest.mark.parametrize(
    ("keyword", "answer", "found"),
    [
        ("14일", "접수는 14일이내에 하세요.", True),
        ("3개월", "3개월동안 유효합니다.", True),
        ("10만 원", "10만원한도로 지원합니다.", True),
        ("2회", "2회연속 불참하면 제외됩니다.", True),
        ("14일", "114일이내에 하세요.", False),
        ("3개", "3개월이내에 하세요.", False),
        ("5명", "5명함을 받았습니다.", False),
    ],
)
def test_suffix_after_number_and_unit_is_a_word_boundary(keyword: str, answer: str, found: bool) -> None:
    assert (find_keyword((keyword,), answer) is not None) == found


@pytest.mark.parametrize(
    ("keyword", "answer", "span"),
    [
        ("031)555-0147", "문의: 031-555-0147", "031-555-0147"),
        ("031-555-0147", "031) 555-0147로 전화하세요.", "031) 555-0147"),
        ("0315550147", "전화 (031) 555 0147번입니다", "(031) 555 0147"),
        ("031.555.0147", "Call +82 31 555 0147.", "+82 31 555 0147"),
        ("1588-0147", "대표번호는 15880147입니다", "15880147"),
        ("(555) 223-0147", "Call 555.223.0147 first.", "555.223.0147"),
        ("전화 070)8888-0147", "담당자 전화 070-8888-0147", "전화 070-8888-0147"),
    ],
)
def test_phone_number_matches_in_every_spelling(keyword: str, answer: str, span: str) -> None:
    assert _tier_and_span(keyword, answer) == ("number", span)


@pytest.mark.parametrize(
    ("keyword", "answer"),
    [
        ("031)555-0147", "031-555-0148"),
        ("031)555-0147", "131-555-0147"),
        ("031)555-0147", "031-555-01470"),
        ("031)555-0147", "032-555-0147"),
        ("02)03-2024", "02.03.2024"),
    ],
)
def test_different_number_does_not_match_a_phone_number(keyword: str, answer: str) -> None:
    assert find_keyword((keyword,), answer) is None


def test_partial_phone_numbers_and_long_amounts_match() -> None:
    assert _tier_and_span("555-0147", "031) 555-0147") == ("exact", "555-0147")
    assert _tier_and_span("+12.345678%", "+12.345678 퍼센트 올랐다") == ("number", "+12.345678 퍼센트")
