"""Checks before the judge: answers decided by rule."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.samples import AnswerSpec, Status
from evaluation.judging.catalogue import families, family_named
from evaluation.judging.prechecks import STOCK_PHRASES, SkipReason, rule_results, skip_reason
from tests.evaluation.judging.samples import answer, question

QUESTION = "How long is leave?"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", SkipReason.BLANK),
        (" \n\t", SkipReason.BLANK),
        (":", SkipReason.BLANK),
        ("...", SkipReason.BLANK),
        ("\u200b\ufeff", SkipReason.BLANK),
        ("**", SkipReason.BLANK),
        ("z", SkipReason.TOO_SHORT),
        ("가", SkipReason.TOO_SHORT),
        ("How long is leave?", SkipReason.ECHO),
        ("HOW LONG IS LEAVE", SkipReason.ECHO),
        ("How long\u200b is leave? How long is leave?", SkipReason.ECHO),
        ("Solution", SkipReason.STOCK),
        ("Solution:", SkipReason.STOCK),
        ("Thought process:", SkipReason.STOCK),
        ("Let's solve this problem step by step.", SkipReason.STOCK),
        ("Solution:\nLet’s think step by step.", SkipReason.STOCK),
        ("풀이:", SkipReason.STOCK),
        ("답변은 다음과 같습니다.", SkipReason.STOCK),
    ],
)
def test_empty_answer_is_not_sent_to_the_judge(text: str, expected: SkipReason) -> None:
    assert skip_reason(question(QUESTION), answer(text)) is expected


@pytest.mark.parametrize(
    "text",
    [
        "Three years.",
        "3",
        "네",
        "O",
        "I don't know.",
        "모르겠습니다.",
        "none",
        "Solution: three years.",
        "How long is leave? Three years.",
        "Leave is long.",
        "답변은 3년입니다.",
    ],
)
def test_answer_with_content_is_sent_to_the_judge(text: str) -> None:
    assert skip_reason(question(QUESTION), answer(text)) is None


@pytest.mark.parametrize("text", ["Solution", "How long is leave?", "z"])
def test_expected_answer_is_always_sent_to_the_judge(text: str) -> None:
    assert skip_reason(question(QUESTION, references=("Something else.", text)), answer(text)) is None
    assert skip_reason(question(QUESTION, references=(), keywords=((text, "x y"),)), answer(text)) is None


def test_single_character_from_the_reference_is_sent_to_the_judge() -> None:
    assert skip_reason(question(QUESTION, references=("Choice B is right.",)), answer("b")) is None
    assert skip_reason(question(QUESTION, references=()), answer("z")) is None  # nothing to compare it with


@given(st.sampled_from(STOCK_PHRASES), st.sampled_from(["", ":", ".", "\n", " !"]))
def test_stock_phrase_is_not_sent_with_any_punctuation(phrase: str, mark: str) -> None:
    assert skip_reason(question(QUESTION), answer(phrase.upper() + mark)) in {SkipReason.STOCK, SkipReason.TOO_SHORT}


@given(st.text(), st.text())
def test_any_text_can_be_checked(question_text: str, text: str) -> None:
    skip_reason(question(question_text), AnswerSpec(text))


@pytest.mark.parametrize("family", families())
def test_empty_answer_gets_the_lowest_value_with_a_reason(family: str) -> None:
    judge_family = family_named(family)
    results = rule_results(judge_family, judge_family.produced_metrics, question(QUESTION), answer("Solution:"), "en")
    if judge_family.floor is None:
        assert results == {}
        return
    assert results.keys() == {spec.name for spec in judge_family.produced_metrics}
    for spec in judge_family.produced_metrics:
        result = results[spec.name]
        assert result.detail["gate"] == "stock"
        if result.status is Status.SCORED and result.label is None:
            assert result.value == spec.scale.low
            assert result.reason.startswith("Decided by rule")


def test_families_without_a_floor_send_every_answer() -> None:
    without_floor = {name for name in families() if family_named(name).floor is None}
    assert without_floor == {"passages", "statements", "proposals", "negative_questions"}
