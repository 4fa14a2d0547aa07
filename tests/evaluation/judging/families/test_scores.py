"""Scores on real scales: source 002's two, source 003's four with caps, and factual accuracy of source 001."""

from __future__ import annotations

import json

import pytest

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.profile_settings import Cap
from evaluation.core.samples import Result, Status
from evaluation.judging.calls import JudgeReply
from evaluation.judging.catalogue import family_named
from evaluation.judging.families.factual_accuracy import letter_grade
from evaluation.judging.formulas import apply_caps
from evaluation.judging.prechecks import applicability
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.families.scripted import before, said
from tests.evaluation.judging.samples import answer, question, talked


def one(name: str, score: object) -> JudgeReply:
    return said(**{name: {"reason": "why", "score": score}})


@pytest.mark.parametrize("family", ["generation_faithfulness", "answer_relevancy"])
@pytest.mark.parametrize("score", [0, 0.0, 0.85, 1, 1.0])
def test_any_number_of_the_range_is_taken_as_it_stands(family: str, score: float) -> None:
    _, results = talked(before(family), one(family, score))
    assert (results[family].value, results[family].reason) == (float(score), "why")


@pytest.mark.parametrize("score", [4, 85, 1.0000001, -0.1, "0.8", True, None, float("nan"), float("inf"), [0.5]])
def test_a_number_out_of_range_fails_by_scale_and_is_never_clamped(score: object) -> None:
    """Source 002 clamps: 4 of 5 and 85 of 100 become 1.0 there."""
    _, results = talked(before("answer_relevancy"), one("answer_relevancy", score))
    assert (results["answer_relevancy"].status, results["answer_relevancy"].reason) == (Status.FAILED, "scale")


def test_relevancy_is_judged_from_question_and_answer_alone() -> None:
    asks, _ = talked(before("answer_relevancy"), one("answer_relevancy", 0.5))
    assert list(asks[0].blocks) == ["question", "answer"]
    asks, _ = talked(before("generation_faithfulness"), one("generation_faithfulness", 0.5))
    assert list(asks[0].blocks) == ["question", "contexts", "answer"]


def four(accuracy: object = 0.9, **more: object) -> dict[str, object]:
    scores = {"accuracy": accuracy, "answer_completeness": 0.8, "citations": 0.7, "context_relevance": 1, **more}
    return {name: {"reason": f"about {name}", "score": score} for name, score in scores.items()}


REGULATION = before(
    "regulation_quality",
    question("휴학은?", persona="신입생", history=("안녕하세요",), required_info=("3년",), clarification_ok=True),
)


def test_four_scores_come_from_one_call_with_issues_and_strengths_as_findings() -> None:
    asks, results = talked(REGULATION, said(**four(), issues=["no article"], strengths=["clear", ""]))
    assert {name: result.value for name, result in results.items()} == {
        "accuracy": 0.9,
        "answer_completeness": 0.8,
        "citations": 0.7,
        "context_relevance": 1.0,
    }
    assert [(f.kind, f.text) for f in results["accuracy"].findings] == [("issue", "no article"), ("strength", "clear")]
    assert len(asks) == 1
    assert set(asks[0].blocks) == {
        *("persona", "history", "question", "reference", "required_info", "clarification_ok", "contexts", "answer")
    }


def test_a_score_off_the_scale_fails_alone_among_the_four() -> None:
    _, results = talked(REGULATION, said(**four(accuracy=9), issues=[], strengths=[]))
    assert (results["accuracy"].status, results["accuracy"].reason) == (Status.FAILED, "scale")
    assert results["citations"].value == 0.7


def test_with_nothing_retrieved_context_relevance_is_0_and_is_not_asked_for() -> None:
    scores = four()
    del scores["context_relevance"]
    asks, results = talked(before("regulation_quality", given=answer("x", [])), said(**scores, issues=[], strengths=[]))
    assert results["context_relevance"].value == 0.0
    assert "context_relevance" not in asks[0].schema["properties"]


def test_what_the_four_need() -> None:
    specs = family_named("regulation_quality").metrics
    bare = applicability(specs, question(references=()), answer(contexts=None))
    assert {name: result.reason for name, result in bare.not_applicable.items()} == {
        "accuracy": "no_reference",
        "answer_completeness": "no_reference",
        "context_relevance": "does_not_retrieve",
    }
    listed = applicability(specs, question(references=(), required_info=("3년",)), answer(contexts=None))
    assert "answer_completeness" in listed.metrics


