"""McNemar, Holm, the gate, the ranking and the difference of corrected scores."""

from __future__ import annotations

from dataclasses import replace

import pytest

from review.statistics.correction.corrected import corrected_component
from review.statistics.correction.outcome import Estimate, Target
from review.statistics.paired_tests.gate import (
    DifferenceVerdict,
    GateVerdict,
    Resource,
    answers_to_decide,
    difference_verdict,
    fail_under,
    labels_to_decide,
    max_drop,
    questions_to_decide,
)
from review.statistics.paired_tests.paired import corrected_difference, holm, mcnemar
from review.statistics.paired_tests.ranking import RunRanking, rank_runs, rank_weighted_runs
from tests.review.statistics.correction.frames import half_labelled, yes_no


def test_mcnemar_by_hand() -> None:
    # 1 gained, 5 lost: 2 (1 + 6) / 64
    assert mcnemar(1, 5).p_value == pytest.approx(14 / 64)
    assert mcnemar(0, 0).p_value == 1.0
    assert mcnemar(3, 3).p_value == 1.0


def test_holm_by_hand() -> None:
    # 0.01 x 3, 0.02 x 2, 0.9 x 1
    assert holm({"a": 0.02, "b": 0.01, "c": 0.9}) == pytest.approx({"a": 0.04, "b": 0.03, "c": 0.9})
    # 0.03 x 2 = 0.06 is not undercut by 0.04 x 1
    assert holm({"a": 0.03, "b": 0.04}) == pytest.approx({"a": 0.06, "b": 0.06})


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.70, 0.80, GateVerdict.PASSED),
        (0.60, 0.69, GateVerdict.FAILED),
        (0.65, 0.70, GateVerdict.UNDECIDED),
        (0.65, 0.75, GateVerdict.UNDECIDED),
    ],
)
def test_fail_under_seventy_percent(low: float, high: float, verdict: GateVerdict) -> None:
    assert fail_under(low, high, 0.70) is verdict


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.6999999996, 0.8, GateVerdict.PASSED),  # 0.700000000 in nine digits
        (0.6999999994, 0.8, GateVerdict.UNDECIDED),  # 0.699999999
        (0.6, 0.6999999996, GateVerdict.UNDECIDED),  # the upper end is the limit, not below it
        (0.6, 0.6999999994, GateVerdict.FAILED),
    ],
)
def test_interval_ends_are_compared_with_the_limit_in_nine_digits(
    low: float, high: float, verdict: GateVerdict
) -> None:
    assert fail_under(low, high, 0.7) is verdict
    assert max_drop(low - 1.0, high - 1.0, 0.3) is verdict


@pytest.mark.parametrize(
    ("rate", "answers", "limit", "needed"),
    [
        (1 / 3, 3, 0.5, 40),  # 39 reach to .503, 40 to .4999
        (0.5, 8, 0.8, 12),
        (0.95, 40, 0.9, 142),
        (0.79, 100, 0.8, None),  # above 2,000
        (0.8, 100, 0.8, None),
    ],
)
def test_pass_rate_reports_how_many_answers_decide_it(
    rate: float, answers: int, limit: float, needed: int | None
) -> None:
    """Reference sizes come from scipy's beta quantiles, tried one after the other."""
    answer_count = answers_to_decide(rate, answers, limit)
    assert (answer_count and answer_count.needed) == needed


@pytest.mark.parametrize(
    ("distance", "needed"), [(0.05, 100), (0.0112, 1993), (0.0111, None), (0.003, None), (0.0, None)]
)
def test_advice_ends_at_two_thousand_questions(distance: float, needed: int | None) -> None:
    # 100 x (.05 / distance)^2: 100, 1992.98, 2029.05, 27777.8
    advice = questions_to_decide(100, 0.05, distance)
    assert (advice and advice.needed) == needed


def test_advice_ends_at_two_thousand_ratings() -> None:
    # 1 / n = (1/100 - 1/50,000) x (distance / .05)^2 + 1/50,000: .05 of .05 stays, .011 needs 1,987.9, .01 2,385.5
    advice_by_distance = {
        distance: labels_to_decide(100, 50_000, 50_000, 0.05, 0.05, distance) for distance in (0.05, 0.011, 0.01)
    }
    assert [advice and (advice.resource, advice.needed) for advice in advice_by_distance.values()] == [
        (Resource.LABELS, 100),
        (Resource.LABELS, 1988),
        None,
    ]


