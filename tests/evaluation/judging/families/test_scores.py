"""Scores on numeric scales: faithfulness and relevancy, the four regulation scores with caps, and factual accuracy."""

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
from tests.evaluation.judging.families.scripted import make_case, make_reply
from tests.evaluation.judging.samples import answer, question, run_dialog


def score_reply(name: str, score: object) -> JudgeReply:
    return make_reply(**{name: {"reason": "why", "score": score}})


@pytest.mark.parametrize("family", ["generation_faithfulness", "answer_relevancy"])
@pytest.mark.parametrize("score", [0, 0.0, 0.85, 1, 1.0])
def test_any_number_in_range_is_taken_unchanged(family: str, score: float) -> None:
    _, results = run_dialog(make_case(family), score_reply(family, score))
    assert (results[family].value, results[family].reason) == (float(score), "why")


@pytest.mark.parametrize("score", [4, 85, 1.0000001, -0.1, "0.8", True, None, float("nan"), float("inf"), [0.5]])
def test_a_number_out_of_range_fails_by_scale_and_is_never_clamped(score: object) -> None:
    """The source of the generation profile clamps: it turns 4 of 5 and 85 of 100 into 1.0."""
    _, results = run_dialog(make_case("answer_relevancy"), score_reply("answer_relevancy", score))
    assert (results["answer_relevancy"].status, results["answer_relevancy"].reason) == (Status.FAILED, "scale")


def test_relevancy_is_judged_from_question_and_answer_alone() -> None:
    requests, _ = run_dialog(make_case("answer_relevancy"), score_reply("answer_relevancy", 0.5))
    assert list(requests[0].blocks) == ["question", "answer"]
    requests, _ = run_dialog(make_case("generation_faithfulness"), score_reply("generation_faithfulness", 0.5))
    assert list(requests[0].blocks) == ["question", "contexts", "answer"]


def four_scores(accuracy: object = 0.9, **overrides: object) -> dict[str, object]:
    scores = {"accuracy": accuracy, "answer_completeness": 0.8, "citations": 0.7, "context_relevance": 1, **overrides}
    return {name: {"reason": f"about {name}", "score": score} for name, score in scores.items()}


REGULATION = make_case(
    "regulation_quality",
    question("휴학은?", persona="신입생", history=("안녕하세요",), required_info=("3년",), clarification_ok=True),
)


def test_four_scores_come_from_one_call_with_issues_and_strengths_as_findings() -> None:
    requests, results = run_dialog(
        REGULATION, make_reply(**four_scores(), issues=["no article"], strengths=["clear", ""])
    )
    assert {name: result.value for name, result in results.items()} == {
        "accuracy": 0.9,
        "answer_completeness": 0.8,
        "citations": 0.7,
        "context_relevance": 1.0,
    }
    assert [(f.kind, f.text) for f in results["accuracy"].findings] == [("issue", "no article"), ("strength", "clear")]
    assert len(requests) == 1
    assert set(requests[0].blocks) == {
        *("persona", "history", "question", "reference", "required_info", "clarification_ok", "contexts", "answer")
    }


def test_a_score_off_the_scale_fails_alone_among_the_four() -> None:
    _, results = run_dialog(REGULATION, make_reply(**four_scores(accuracy=9), issues=[], strengths=[]))
    assert (results["accuracy"].status, results["accuracy"].reason) == (Status.FAILED, "scale")
    assert results["citations"].value == 0.7


def test_context_relevance_is_0_and_not_requested_without_retrieval() -> None:
    scores = four_scores()
    del scores["context_relevance"]
    requests, results = run_dialog(
        make_case("regulation_quality", answer_spec=answer("x", [])), make_reply(**scores, issues=[], strengths=[])
    )
    assert results["context_relevance"].value == 0.0
    assert "context_relevance" not in requests[0].schema["properties"]


