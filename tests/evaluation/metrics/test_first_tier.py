"""The first tier never says anything that the full tiers deny."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluation.metrics import normalise
from evaluation.metrics.first_tier import _CALM, FirstTier
from evaluation.metrics.keyword_coverage import occurs
from evaluation.metrics.matching import find_keyword
from evaluation.metrics.negation import _ENGLISH, _KOREAN, holds_negation, may_negate_in_english, may_negate_in_korean
from tests.examples import examples

_WORD_LIST = (
    "삼성전자 삼성 전자 미래에셋 자산운용 규정 중규정 등록금 고지서 원금 보장 보장됩니다 보장하는 이자 이 자동차 주 "
    "천원 천 원 ISO27001 ISO 27001 S&P 500 "
    "주가 만 천 구조 조건 제15조 제15조의2 제 15 조 200 12 2012 3.5% 50bp 0.5% 천억 1,000억원 1억 200만원 KODEX 200TR "
    "ETF ETF상품 S&P500 Cornish heath heathland not no never cannot don't without one note account isnt 않습니다 "
    "없습니다 아닙니다 아니라 못 안 안내 하지 말고 마세요 뿐 아니라 million 5 -3.5% + C++ % 은 는 을 이 가 의 에서 만 "
    "하세요 입니다 명 원 만기 장학금 3개월"
)
WORDS = tuple(_WORD_LIST.split())
GAPS = st.sampled_from((*"   \n\t\v(`“·", "", "", "  ", ". ", ".", ", ", ") ", "\u200b"))
KEYWORDS = st.one_of(
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(WORDS), min_size=2, max_size=2).map(" ".join),
    st.lists(st.sampled_from(WORDS), min_size=2, max_size=2).map("".join),
    st.text("가삼성전자 ab12.조만의이", min_size=1, max_size=4).filter(str.strip),
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    pieces = draw(st.lists(st.tuples(st.sampled_from(WORDS), GAPS), max_size=10))
    text = "".join(word + gap for word, gap in pieces)
    shape = draw(st.sampled_from(["as it is"] * 6 + ["NFD", "upper"]))
    return unicodedata.normalize("NFD", text) if shape == "NFD" else text.upper() if shape == "upper" else text


def _agrees(keywords: list[tuple[str, ...]], text: str) -> None:
    find_keyword.cache_clear()
    for keyword, state in zip(keywords, FirstTier(tuple(keywords)).states(text), strict=True):
        if state is not None:
            assert state == occurs(find_keyword(keyword, text)), (keyword, text)


_ALTERNATIVES = st.lists(st.lists(KEYWORDS, min_size=1, max_size=3).map(tuple), min_size=1, max_size=3)
_QUIET = {"deadline": None, "suppress_health_check": [HealthCheck.function_scoped_fixture]}


@settings(max_examples=examples(600), **_QUIET)
@given(_ALTERNATIVES, texts())
def test_what_the_first_tier_settles_the_full_tiers_say_too(keywords: list[tuple[str, ...]], text: str) -> None:
    _agrees(keywords, text)


@pytest.mark.slow
@settings(max_examples=examples(200), **_QUIET)
@given(_ALTERNATIVES, texts())
def test_with_morphemes_it_agrees_as_well(kiwi: None, keywords: list[tuple[str, ...]], text: str) -> None:
    _agrees(keywords, text)


def test_a_keyword_where_the_text_begins_is_found_beside_a_negation(kiwi: None) -> None:
    assert FirstTier((("배당",),)).states("배당을 지급한다. 이자는 없다.") == [True]


@settings(max_examples=examples(400), **_QUIET)
@given(st.text("아안마말못없않니세지요 .\n가nNoOtwW'", max_size=8))
def test_a_text_that_one_scan_calls_calm_holds_no_negation(text: str) -> None:
    if _CALM.fullmatch(text):
        assert not may_negate_in_korean(text)
        assert not may_negate_in_english(text.lower())


@pytest.mark.parametrize("text", ["학기마다 위안이 된다.", "미안 아이 그말씀", "수수료는 연 3%"])
def test_syllables_that_negate_elsewhere_leave_a_text_calm(text: str) -> None:
    assert _CALM.fullmatch(text)


@pytest.mark.parametrize(
    ("keyword", "text", "state"),
    [
        ("Cornish heath", "the Cornish heath.", True),
        ("Cornish heath", "the Cornish\nheath.", True),
        ("Cornish heath", "the heath of Cornish", False),
        ("press", "express", False),
        ("배당", "매년 배당을 지급한다", True),
        ("배당", "매년 이자를 지급한다", False),
        ("삼성전자", "삼성 전자의 실적", None),  # the spacing tier decides
        ("주", "주가가 오른다", None),  # a single syllable: particle or word
        ("12", "2012년", None),
        ("장학금", "심사합니다. 장학금은 학기마다 지급한다", True),
        ("만기", "채권의 만기가 길다", True),
        ("만기", "3 만기", None),  # a number could go on: 3만
        ("3개월", "제 3개월", None),
        ("0.5%", "50bp 인하했다", None),  # the number tier decides
        ("0.5%", "인하했다", False),
        ("200", "200만 원이다", None),  # it is two million
        ("배당", "배당을 지급한다", True),  # where the text begins
    ],
)
def test_it_settles_what_it_can_and_gives_up_where_another_tier_sees_more(
    keyword: str, text: str, state: bool | None
) -> None:
    assert FirstTier(((keyword,),)).states(text) == [state]


def test_a_negated_hit_is_left_to_the_analyser(kiwi: None) -> None:
    tier = FirstTier((("보장",),))
    assert tier.states("원금은 보장되지 않습니다.") == [None]
    assert tier.states("NO: 원금이 보장") == [None]
    assert tier.states("원금이 보장됩니다. 손실은 없습니다.") == [True]


def test_the_analyser_runs_only_where_the_stem_occurs(kiwi: None) -> None:
    wanted = FirstTier((("원금 보장",), ("등록금을",)))
    before = normalise.analysed()
    assert wanted.states("매년 배당을 지급하는 펀드입니다.") == [False, False]
    assert normalise.analysed() == before
    assert wanted.states("원금을 모두 보장합니다. 등록금이 오른다.") == [None, None]


@given(texts())
def test_whatever_negates_passes_the_fast_look(text: str) -> None:
    folded = text.casefold()
    assert holds_negation(folded) == bool(_KOREAN.search(folded) or _ENGLISH.search(folded))


@pytest.mark.parametrize("text", ["a line", "one account", "an investment known", "매일 마다", "방안", "제안을"])
def test_the_fast_look_is_not_taken_in_by_parts_of_words(text: str) -> None:
    assert not may_negate_in_english(text)
    assert not may_negate_in_korean(text)
