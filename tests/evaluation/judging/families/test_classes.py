"""Classes: correct, wrong or not known; and what an answer does with a negative question."""

from __future__ import annotations

import pytest

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import CheckPhrases, Status
from evaluation.judging.calls import JudgeReply
from evaluation.judging.catalogue import family_named
from evaluation.judging.prechecks import applicability
from evaluation.network.outcomes import Outcome
from tests.evaluation.judging.families.scripted import before, said
from tests.evaluation.judging.samples import answer, question, talked


def classed(label: object) -> JudgeReply:
    return said(answer_class={"reason": "r", "label": label})


@pytest.mark.parametrize("label", ["CORRECT", "WRONG"])
def test_the_judge_decides_between_correct_and_wrong(label: str) -> None:
    asks, results = talked(before("answer_class"), classed(label))
    assert results["answer_class"].label == label
    assert asks[0].schema["properties"]["answer_class"]["properties"]["label"]["enum"] == ["CORRECT", "WRONG"]


@pytest.mark.parametrize("text", ["I don't know.", "잘 모르겠습니다.", "n/a"])
def test_an_answer_that_admits_not_knowing_is_told_by_rule_and_nobody_is_asked(text: str) -> None:
    asks, results = talked(before("answer_class", given=answer(text)))
    assert (asks, results["answer_class"].label) == ([], "DONT_KNOW")
    assert results["answer_class"].detail == {"by": "rule"}


@pytest.mark.parametrize("label", ["DONT_KNOW", "correct", "PARTLY", 1, None])
def test_a_label_that_was_not_offered_is_off_the_scale(label: object) -> None:
    _, results = talked(before("answer_class"), classed(label))
    assert (results["answer_class"].status, results["answer_class"].reason) == (Status.FAILED, "scale")


def trap(check: str, **fields: object) -> object:
    return question("Where is the moon branch?", category="negative", check=check, **fields)


def labelled(label: str) -> JudgeReply:
    return said(negative_label={"reason": "It says so.", "label": label})


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
    found = set()
    for label in ("abstain", "correct_premise", "answer", "fabricate"):
        case = before("negative_questions", trap(check, check_phrases=phrases), answer("Leave is long."))
        _, results = talked(case, labelled(label))
        assert results["negative_label"].label == label
        assert results["negative_detection"].detail["label"] == label
        if results["negative_detection"].value == 1:
            found.add(label)
    assert found == passing


def test_a_plain_answer_passes_where_a_disclaimer_was_wanted_and_its_phrases_are_there() -> None:
    case = before("negative_questions", trap(DISCLAIMER), answer("원금은 보장되지 않습니다."))
    _, results = talked(case, labelled("answer"))
    detection = results["negative_detection"]
    assert (detection.value, detection.detail["rule"]) == (1.0, 1.0)
    assert any(finding.start is not None for finding in detection.findings)  # the rule's place stands beside it


def test_the_judge_overrules_the_phrases_in_both_directions() -> None:
    said_no = answer("존재하지 않습니다. 다만 달 지점은 고요의 바다 12번지입니다.")
    _, results = talked(before("negative_questions", trap(HALLUCINATE), said_no), labelled("fabricate"))
    assert (results["negative_detection"].value, results["negative_detection"].detail["rule"]) == (0.0, 1.0)
    quiet = answer("We only run branches on Earth.")
    _, results = talked(before("negative_questions", trap(HALLUCINATE), quiet), labelled("correct_premise"))
    assert (results["negative_detection"].value, results["negative_detection"].detail["rule"]) == (1.0, 0.0)


def test_a_profiles_own_check_passes_with_the_labels_it_states() -> None:
    settings = RuleSettings(
        checks={"should_answer_anyway": CheckPhrases(any_of=("branch",))}, passing={"should_answer_anyway": ("answer",)}
    )
    for label, expected in (("answer", 1.0), ("abstain", 0.0)):
        case = before("negative_questions", trap("should_answer_anyway"), settings=settings)
        _, results = talked(case, labelled(label))
        assert results["negative_detection"].value == expected


def test_without_a_label_the_rule_does_not_step_in() -> None:
    _, results = talked(before("negative_questions", trap(HALLUCINATE)), JudgeReply(Outcome.TIMEOUT))
    assert {name: (r.status, r.reason) for name, r in results.items()} == {
        "negative_label": (Status.FAILED, "timeout"),
        "negative_detection": (Status.FAILED, "timeout"),
    }


def test_a_check_that_nobody_defines_fails_the_detection_alone() -> None:
    _, results = talked(before("negative_questions", trap("should_fly")), labelled("abstain"))
    assert results["negative_label"].label == "abstain"
    assert results["negative_detection"].reason == "unknown_check: should_fly"


def test_other_questions_are_not_asked_about() -> None:
    parts = applicability(family_named("negative_questions").produced_metrics, question(), answer())
    assert {name: result.reason for name, result in parts.not_applicable.items()} == {
        "negative_label": "not_negative",
        "negative_detection": "not_negative",
    }
