"""The overall score of per-answer profiles, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from evaluation.core.samples import Status
from evaluation.profiles.arithmetic import FigureLabel
from evaluation.profiles.per_answer import PartValue, overall_from_answers, overall_of_answer
from evaluation.profiles.spec import ProfileSpec


def _profile(**changes: Any) -> ProfileSpec:
    parts = [
        {"metric": "accuracy", "weight": 0.5},
        {"metric": "claim_support", "weight": 0.3},
        {"metric": "context_recall", "weight": 0.2},
    ]
    base = {"name": "p", "title": {"en": "T", "ko": "T"}, "unit": "per_answer", "normalise": "min_max", "parts": parts}
    return ProfileSpec.model_validate(base | changes)


def _scored(metric: str, value: float) -> PartValue:
    return PartValue(metric, Status.SCORED, 1 if metric == "accuracy" else 0, 5 if metric == "accuracy" else 1, value)


def _unscored(metric: str, status: Status, reason: str = "no_reference") -> PartValue:
    return PartValue(metric, status, 1 if metric == "accuracy" else 0, 5 if metric == "accuracy" else 1, None, reason)


FULL = (_scored("accuracy", 4), _scored("claim_support", 0.5), _scored("context_recall", 1.0))
METRICS = ("accuracy", "claim_support", "context_recall")


def test_an_answer_with_all_parts_is_their_weighted_sum() -> None:
    # 0.5 * (4-1)/4 + 0.3 * 0.5 + 0.2 * 1 = 0.375 + 0.15 + 0.2 = 0.725
    overall = overall_of_answer(_profile(), FULL)
    assert overall.value == pytest.approx(0.725)
    assert dict(overall.contributions) == pytest.approx(
        {"accuracy": 0.375, "claim_support": 0.15, "context_recall": 0.2}
    )


def test_a_part_the_question_or_system_lacks_is_left_out_and_the_weights_are_returned() -> None:
    # (0.375 + 0.15) / 0.8 = 0.65625
    values = (*FULL[:2], _unscored("context_recall", Status.NOT_APPLICABLE))
    overall = overall_of_answer(_profile(), values)
    assert overall.value == pytest.approx(0.65625)
    assert dict(overall.weights_used) == pytest.approx({"accuracy": 0.625, "claim_support": 0.375})


def test_a_part_the_answer_left_empty_keeps_its_weight_and_adds_zero() -> None:
    # no claims: 0.375 + 0 + 0.2 = 0.575
    values = (FULL[0], _unscored("claim_support", Status.NOT_APPLICABLE, "no_claims"), FULL[2])
    overall = overall_of_answer(_profile(), values)
    assert (overall.value, overall.zeroed) == (pytest.approx(0.575), ("claim_support",))


def test_on_an_unanswerable_question_or_by_the_profile_the_empty_part_is_left_out() -> None:
    # (0.375 + 0.2) / 0.7 = 0.8214285...
    values = (FULL[0], _unscored("claim_support", Status.NOT_APPLICABLE, "no_claims"), FULL[2])
    expected = pytest.approx(0.575 / 0.7)
    assert overall_of_answer(_profile(), values, answerable=False).value == expected
    assert overall_of_answer(_profile(on_empty_answer="leave_out"), values).value == expected


def test_a_failed_part_fails_the_answer_and_leaves_bounds() -> None:
    # claim_support from 0 to 1: 0.575 to 0.875
    overall = overall_of_answer(_profile(), (FULL[0], _unscored("claim_support", Status.FAILED), FULL[2]))
    assert (overall.status, overall.value, overall.reason) == (Status.FAILED, None, "failed_part: claim_support")
    assert (overall.low, overall.high) == pytest.approx((0.575, 0.875))


def test_a_profile_may_count_the_failed_part_as_zero() -> None:
    values = (FULL[0], _unscored("claim_support", Status.FAILED), FULL[2])
    assert overall_of_answer(_profile(on_failure="zero"), values).value == pytest.approx(0.575)


def test_a_negative_question_is_scored_by_its_check_alone() -> None:
    profile = _profile(whole_score={"metric": "negative_detection", "categories": ["negative"]})
    check = PartValue("negative_detection", Status.SCORED, 0, 1, 1.0)
    overall = overall_of_answer(profile, (*FULL, check), category="negative")
    assert (overall.value, dict(overall.weights_used)) == (1.0, {"negative_detection": 1.0})
    assert overall_of_answer(profile, (*FULL, check), category="single_hop").value == pytest.approx(0.725)


def test_a_part_with_categories_applies_to_them_only() -> None:
    parts = [{"metric": "accuracy", "weight": 0.5}, {"metric": "claim_support", "weight": 0.5, "categories": ["a"]}]
    # a: 0.5 * 0.75 + 0.5 * 0.5 = 0.625; b: accuracy alone, 0.75
    assert overall_of_answer(_profile(parts=parts), FULL, category="a").value == pytest.approx(0.625)
    assert overall_of_answer(_profile(parts=parts), FULL, category="b").value == pytest.approx(0.75)


def test_a_run_is_the_mean_of_its_scored_answers() -> None:
    profile = _profile()
    other = overall_of_answer(
        profile, (_scored("accuracy", 1), _scored("claim_support", 0), _scored("context_recall", 0))
    )
    empty = overall_of_answer(profile, [_unscored(m, Status.NOT_APPLICABLE) for m in METRICS])
    overall = overall_from_answers(profile, [overall_of_answer(profile, FULL), other, empty], METRICS)
    # (0.725 + 0) / 2
    assert (overall.value, overall.label) == (pytest.approx(0.3625), FigureLabel.OVERALL_SCORE)


def test_more_than_a_tenth_failed_results_of_a_part_leave_only_bounds() -> None:
    profile = _profile()
    good = overall_of_answer(profile, FULL)
    failed = overall_of_answer(profile, (FULL[0], _unscored("claim_support", Status.FAILED), FULL[2]))
    # 1 of 10: mean over the nine; bounds (9*0.725 + 0.575)/10 = 0.71 and (9*0.725 + 0.875)/10 = 0.74
    some = overall_from_answers(profile, [good] * 9 + [failed], METRICS)
    assert (some.value, some.low, some.high) == pytest.approx((0.725, 0.71, 0.74))
    many = overall_from_answers(profile, [good] * 8 + [failed], METRICS)
    assert (many.value, many.reason) == (None, "failed_share: claim_support")


def test_without_the_judge_the_run_has_a_labelled_partial_figure() -> None:
    profile = _profile()
    answers = [overall_of_answer(profile, FULL[:1])]
    overall = overall_from_answers(profile, answers, ("accuracy",))
    assert (overall.value, overall.label, overall.weight) == (
        pytest.approx(0.75),
        FigureLabel.PARTIAL,
        pytest.approx(0.5),
    )


def test_a_value_and_a_status_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="scored"):
        PartValue("a", Status.FAILED, 0, 1, 0.0)


def test_the_one_metric_that_decides_all_counts_0_where_the_profile_counts_failures_so() -> None:
    whole = {"categories": ["negative"], "metric": "negative_detection"}
    failed = PartValue("negative_detection", Status.FAILED, 0, 1, None)
    for settings, expected in (({"on_failure": "zero"}, (Status.SCORED, 0.0)), ({}, (Status.FAILED, None))):
        overall = overall_of_answer(_profile(whole_score=whole, **settings), (failed,), category="negative")
        assert (overall.status, overall.value, overall.failed) == (*expected, ("negative_detection",))
        assert (overall.low, overall.high) == (0.0, 1.0)
        assert overall.reason == ("" if settings else "failed_part: negative_detection")


def test_an_answer_without_a_metric_that_the_profile_requires_has_no_score_and_says_which() -> None:
    values = (FULL[0], _unscored("claim_support", Status.NOT_APPLICABLE), FULL[2])
    overall = overall_of_answer(_profile(requires=["claim_support"]), values)
    assert (overall.status, overall.reason) == (Status.NOT_APPLICABLE, "no_parts: claim_support")


SILENT = (_scored("accuracy", 5), _unscored("claim_support", Status.NOT_APPLICABLE, "says_nothing"), FULL[2])


def test_an_answer_that_says_nothing_gets_the_lowest_score_whatever_was_retrieved() -> None:
    for changes in ({}, {"on_empty_answer": "leave_out"}):
        assert overall_of_answer(_profile(**changes), SILENT).value == 0
    failed = (*SILENT[:2], _unscored("context_recall", Status.FAILED, "timeout"))
    assert overall_of_answer(_profile(), failed).value == 0


def test_no_claims_by_the_judge_alone_count_towards_the_limit_of_failures() -> None:
    profile = _profile(on_empty_answer="leave_out")

    def run(reason: str, share: int) -> float | None:
        left_out = (FULL[0], _unscored("claim_support", Status.NOT_APPLICABLE, reason), FULL[2])
        answers = [overall_of_answer(profile, left_out if n < share else FULL) for n in range(10)]
        return overall_from_answers(profile, answers, METRICS).value

    assert run("no_claims", 1) is not None  # a tenth is not above a tenth
    assert run("no_claims", 2) is None
    assert run("admits_ignorance", 5) is not None
    assert run("says_nothing", 5) is not None
    assert run("does_not_retrieve", 5) is not None
