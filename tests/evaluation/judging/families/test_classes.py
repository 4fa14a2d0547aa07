"""Answer classes, and labels of answers to negative questions."""

from __future__ import annotations

import pytest

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import CheckPhrases, Status
from evaluation.judging.calls import JudgeReply
from evaluation.judging.catalogue import family_named
from evaluation.judging.prechecks import applicability
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.families.scripted import make_case, make_reply
from tests.evaluation.judging.samples import answer, question, run_dialog


def class_reply(label: object) -> JudgeReply:
    return make_reply(answer_class={"reason": "r", "label": label})


@pytest.mark.parametrize("label", ["CORRECT", "WRONG"])
def test_the_judge_decides_between_correct_and_wrong(label: str) -> None:
    requests, results = run_dialog(make_case("answer_class"), class_reply(label))
    assert results["answer_class"].label == label
    assert requests[0].schema["properties"]["answer_class"]["properties"]["label"]["enum"] == ["CORRECT", "WRONG"]


@pytest.mark.parametrize("text", ["I don't know.", "잘 모르겠습니다.", "n/a"])
def test_admission_of_ignorance_is_classified_by_rule_without_a_call(text: str) -> None:
    requests, results = run_dialog(make_case("answer_class", answer_spec=answer(text)))
    assert (requests, results["answer_class"].label) == ([], "DONT_KNOW")
    assert results["answer_class"].detail == {"by": "rule"}


@pytest.mark.parametrize("label", ["DONT_KNOW", "correct", "PARTLY", 1, None])
def test_a_label_that_was_not_offered_is_off_the_scale(label: object) -> None:
    _, results = run_dialog(make_case("answer_class"), class_reply(label))
    assert (results["answer_class"].status, results["answer_class"].reason) == (Status.FAILED, "scale")


def negative_question(check: str, **fields: object) -> object:
    return question("Where is the moon branch?", category="negative", check=check, **fields)


def label_reply(label: str) -> JudgeReply:
    return make_reply(negative_label={"reason": "It says so.", "label": label})


HALLUCINATE, PREMISE = "should_not_hallucinate", "should_correct_premise"
NO_DATA, DISCLAIMER = "should_not_fabricate_data", "should_provide_accurate_disclaimer"


@pytest.mark.parametrize(
    ("check", "passing"),
    [
        (HALLUCINATE, {"abstain", "correct_premise"}),
        (PREMISE, {"correct_premise"}),
        (NO_DATA, {"abstain", "correct_premise"}),
        (DISCLAIMER, {"abstain", "correct_premise"}),  # the phrases are not met by "Leave is long."
    ],
)
def test_the_label_decides_whether_the_check_is_passed(check: str, passing: set[str]) -> None:
    phrases = CheckPhrases(all_of=("earth",)) if check == PREMISE else None
    passed_labels = set()
    for label in ("abstain", "correct_premise", "answer", "fabricate"):
        case = make_case(
            "negative_questions", negative_question(check, check_phrases=phrases), answer("Leave is long.")
        )
        _, results = run_dialog(case, label_reply(label))
        assert results["negative_label"].label == label
        assert results["negative_detection"].detail["label"] == label
        if results["negative_detection"].value == 1:
            passed_labels.add(label)
    assert passed_labels == passing


def test_answer_with_required_disclaimer_phrases_passes() -> None:
    case = make_case("negative_questions", negative_question(DISCLAIMER), answer("원금은 보장되지 않습니다."))
    _, results = run_dialog(case, label_reply("answer"))
    detection = results["negative_detection"]
    assert (detection.value, detection.detail["rule"]) == (1.0, 1.0)
    assert any(finding.start is not None for finding in detection.findings)  # the rule's place stands beside it


def test_the_judge_overrules_the_phrases_in_both_directions() -> None:
    denial = answer("존재하지 않습니다. 다만 달 지점은 고요의 바다 12번지입니다.")
    _, results = run_dialog(
        make_case("negative_questions", negative_question(HALLUCINATE), denial), label_reply("fabricate")
    )
    assert (results["negative_detection"].value, results["negative_detection"].detail["rule"]) == (0.0, 1.0)
    paraphrase = answer("We only run branches on Earth.")
    _, results = run_dialog(
        make_case("negative_questions", negative_question(HALLUCINATE), paraphrase), label_reply("correct_premise")
    )
    assert (results["negative_detection"].value, results["negative_detection"].detail["rule"]) == (1.0, 0.0)


def test_custom_check_of_a_profile_passes_with_its_labels() -> None:
    settings = RuleSettings(
        checks={"should_answer_anyway": CheckPhrases(any_of=("branch",))}, passing={"should_answer_anyway": ("answer",)}
    )
    for label, expected in (("answer", 1.0), ("abstain", 0.0)):
        case = make_case("negative_questions", negative_question("should_answer_anyway"), settings=settings)
        _, results = run_dialog(case, label_reply(label))
        assert results["negative_detection"].value == expected


def test_rule_does_not_replace_a_missing_label() -> None:
    _, results = run_dialog(
        make_case("negative_questions", negative_question(HALLUCINATE)), JudgeReply(Outcome.TIMEOUT)
    )
    assert {name: (r.status, r.reason) for name, r in results.items()} == {
        "negative_label": (Status.FAILED, "timeout"),
        "negative_detection": (Status.FAILED, "timeout"),
    }


def test_undefined_check_fails_only_the_detection() -> None:
    _, results = run_dialog(make_case("negative_questions", negative_question("should_fly")), label_reply("abstain"))
    assert results["negative_label"].label == "abstain"
    assert results["negative_detection"].reason == "unknown_check: should_fly"


def test_other_questions_are_not_applicable() -> None:
    parts = applicability(family_named("negative_questions").produced_metrics, question(), answer())
    assert {name: result.reason for name, result in parts.not_applicable.items()} == {
        "negative_label": "not_negative",
        "negative_detection": "not_negative",
    }
