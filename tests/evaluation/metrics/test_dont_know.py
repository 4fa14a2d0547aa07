"""Admissions of not knowing, distinguished from mere mentions."""

from __future__ import annotations

import pytest

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.metrics.phrases import dont_know

QUESTION = QuestionSpec(id="q", category="c", text="?")
LONG = "Cornish heath grows there. It is also called Erica vagans. "


@pytest.mark.parametrize(
    ("answer", "admits"),
    [
        ("I don't know.", True),
        ("I don’t know that. Sorry.", True),
        ("잘 모르겠습니다.", True),
        ("제공된 자료로는 알 수 없습니다.", True),
        ("해당 정보가 없습니다.", True),
        ("N/A", True),
        ("none.", True),
        ("Unknown", True),
        ("The unknown soldier.", False),
        ("None of them was built in 1850.", False),
        ("Cornish heath.", False),
        ("", False),
        ("문제없습니다.", False),
        ("I'm not sure. " + LONG, True),
        (LONG + "I am not sure about the rest.", False),
    ],
)
def test_admission_counts_where_an_answer_is_expected(answer: str, admits: bool) -> None:
    assert dont_know(QUESTION, AnswerSpec(answer), RuleSettings()).value == float(admits)


@pytest.mark.parametrize(
    "answer",
    [
        "주신 파일만 봐서는 계약 금액이 얼마인지 알 길이 없습니다.",
        "환불 조건은 이 안내문에 적혀 있지 않네요.",
        "그 부분은 아직 자료가 부족하여 예측하기 어렵습니다. 담당 부서에 문의해 주세요.",
        "관련규정을찾을수없습니다.",
        "세금 상담은 도와드리기 어려우니 세무사와 상담하세요.",
        "문서에는 신청 기한만 나와 있고 수수료는 명시되어 있지 않습니다.",
        "2023년 4월 9일 점검 기록을 확인했습니다. 다만 교체 이유는 기재되어 있지 않습니다.",
        "The leaflet doesn’t say how long the offer runs.",
        "Sorry, I couldn't find anything about parking in the handbook.",
        "The requested figure is not available.",
        "Neither of the two memos gives the closing date.",
        "I checked all 9 pages. The buyer is not named anywhere in the report.",
        "While the article covers the merger, it never reveals the price.",
        "My sources don't go back that far; you may want to ask the archive.",
    ],
)
def test_refusals_in_both_languages_are_admissions(answer: str) -> None:
    assert dont_know(QUESTION, AnswerSpec(answer), RuleSettings()).value == 1


@pytest.mark.parametrize(
    "answer",
    [
        "알 수 없는 발신자의 메일이므로 위험 등급은 2등급입니다.",
        "정확한 시각은 모르지만 사고는 새벽 4시에 났습니다.",
        "정보가 부족하다는 말은 맞지 않습니다. 부록에 전부 실려 있습니다.",
        "이름을 모르면 사번으로 검색하세요.",
        "조사 대상의 37%는 자신의 혈압을 알지 못했다.",
        "“파일을 찾을 수 없음”이 뜨면 경로를 다시 지정하세요.",
        "한도는 1회 50만 원이며, 그 근거는 문서에 설명되어 있지 않습니다.",
        "두 제품의 성능에는 차이가 없습니다.",
        "I don't know the exact name, but the fee is 20 euros.",
        "Although the manual gives no torque, the label on the bolt says 12 Nm.",
        'If you see "address unknown", call the depot.',
        "It's false that the report gives no figures; table 2 lists them.",
        "Most tenants don't know that heating is included.",
        "Our plan does not include dental care.",
    ],
)
def test_answer_with_its_own_fact_admits_nothing(answer: str) -> None:
    assert dont_know(QUESTION, AnswerSpec(answer), RuleSettings()).value == 0


def test_phrase_is_reported_with_its_position() -> None:
    answer = "죄송하지만  알 수 없습니다."
    (finding,) = dont_know(QUESTION, AnswerSpec(answer), RuleSettings()).findings
    assert answer[finding.start : finding.end] == "알 수 없습니다"


def test_profile_phrases_replace_the_defaults() -> None:
    settings = RuleSettings(phrases={"dont_know": ("담당 부서에 문의",)})
    assert dont_know(QUESTION, AnswerSpec("담당 부서에 문의하세요."), settings).value == 1
    assert dont_know(QUESTION, AnswerSpec("모르겠습니다."), settings).value == 0
