"""Vague questions should be answered with a question; direct answers are flagged for review."""

from __future__ import annotations

import pytest

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.metrics.vague_questions import check_relevance

VAGUE = QuestionSpec(id="q", category="c", text="휴학", clarification_ok=True)


@pytest.mark.parametrize(
    ("answer", "value", "flagged"),
    [
        ("휴학은 30일 이내에 신청합니다.", 1.0, []),
        ("휴학 신청 방법을 물으시는 건가요?", 0.0, []),
        ("Do you ask about sick leave? ", 0.0, []),
        ("무엇이 궁금한지 구체적으로 적어 주세요.", 0.0, ["구체적으로"]),
        ("Please specify the kind of leave.", 0.0, ["please specify"]),
        ("휴학이란? 학업을 쉬는 것입니다.", 1.0, []),  # a heading asks nobody
        ("", 1.0, []),
    ],
)
def test_direct_answer_to_a_vague_question_is_flagged_for_review(answer: str, value: float, flagged: list[str]) -> None:
    result = check_relevance(VAGUE, AnswerSpec(answer), RuleSettings())
    assert (result.value, [finding.text for finding in result.findings]) == (value, flagged)


def test_profile_defines_phrases_of_asking_back() -> None:
    settings = RuleSettings(phrases={"asking_back": ("골라 주세요",)})
    assert check_relevance(VAGUE, AnswerSpec("하나를 골라 주세요."), settings).value == 0.0
    assert check_relevance(VAGUE, AnswerSpec("구체적으로 적어 주세요."), settings).value == 1.0


def test_clear_questions_are_not_checked() -> None:
    clear_question = VAGUE.model_copy(update={"clarification_ok": False})
    assert check_relevance(clear_question, AnswerSpec("30일"), RuleSettings()).reason == "not_vague"
