"""Next steps are proposed by the rules of the phased evaluation and never scored."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.profile_settings import Condition, NextStepRules
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec, Result
from evaluation.metrics.phrases import next_steps

RULES = NextStepRules.model_validate(
    {
        "steps": [
            {"kind": "action", "tags": ["라벨_부착"], "ko": "라벨 제거 방법 확인하기", "en": "Remove the label"},
            {"kind": "suggestion", "answer_lacks": ["위치"], "ko": "위치는요?", "en": "Where is it?"},
            {"kind": "suggestion", "question": ["대형"], "answer_lacks": ["신청"], "ko": "신청할까요?", "en": "Apply?"},
        ],
        "urgency": [
            {"level": "high", "question": ["유해", "위험"]},
            {"level": "medium", "tags": ["오염됨", "내용물_있음"]},
        ],
    }
)


def _result(question: str, answer: str, *tags: str) -> Result:
    contexts = (ContextSpec("t", metadata={"tags": list(tags)}),)
    spec = QuestionSpec(id="q", category="c", text=question)
    return next_steps(spec, AnswerSpec(answer, contexts=contexts), RuleSettings(next_steps=RULES))


@pytest.mark.parametrize(
    ("question", "answer", "tags", "urgency", "proposed"),
    [
        ("병은 어떻게?", "수거함 위치는 정문입니다.", (), "low", []),
        (
            "병은 어떻게?",
            "씻어서 버리세요.",
            ("라벨 부착",),
            "low",
            ["라벨 제거 방법 확인하기", "위치는요?"],
        ),
        ("병은 어떻게?", "배출 위치를 모릅니다.", (), "low", ["위치는요?"]),  # as the method took it as told
        ("대형폐기물은?", "위치는 정문입니다.", ("오염됨",), "medium", ["신청할까요?"]),
        ("대형폐기물은?", "신청하세요. 위치는 정문입니다.", (), "low", []),
        ("유해한 병은?", "위치는 정문입니다.", ("오염됨",), "high", []),
    ],
)
def test_next_steps_and_urgency_follow_the_rules(
    question: str, answer: str, tags: tuple[str, ...], urgency: str, proposed: list[str]
) -> None:
    result = _result(question, answer, *tags)
    assert (result.label, result.value) == (urgency, None)
    assert [f.text for f in result.findings] == proposed


def test_suggestions_and_actions_use_the_language_of_the_question() -> None:
    result = _result("How do I throw it away?", "Wash it.", "라벨_부착")
    assert result.detail == {"suggested_queries": ["Where is it?"], "action_items": ["Remove the label"]}
    assert [f.verdict for f in result.findings] == ["action", "suggestion"]


def test_profile_without_rules_proposes_nothing() -> None:
    question = QuestionSpec(id="q", category="c", text="?")
    assert next_steps(question, AnswerSpec("a"), RuleSettings()).reason == "no_next_steps"


def test_tags_may_be_a_text_and_other_values_are_ignored() -> None:
    rules = RuleSettings(next_steps=RULES)
    question = QuestionSpec(id="q", category="c", text="병")
    contexts = (ContextSpec("t", metadata={"tags": "a, 오염됨"}), ContextSpec("t", metadata={"tags": 7}))
    assert next_steps(question, AnswerSpec("위치", contexts=contexts), rules).label == "medium"


def test_empty_condition_is_refused() -> None:
    with pytest.raises(ValidationError, match="always hold"):
        Condition()