def test_summed_limit_is_rounded_too() -> None:
    # 0.1 + 0.2 is 0.30000000000000004, which no end of 0.3 reaches unrounded
    assert fail_under(0.3, 0.4, 0.1 + 0.2) is GateVerdict.PASSED


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (6e-10, 0.1, DifferenceVerdict.BETTER),  # 0.000000001 in nine digits
        (4e-10, 0.1, DifferenceVerdict.CANNOT_TELL),  # 0
        (0.0, 0.1, DifferenceVerdict.CANNOT_TELL),
        (-0.1, -4e-10, DifferenceVerdict.CANNOT_TELL),
        (-0.1, -6e-10, DifferenceVerdict.WORSE),
    ],
)
def test_difference_is_compared_with_zero_in_nine_digits(low: float, high: float, verdict: DifferenceVerdict) -> None:
    assert difference_verdict(low, high) is verdict


def test_max_drop_of_two_points() -> None:
    assert max_drop(-0.02, 0.05, 0.02) is GateVerdict.PASSED
    assert max_drop(-0.05, -0.021, 0.02) is GateVerdict.FAILED
    assert max_drop(-0.05, 0.01, 0.02) is GateVerdict.UNDECIDED
    with pytest.raises(ValueError, match="not negative"):
        max_drop(0, 1, -0.1)


def test_ranking_uses_common_questions_and_reports_rank_bounds() -> None:
    questions = range(100)
    runs = {
        "clear": dict.fromkeys(questions, 1.0),
        "middle": {q: float(q % 2) for q in questions},
        "near": {q: float((q + 1) % 2) for q in questions} | {"extra": 1.0},
    }
    ranking = rank_runs(runs)

    assert ranking.questions == 100
    assert [(ranked.run, ranked.mean) for ranked in ranking.order] == [("clear", 1.0), ("middle", 0.5), ("near", 0.5)]
    assert [ranked.places for ranked in ranking.order] == [(1, 1), (2, 3), (2, 3)]
    assert rank_runs({}) == RunRanking((), 0)


def test_weighted_ranking_takes_each_part_over_its_common_questions() -> None:
    # a: 0.5 x mean(1, 0) + 0.5 x 1 = 0.75; b: 0.5 x mean(1, 1) + 0.5 x 0 = 0.5; question 3 of "hit" only a has
    runs = {
        "b": {"hit": {1: 1.0, 2: 1.0}, "refusal": {9: 0.0}},
        "a": {"hit": {1: 1.0, 2: 0.0, 3: 0.0}, "refusal": {9: 1.0}},
    }
    ranking = rank_weighted_runs(runs, {"hit": 0.5, "refusal": 0.5, "unknown": 0.2})

    assert [(ranked.run, ranked.mean) for ranked in ranking.order] == [("a", 0.75), ("b", 0.5)]
    assert ranking.questions == 3


def test_single_run_has_the_first_place() -> None:
    ranking = rank_runs({"only": {1: 0.5, 2: 1.0}})

    assert [(ranked.run, ranked.mean, ranked.places) for ranked in ranking.order] == [("only", 0.75, (1, 1))]


def test_score_minus_itself_is_zero_with_only_unseen_uncertainty() -> None:
    component = yes_no([replace(answer, group=answer.key) for answer in half_labelled()])
    difference, single = (
        corrected_difference([component], [component]),
        corrected_component(component, Target.QUESTIONS_LIKE_THESE),
    )

    assert isinstance(difference, Estimate)
    assert isinstance(single, Estimate)
    # What varies takes itself out. The allowance for answers that were not seen stays: they are different answers'.
    assert (difference.value, difference.low) == pytest.approx((0.0, -difference.high), abs=1e-12)
    assert 0.0 < difference.high < (single.high - single.low) / 4


def test_unpaired_runs_add_their_variances() -> None:
    first = yes_no([replace(answer, group=("a", answer.key)) for answer in half_labelled()])
    second = yes_no([replace(answer, group=("b", answer.key)) for answer in half_labelled(4)])
    difference = corrected_difference([first], [second])
    widths = [corrected_component(estimate, Target.QUESTIONS_LIKE_THESE) for estimate in (first, second)]

    assert isinstance(difference, Estimate)
    # 0.6 x (24 - 14) / 40
    assert difference.value == pytest.approx(0.15)
    interval_widths = [estimate.high - estimate.low for estimate in widths if isinstance(estimate, Estimate)]
    # 80/79 instead of 40/39 groups; the same 18 degrees of freedom. The allowances for unseen answers add up as they
    # are, not as squares, which makes up to 3% more.
    squares = sum(w * w for w in interval_widths) * (80 / 79) / (40 / 39)
    assert squares <= (difference.high - difference.low) ** 2 <= 1.03 * squares
