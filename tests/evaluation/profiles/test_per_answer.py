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


def _scored_part(metric: str, value: float) -> PartValue:
    return PartValue(metric, Status.SCORED, 1 if metric == "accuracy" else 0, 5 if metric == "accuracy" else 1, value)


def _unscored_part(metric: str, status: Status, reason: str = "no_reference") -> PartValue:
    return PartValue(metric, status, 1 if metric == "accuracy" else 0, 5 if metric == "accuracy" else 1, None, reason)


FULL = (_scored_part("accuracy", 4), _scored_part("claim_support", 0.5), _scored_part("context_recall", 1.0))
METRICS = ("accuracy", "claim_support", "context_recall")


def test_an_answer_with_all_parts_is_their_weighted_sum() -> None:
    # 0.5 * (4-1)/4 + 0.3 * 0.5 + 0.2 * 1 = 0.375 + 0.15 + 0.2 = 0.725
    overall = overall_of_answer(_profile(), FULL)
    assert overall.value == pytest.approx(0.725)
    assert dict(overall.contributions) == pytest.approx(
        {"accuracy": 0.375, "claim_support": 0.15, "context_recall": 0.2}
    )


def test_inapplicable_part_is_left_out_and_weights_are_renormalised() -> None:
    # (0.375 + 0.15) / 0.8 = 0.65625
    values = (*FULL[:2], _unscored_part("context_recall", Status.NOT_APPLICABLE))
    overall = overall_of_answer(_profile(), values)
    assert overall.value == pytest.approx(0.65625)
    assert dict(overall.weights_used) == pytest.approx({"accuracy": 0.625, "claim_support": 0.375})


def test_part_left_empty_by_the_answer_keeps_its_weight() -> None:
    # no claims: 0.375 + 0 + 0.2 = 0.575
    values = (FULL[0], _unscored_part("claim_support", Status.NOT_APPLICABLE, "no_claims"), FULL[2])
    overall = overall_of_answer(_profile(), values)
    assert (overall.value, overall.zeroed) == (pytest.approx(0.575), ("claim_support",))


def test_empty_part_is_left_out_if_unanswerable_or_set_by_profile() -> None:
    # (0.375 + 0.2) / 0.7 = 0.8214285...
    values = (FULL[0], _unscored_part("claim_support", Status.NOT_APPLICABLE, "no_claims"), FULL[2])
    expected = pytest.approx(0.575 / 0.7)
    assert overall_of_answer(_profile(), values, answerable=False).value == expected
    assert overall_of_answer(_profile(on_empty_answer="leave_out"), values).value == expected


def test_failed_part_fails_the_answer_with_bounds() -> None:
    # claim_support from 0 to 1: 0.575 to 0.875
    overall = overall_of_answer(_profile(), (FULL[0], _unscored_part("claim_support", Status.FAILED), FULL[2]))
    assert (overall.status, overall.value, overall.reason) == (Status.FAILED, None, "failed_part: claim_support")
    assert (overall.low, overall.high) == pytest.approx((0.575, 0.875))


def test_a_profile_may_count_the_failed_part_as_zero() -> None:
    values = (FULL[0], _unscored_part("claim_support", Status.FAILED), FULL[2])
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
    lowest = overall_of_answer(
        profile, (_scored_part("accuracy", 1), _scored_part("claim_support", 0), _scored_part("context_recall", 0))
    )
    empty = overall_of_answer(profile, [_unscored_part(m, Status.NOT_APPLICABLE) for m in METRICS])
    overall = overall_from_answers(profile, [overall_of_answer(profile, FULL), lowest, empty], METRICS)
    # (0.725 + 0) / 2
    assert (overall.value, overall.label) == (pytest.approx(0.3625), FigureLabel.OVERALL_SCORE)


def test_more_than_a_tenth_failed_results_of_a_part_leave_only_bounds() -> None:
    profile = _profile()
    complete = overall_of_answer(profile, FULL)
    failed = overall_of_answer(profile, (FULL[0], _unscored_part("claim_support", Status.FAILED), FULL[2]))
    # 1 of 10: mean over the nine; bounds (9*0.725 + 0.575)/10 = 0.71 and (9*0.725 + 0.875)/10 = 0.74
    tenth_failed = overall_from_answers(profile, [complete] * 9 + [failed], METRICS)
    assert (tenth_failed.value, tenth_failed.low, tenth_failed.high) == pytest.approx((0.725, 0.71, 0.74))
    fifth_failed = overall_from_answers(profile, [complete] * 8 + [failed], METRICS)
    assert (fifth_failed.value, fifth_failed.reason) == (None, "failed_share: claim_support")


def test_run_without_a_judge_has_a_partial_score() -> None:
    profile = _profile()
    answers = [overall_of_answer(profile, FULL[:1])]
    overall = overall_from_answers(profile, answers, ("accuracy",))
    assert (overall.value, overall.label, overall.weight) == (
        pytest.approx(0.75),
        FigureLabel.PARTIAL,
        pytest.approx(0.5),
    )


def test_value_with_unscored_status_is_refused() -> None:
    with pytest.raises(ValueError, match="scored"):
        PartValue("a", Status.FAILED, 0, 1, 0.0)


def test_failed_whole_score_metric_follows_the_failure_rule() -> None:
    whole_score = {"categories": ["negative"], "metric": "negative_detection"}
    failed = PartValue("negative_detection", Status.FAILED, 0, 1, None)
    for settings, expected in (({"on_failure": "zero"}, (Status.SCORED, 0.0)), ({}, (Status.FAILED, None))):
        overall = overall_of_answer(_profile(whole_score=whole_score, **settings), (failed,), category="negative")
        assert (overall.status, overall.value, overall.failed) == (*expected, ("negative_detection",))
        assert (overall.low, overall.high) == (0.0, 1.0)
        assert overall.reason == ("" if settings else "failed_part: negative_detection")


def test_missing_required_metric_leaves_no_score_and_is_named() -> None:
    values = (FULL[0], _unscored_part("claim_support", Status.NOT_APPLICABLE), FULL[2])
    overall = overall_of_answer(_profile(requires=["claim_support"]), values)
    assert (overall.status, overall.reason) == (Status.NOT_APPLICABLE, "no_parts: claim_support")


EMPTY_ANSWER = (
    _scored_part("accuracy", 5),
    _unscored_part("claim_support", Status.NOT_APPLICABLE, "says_nothing"),
    FULL[2],
)


def test_empty_answer_gets_the_lowest_score() -> None:
    for changes in ({}, {"on_empty_answer": "leave_out"}):
        assert overall_of_answer(_profile(**changes), EMPTY_ANSWER).value == 0
    failed = (*EMPTY_ANSWER[:2], _unscored_part("context_recall", Status.FAILED, "timeout"))
    assert overall_of_answer(_profile(), failed).value == 0


def test_only_no_claims_by_the_judge_count_towards_the_failure_limit() -> None:
    profile = _profile(on_empty_answer="leave_out")

    def mean_score(reason: str, count: int) -> float | None:
        values = (FULL[0], _unscored_part("claim_support", Status.NOT_APPLICABLE, reason), FULL[2])
        answers = [overall_of_answer(profile, values if n < count else FULL) for n in range(10)]
        return overall_from_answers(profile, answers, METRICS).value

    assert mean_score("no_claims", 1) is not None  # a tenth is not above a tenth
    assert mean_score("no_claims", 2) is None
    assert mean_score("admits_ignorance", 5) is not None
    assert mean_score("says_nothing", 5) is not None
    assert mean_score("does_not_retrieve", 5) is not None
