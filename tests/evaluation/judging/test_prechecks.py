"""Gates before the judge (J4): which answers are decided by rule, and which never are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.samples import AnswerSpec, Status
from evaluation.judging.catalogue import families, family_named
from evaluation.judging.prechecks import STOCK_PHRASES, SkipReason, rule_results, skip_reason
from tests.evaluation.judging.samples import answer, question

ASKED = "How long is leave?"


@pytest.mark.parametrize(
    ("text", "why"),
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
def test_j4_an_answer_that_says_nothing_is_held_back(text: str, why: SkipReason) -> None:
    assert skip_reason(question(ASKED), answer(text)) is why


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
def test_an_answer_that_says_something_goes_to_the_judge(text: str) -> None:
    assert skip_reason(question(ASKED), answer(text)) is None


@pytest.mark.parametrize("text", ["Solution", "How long is leave?", "z"])
def test_an_expected_answer_is_never_held_back(text: str) -> None:
    assert skip_reason(question(ASKED, references=("Something else.", text)), answer(text)) is None
    assert skip_reason(question(ASKED, references=(), keywords=((text, "x y"),)), answer(text)) is None


def test_a_single_character_that_the_reference_names_goes_to_the_judge() -> None:
    assert skip_reason(question(ASKED, references=("Choice B is right.",)), answer("b")) is None
    assert skip_reason(question(ASKED, references=()), answer("z")) is None  # nothing to compare it with


@given(st.sampled_from(STOCK_PHRASES), st.sampled_from(["", ":", ".", "\n", " !"]))
def test_every_stock_phrase_is_held_back_whatever_mark_follows_it(phrase: str, mark: str) -> None:
    assert skip_reason(question(ASKED), answer(phrase.upper() + mark)) in {SkipReason.STOCK, SkipReason.TOO_SHORT}


@given(st.text(), st.text())
def test_any_text_is_told_apart_without_an_error(asked: str, text: str) -> None:
    skip_reason(question(asked), AnswerSpec(text))


@pytest.mark.parametrize("family", families())
def test_what_an_answer_that_says_nothing_gets_is_the_worst_and_says_why(family: str) -> None:
    found = family_named(family)
    results = rule_results(found, found.produced_metrics, question(ASKED), answer("Solution:"), "en")
    if found.floor is None:
        assert results == {}
        return
    assert results.keys() == {spec.name for spec in found.produced_metrics}
    for spec in found.produced_metrics:
        result = results[spec.name]
        assert result.detail["gate"] == "stock"
        if result.status is Status.SCORED and result.label is None:
            assert result.value == spec.scale.low
            assert result.reason.startswith("Decided by rule")


def test_families_that_do_not_judge_the_answer_send_every_one() -> None:
    sent = {name for name in families() if family_named(name).floor is None}
    assert sent == {"passages", "statements", "proposals", "negative_questions"}