CAPS = (
    Cap(metric="accuracy", flag="unknown_phone", at_most=0),
    Cap(metric="accuracy", flag="forbidden_name", at_most=0),
    Cap(metric="accuracy", flag="avoidance", at_most=0.3),
)
SETTINGS = RuleSettings(caps=CAPS, phrases={"forbidden_names": ("서울대",)})
PASSAGES = ["제15조 휴학은 3년까지 가능하다. 문의: 041-012-2140"]


@pytest.mark.parametrize(
    ("text", "judged", "expected"),
    [
        ("휴학은 3년까지 가능합니다.", 0.9, 0.9),
        ("02-123-4567로 전화하세요. 3년까지 가능합니다.", 0.9, 0.0),
        ("041-012-2140으로 전화하세요. 3년까지 가능합니다.", 0.9, 0.9),  # the number is in the sources
        ("서울대에서는 3년까지 가능합니다.", 0.9, 0.0),
        ("대학마다 다릅니다.", 0.9, 0.3),
        ("대학마다 다릅니다.", 0.2, 0.2),  # a cap raises nothing
    ],
)
def test_flags_cap_accuracy_as_the_profile_says(text: str, judged: float, expected: float) -> None:
    case = before("regulation_quality", question("휴학은 몇 년?"), answer(text, PASSAGES), settings=SETTINGS)
    results = apply_caps(case, {"accuracy": Result.scored(judged), "citations": Result.scored(1)})
    assert results["accuracy"].value == expected
    assert results["citations"].value == 1.0
    if expected < judged:
        assert results["accuracy"].detail["judged"] == judged
        assert results["accuracy"].findings[0].kind == "flag"


def test_a_failed_score_is_not_capped_into_a_number() -> None:
    case = before("regulation_quality", given=answer("대학마다 다릅니다.", PASSAGES), settings=SETTINGS)
    assert apply_caps(case, {"accuracy": Result.failed("timeout")})["accuracy"].status is Status.FAILED


def steps(correctness: object, completeness: object, consistency: object, confidence: object = 80) -> JudgeReply:
    scores = {"correctness": correctness, "completeness": completeness, "consistency": consistency}
    return said(**{n: {"reason": n, "score": s} for n, s in scores.items()}, confidence=confidence)


@pytest.mark.parametrize(
    ("scores", "value", "grade"),
    [
        ((90, 70, 100), 86.0, "A"),  # 45 + 21 + 20
        ((100, 100, 100), 100.0, "A"),
        ((80, 80, 80), 80.0, "A"),  # each grade holds its lower end
        ((60, 60, 60), 60.0, "B"),
        ((79.8, 80, 80.4), 79.98, "B"),  # 39.9 + 24 + 16.08: below 80 stays below
        ((0, 0, 100), 20.0, "D"),  # coherent nonsense is a D, as the source's weights have it
        ((0, 0, 99), 19.8, "E"),
    ],
)
def test_we_weigh_the_three_steps_and_give_the_grade(
    scores: tuple[float, float, float], value: float, grade: str
) -> None:
    _, results = talked(before("factual_accuracy"), steps(*scores))
    result = results["factual_accuracy"]
    assert result.value == pytest.approx(value)
    assert (result.detail["grade"], result.detail["confidence"]) == (grade, 80)
    assert [(f.kind, f.text) for f in result.findings] == [
        ("step", "correctness"),
        ("step", "completeness"),
        ("step", "consistency"),
    ]


def test_grades_compare_after_rounding() -> None:
    assert (letter_grade(79.9999999999), letter_grade(79.99)) == ("A", "B")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (steps(90, 70, 101), "scale"),
        (steps(90, 70, "100"), "scale"),
        (said(correctness={"reason": "r", "score": 90}, confidence=1), "parse"),
        (JudgeReply(Outcome.FILTERED), "filtered"),
    ],
)
def test_a_step_missing_or_off_its_scale_fails_the_figure(reply: JudgeReply, reason: str) -> None:
    _, results = talked(before("factual_accuracy"), reply)
    assert (results["factual_accuracy"].status, results["factual_accuracy"].reason) == (Status.FAILED, reason)


def test_the_judges_own_average_is_not_asked_for() -> None:
    asks, _ = talked(before("factual_accuracy"), steps(1, 1, 1))
    assert "final" not in json.dumps(dict(asks[0].schema))