def test_applicability_of_the_four_scores() -> None:
    specs = family_named("regulation_quality").metrics
    without_reference = applicability(specs, question(references=()), answer(contexts=None))
    assert {name: result.reason for name, result in without_reference.not_applicable.items()} == {
        "accuracy": "no_reference",
        "answer_completeness": "no_reference",
        "context_relevance": "does_not_retrieve",
    }
    with_required_info = applicability(specs, question(references=(), required_info=("3년",)), answer(contexts=None))
    assert "answer_completeness" in with_required_info.metrics


CAPS = (
    Cap(metric="accuracy", flag="unknown_phone", at_most=0),
    Cap(metric="accuracy", flag="forbidden_name", at_most=0),
    Cap(metric="accuracy", flag="avoidance", at_most=0.3),
)
SETTINGS = RuleSettings(caps=CAPS, phrases={"forbidden_names": ("서울대",)})
PASSAGES = ["제15조 휴학은 3년까지 가능하다. 문의: 041-012-2140"]


@pytest.mark.parametrize(
    ("text", "judged_score", "expected"),
    [
        ("휴학은 3년까지 가능합니다.", 0.9, 0.9),
        ("02-123-4567로 전화하세요. 3년까지 가능합니다.", 0.9, 0.0),
        ("041-012-2140으로 전화하세요. 3년까지 가능합니다.", 0.9, 0.9),  # the number is in the sources
        ("서울대에서는 3년까지 가능합니다.", 0.9, 0.0),
        ("대학마다 다릅니다.", 0.9, 0.3),
        ("대학마다 다릅니다.", 0.2, 0.2),  # a cap raises nothing
    ],
)
def test_flags_cap_accuracy_as_the_profile_says(text: str, judged_score: float, expected: float) -> None:
    case = make_case("regulation_quality", question("휴학은 몇 년?"), answer(text, PASSAGES), settings=SETTINGS)
    results = apply_caps(case, {"accuracy": Result.scored(judged_score), "citations": Result.scored(1)})
    assert results["accuracy"].value == expected
    assert results["citations"].value == 1.0
    if expected < judged_score:
        assert results["accuracy"].detail["judged"] == judged_score
        assert results["accuracy"].findings[0].kind == "flag"


def test_a_failed_score_is_not_capped_into_a_number() -> None:
    case = make_case("regulation_quality", answer_spec=answer("대학마다 다릅니다.", PASSAGES), settings=SETTINGS)
    assert apply_caps(case, {"accuracy": Result.failed("timeout")})["accuracy"].status is Status.FAILED


def step_scores(correctness: object, completeness: object, consistency: object, confidence: object = 80) -> JudgeReply:
    scores = {"correctness": correctness, "completeness": completeness, "consistency": consistency}
    return make_reply(**{n: {"reason": n, "score": s} for n, s in scores.items()}, confidence=confidence)


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
def test_three_steps_are_weighted_and_graded(scores: tuple[float, float, float], value: float, grade: str) -> None:
    _, results = run_dialog(make_case("factual_accuracy"), step_scores(*scores))
    result = results["factual_accuracy"]
    assert result.value == pytest.approx(value)
    assert (result.detail["grade"], result.detail["confidence"]) == (grade, 80)
    assert [(f.kind, f.text) for f in result.findings] == [
        ("step", "correctness"),
        ("step", "completeness"),
        ("step", "consistency"),
    ]


def test_grade_thresholds_apply_after_rounding() -> None:
    assert (letter_grade(79.9999999999), letter_grade(79.99)) == ("A", "B")


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (step_scores(90, 70, 101), "scale"),
        (step_scores(90, 70, "100"), "scale"),
        (make_reply(correctness={"reason": "r", "score": 90}, confidence=1), "parse"),
        (JudgeReply(Outcome.FILTERED), "filtered"),
    ],
)
def test_missing_or_off_scale_step_fails_the_metric(reply: JudgeReply, reason: str) -> None:
    _, results = run_dialog(make_case("factual_accuracy"), reply)
    assert (results["factual_accuracy"].status, results["factual_accuracy"].reason) == (Status.FAILED, reason)


def test_schema_does_not_request_an_overall_average() -> None:
    requests, _ = run_dialog(make_case("factual_accuracy"), step_scores(1, 1, 1))
    assert "final" not in json.dumps(dict(requests[0].schema))
