"""Admitting not to know is told from mentioning it."""

from __future__ import annotations

import pytest

from evaluation.core.registry import RuleSettings
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
def test_an_answer_admits_not_knowing_where_an_answer_would_stand(answer: str, admits: bool) -> None:
    assert dont_know(QUESTION, AnswerSpec(answer), RuleSettings()).value == float(admits)


def test_the_phrase_is_shown_in_its_place() -> None:
    answer = "죄송하지만  알 수 없습니다."
    (finding,) = dont_know(QUESTION, AnswerSpec(answer), RuleSettings()).findings
    assert answer[finding.start : finding.end] == "알 수 없"


def test_a_profile_may_bring_its_own_phrases() -> None:
    settings = RuleSettings(phrases={"dont_know": ("담당 부서에 문의",)})
    assert dont_know(QUESTION, AnswerSpec("담당 부서에 문의하세요."), settings).value == 1
    assert dont_know(QUESTION, AnswerSpec("모르겠습니다."), settings).value == 0
