"""Negative questions: refusals are predicates at the start of a token, not the syllable 없 anywhere."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, CheckPhrases, QuestionSpec, Result, Status
from evaluation.metrics.phrases import negative_detection

HALLUCINATE = "should_not_hallucinate"
FABRICATE = "should_not_fabricate_data"
DISCLAIMER = "should_provide_accurate_disclaimer"
PREMISE = "should_correct_premise"


def _result(
    check: str,
    answer: str,
    phrases: CheckPhrases | None = None,
    settings: RuleSettings = RuleSettings(),  # noqa: B008 - frozen
    category: str = "negative",
) -> Result:
    question = QuestionSpec(id="n1", category=category, text="?", check=check, check_phrases=phrases)
    return negative_detection(question, AnswerSpec(answer), settings)


@pytest.mark.parametrize(
    ("check", "answer", "passes"),
    [
        (DISCLAIMER, "원금은 보장되지 않습니다", True),
        (DISCLAIMER, "손실 없이 원금이 보장됩니다", False),
        (DISCLAIMER, "원금을 보장하는 상품이 아닙니다.", True),
        (DISCLAIMER, "원금이 보장되므로 걱정할 필요가 없습니다.", False),
        (DISCLAIMER, "투자 손실이 발생할 수 있습니다.", True),
        (DISCLAIMER, "The principal is not guaranteed.", True),
        (DISCLAIMER, "The principal isn’t guaranteed.", True),
        (DISCLAIMER, "Your money is guaranteed without any loss.", False),
        (DISCLAIMER, "예금자보호법의 보호 대상이 아니며 원금 손실이 생길 수 있습니다", True),
        (DISCLAIMER, "예금자보호법의 보호 대상이며 손실이 생길 수 없습니다", False),
        (FABRICATE, "찾을 수 없었습니다만, 배당률은 약 5%로 추정됩니다.", False),
        (HALLUCINATE, "해당 자료는 없습니다. 다만 작년 배당률은 5%였습니다.", False),
        (HALLUCINATE, "I could not find it, but it is probably about 5%.", False),
        (HALLUCINATE, "찾을 수 없었지만 좋은 상품으로 추정됩니다.", False),
        (HALLUCINATE, "찾을 수 없었습니다만 약 5%로 추정됩니다. 확인할 수 없는 값입니다.", False),
        (HALLUCINATE, "문제없습니다", False),
        (HALLUCINATE, "문제가 없습니다", False),
        (HALLUCINATE, "틀림 없습니다. 변함없습니다. 상관이 없습니다. 다름없습니다.", False),
        (HALLUCINATE, "끊임없이 노력하고 어김없이 지급합니다", False),
        (HALLUCINATE, "정보 없이도 잘 설명", False),
        (HALLUCINATE, "어이없게도 5%입니다", False),
        (HALLUCINATE, "없습니다", True),
        (HALLUCINATE, unicodedata.normalize("NFD", "그런 상품은 없습니다"), True),
        (HALLUCINATE, "해당 상품은 존재하지 않습니다.", True),
        (HALLUCINATE, "자료에서 찾을수 없습니다.", True),
        (HALLUCINATE, "미래에셋의 상품이 아닙니다.", True),
        (HALLUCINATE, "That fund does not exist.", True),
        (HALLUCINATE, "I could not find it.", True),
        (HALLUCINATE, "The fund pays 5%.", False),
        (FABRICATE, "2027년 수익률은 확인할 수 없습니다.", True),
        (FABRICATE, "2027년 수익률은 7.2%입니다.", False),
        (FABRICATE, "아직 집계되지 않은 수치입니다.", True),
        (HALLUCINATE, "그 회사는 상장된 적이 없습니다.", True),
        (HALLUCINATE, "The provided context doesn’t mention it.", True),
        (HALLUCINATE, "I don't know why you ask, but the dividend is 42.", False),
        (DISCLAIMER, "예금과 달리 원금 보장이 안 됩니다.", True),
        (DISCLAIMER, "보장되지 않는다는 말은 사실이 아닙니다. 원금은 보장됩니다.", False),
        (DISCLAIMER, "보장하지 않는다는 것은 오해입니다. 전액 돌려 드립니다.", False),
        (DISCLAIMER, "It is not true that the money is not guaranteed.", False),
    ],
)
def test_default_phrases_pass_refusals_only(check: str, answer: str, passes: bool) -> None:
    assert _result(check, answer).value == float(passes)


@pytest.mark.parametrize(
    ("check", "answer", "passes"),
    [
        (HALLUCINATE, "문제없습니다", True),  # the syllable 없 counts as a refusal
        (HALLUCINATE, "정보 없이도 잘 설명", True),
        (HALLUCINATE, unicodedata.normalize("NFD", "없습니다"), False),
        (DISCLAIMER, "원금은 보장되지 않습니다", False),  # the ideal answer fails
        (DISCLAIMER, "손실 없이 원금이 보장됩니다", True),  # the worst one passes
        (DISCLAIMER, "원금을 보장하는 상품이 아닙니다", False),
        (FABRICATE, "끊임없이 오른 수익률 표: 7%, 8%", True),
        (PREMISE, "미래에셋이 아니라 삼성입니다", True),
    ],
)
def test_substring_matching_reproduces_the_original_faults(check: str, answer: str, passes: bool) -> None:
    assert _result(check, answer, settings=RuleSettings(matching="substring")).value == float(passes)


def test_span_of_the_refusal_is_reported() -> None:
    answer = "요청하신 펀드는  찾을수 없습니다."
    findings = {f.text: (f.verdict, answer[f.start : f.end]) for f in _result(HALLUCINATE, answer).findings}
    assert findings == {"찾을수 없습니다": ("any_of", "찾을수 없습니다")}


def test_question_phrases_precede_profile_and_default_phrases() -> None:
    phrases = CheckPhrases(all_of=("TIGER",), any_of=("운용사는 미래에셋", "미래에셋이 운용"), none_of=("삼성이 운용",))
    assert _result(PREMISE, "TIGER는 미래에셋이 운용합니다.", phrases).value == 1
    assert _result(PREMISE, "TIGER는 삼성이 운용합니다.", phrases).value == 0
    result = _result(PREMISE, "미래에셋이 운용합니다.", phrases)
    assert result.value == 0
    assert [(f.text, f.verdict) for f in result.findings] == [("TIGER", "missing"), ("미래에셋이 운용", "any_of")]


def test_forbidden_phrase_fails_an_otherwise_complete_answer() -> None:
    phrases = CheckPhrases(all_of=("TIGER",), any_of=("미래에셋이 운용",), none_of=("삼성이 운용",))
    assert _result(PREMISE, "TIGER는 미래에셋이 운용합니다.", phrases).value == 1
    result = _result(PREMISE, "TIGER는 미래에셋이 운용합니다. 삼성이 운용하기도 합니다.", phrases)
    assert result.value == 0
    assert [(f.text, f.verdict) for f in result.findings if f.verdict == "none_of"] == [("삼성이 운용", "none_of")]


def test_only_forbidden_phrases_pass_every_answer_without_them() -> None:
    phrases = CheckPhrases(none_of=("무조건",))
    assert _result(DISCLAIMER, "수익은 시장에 따라 다릅니다.", phrases).value == 1
    assert _result(DISCLAIMER, "수익은 무조건 납니다.", phrases).value == 0


def test_negated_forbidden_phrase_is_allowed(kiwi: None) -> None:
    phrases = CheckPhrases(any_of=("미래에셋이 운용",), none_of=("삼성이 운용",))
    result = _result(PREMISE, "미래에셋이 운용합니다. 삼성이 운용하지 않습니다.", phrases)
    assert (result.value, [f.verdict for f in result.findings]) == (1, ["any_of", "negated"])


def test_premise_without_phrases_uses_the_default_name() -> None:
    assert _result(PREMISE, "운용사는 미래에셋자산운용입니다.").value == 1
    assert _result(PREMISE, "운용사는 삼성입니다.").value == 0


def test_echo_of_the_premise_corrects_nothing() -> None:
    phrases = CheckPhrases(any_of=("운용사는 미래에셋", "미래에셋이 운용"))
    assert _result(PREMISE, "미래에셋 TIGER에 대해 물으셨는데, 삼성이 운용합니다.", phrases).value == 0


def test_profile_check_has_its_own_phrases() -> None:
    settings = RuleSettings(checks={"should_refer_to_staff": CheckPhrases(any_of=("담당자에게 문의",))})
    result = _result("should_refer_to_staff", "담당자에게 문의하세요.", settings=settings)
    assert (result.value, result.detail["phrases"]) == (1, "profile")


def test_negated_premise_correction_does_not_count(kiwi: None) -> None:
    phrases = CheckPhrases(any_of=("미래에셋",))
    result = _result(PREMISE, "미래에셋이 아니라 삼성이 운용합니다.", phrases)
    assert (result.value, result.findings[0].verdict) == (0, "negated")


def test_negation_is_reported_and_counts_without_an_analyser() -> None:
    phrases = CheckPhrases(any_of=("미래에셋",))
    result = _result(PREMISE, "미래에셋이 아니라 삼성이 운용합니다.", phrases)
    assert (result.value, result.findings[0].reason) == (1, "negation_not_confirmed")


def test_check_for_a_negation_matches_the_negated_phrase(kiwi: None) -> None:
    phrases = CheckPhrases(all_of=("보장",), any_of=("보장되지 않", "보장하지 않"))
    assert _result(DISCLAIMER, "원금은 보장되지 않습니다.", phrases).value == 1


@pytest.mark.parametrize(
    ("check", "category", "status", "reason"),
    [
        ("", "single_hop", Status.NOT_APPLICABLE, "not_negative"),
        ("", "negative", Status.FAILED, "no_check"),
        ("should_sing", "negative", Status.FAILED, "unknown_check: should_sing"),
    ],
)
def test_question_that_cannot_be_checked_has_a_reason(check: str, category: str, status: Status, reason: str) -> None:
    result = _result(check, "없습니다", category=category)
    assert (result.status, result.reason) == (status, reason)


@given(st.text(max_size=60))
def test_any_text_can_be_checked_and_spans_lie_within_it(answer: str) -> None:
    result = _result(HALLUCINATE, answer)
    assert result.value in {0, 1}
    assert all(
        0 <= f.start < f.end <= len(answer) for f in result.findings if f.start is not None and f.end is not None
    )
