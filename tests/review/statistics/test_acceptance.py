"""Acceptance rule for a new version of a judge prompt, with hand-worked figures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from review.statistics.acceptance import (
    Claim,
    LossComparison,
    forecast_test,
    holdout_shortage,
    is_accepted,
    mean_difference,
    remaining_error,
    significance_level,
    squared_losses,
)


def compare_losses(candidate: object, active: object, **overrides: object) -> LossComparison:
    candidate_losses, active_losses = np.asarray(candidate, dtype=np.float64), np.asarray(active, dtype=np.float64)
    n = len(candidate_losses)
    defaults: dict[str, object] = {
        "best": active_losses,
        "weights": np.ones(n),
        "groups": list(range(n)),
        "categories": ["all"] * n,
    }
    return LossComparison(candidate=candidate_losses, active=active_losses, **(defaults | overrides))  # type: ignore[arg-type]


def test_levels_of_tests_sum_to_five_percent() -> None:
    # 0.05/2, 0.05/6, 0.05/12: together 0.05 (1 - 1/4) = 0.0375, so that 0.0125 is left before look 4
    assert [significance_level(j) for j in (1, 2, 3)] == pytest.approx([0.025, 0.05 / 6, 0.05 / 12])
    assert remaining_error(1) == pytest.approx(0.05)
    assert remaining_error(4) == pytest.approx(0.0125)
    with pytest.raises(ValueError):
        significance_level(0)


@given(st.integers(1, 500))
def test_no_number_of_tests_spends_more_than_five_percent(test_count: int) -> None:
    total_level = math.fsum(significance_level(j) for j in range(1, test_count + 1))
    assert total_level == pytest.approx(0.05 - remaining_error(test_count + 1))
    assert total_level < 0.05


def test_losses_are_squared_distances_to_the_unrounded_label() -> None:
    # (4 - 3.5)^2 = 0.25; (1 - 3)^2 = 4; a verdict that is missing costs the width of 1..5 squared: 16
    assert squared_losses([4, 1, None], [3.5, 3, 2], 16.0).tolist() == [0.25, 4.0, 16.0]


def test_mean_loss_uses_the_draw_weights() -> None:
    assert compare_losses([1.0, 4.0], [0.0, 0.0], weights=np.array([3.0, 1.0])).loss == 1.75


def test_mean_difference_by_hand() -> None:
    # four answers alone: mean -0.5; deviations -.5 .5 -.5 .5, each a quarter: 4 (1/8)^2 = 1/16, times 4/3 = 1/12
    difference = mean_difference(np.array([-1.0, 0.0, -1.0, 0.0]), np.ones(4), np.arange(4))
    assert float(difference.mean) == -0.5
    assert float(difference.standard_error) == pytest.approx(math.sqrt(1 / 12))
    assert (difference.freedom, difference.groups) == (pytest.approx(3.0), 4)
    assert float(difference.p_below) == pytest.approx(stats.ttest_1samp([-1, 0, -1, 0], 0, alternative="less").pvalue)


def test_groups_are_summed_and_weights_count() -> None:
    # groups {-1, 0} and {-1, 0}: their sums are alike, so nothing varies between them: the sign test of two groups
    difference = mean_difference(np.array([-1.0, 0.0, -1.0, 0.0]), np.ones(4), np.array([0, 0, 1, 1]))
    assert float(difference.standard_error) == 0.0
    assert float(difference.p_below) == 0.25
    # weights 3 and 1: (3 (-1) + 1 (1)) / 4
    assert float(mean_difference(np.array([-1.0, 1.0]), np.array([3.0, 1.0]), np.arange(2)).mean) == -0.5


def test_one_group_or_no_difference_proves_nothing() -> None:
    assert float(mean_difference(np.array([-1.0, -2.0]), np.ones(2), np.zeros(2, dtype=int)).p_below) == 0.5
    assert float(mean_difference(np.zeros(40), np.ones(40), np.arange(40)).p_below) == 1.0


def test_vectorised_differences_equal_separate_ones() -> None:
    simulations = np.random.default_rng(3).standard_normal((5, 40))
    member, weights = np.arange(40) // 3, np.random.default_rng(4).uniform(1, 4, 40)
    p_values = mean_difference(simulations, weights, member).p_below
    assert p_values == pytest.approx(
        [float(mean_difference(simulation, weights, member).p_below) for simulation in simulations]
    )


def alternating(low: float, high: float, n: int = 120) -> list[float]:
    return [low if place % 2 else high for place in range(n)]


def test_better_candidate_is_accepted_and_an_equal_one_is_not() -> None:
    better = compare_losses(alternating(0.0, 1.0), alternating(1.0, 1.0))
    assert is_accepted({"correctness": better}, 1)
    assert not is_accepted({"correctness": compare_losses(alternating(1.0, 1.0), alternating(1.0, 1.0))}, 1)
    assert not is_accepted({}, 1)


def test_later_tests_need_stronger_evidence() -> None:
    # difference -1 on 8 of 120 answers, else 0: mean -1/15, p = 0.002 lies between the levels of looks 4 and 5
    comparison = compare_losses([0.0 if place % 15 == 0 else 1.0 for place in range(120)], [1.0] * 120)
    assert 0.05 / 30 < comparison.p_better < 0.05 / 20
    assert is_accepted({"correctness": comparison}, 4)
    assert not is_accepted({"correctness": comparison}, 5)


def test_one_better_metric_suffices_if_the_others_are_not_worse() -> None:
    better, equal = (
        compare_losses(alternating(0.0, 1.0), [1.0] * 120),
        compare_losses(alternating(0.9, 1.1), alternating(0.9, 1.1)),
    )
    worse = compare_losses(alternating(2.0, 1.0), alternating(1.0, 1.0))
    assert is_accepted({"correctness": better, "completeness": equal}, 1)  # 10% of the loss is the margin
    assert not is_accepted({"correctness": better, "completeness": worse}, 1)


def test_holm_shares_the_level_among_the_metrics() -> None:
    # 5 of 120: p = 0.012, below 0.025, and above 0.025 / 3
    better = compare_losses([0.0 if place % 24 == 0 else 1.0 for place in range(120)], [1.0] * 120)
    equal = compare_losses(alternating(0.9, 1.1), alternating(0.9, 1.1))
    assert 0.025 / 3 < better.p_better < 0.025
    assert is_accepted({"a": better}, 1)
    assert not is_accepted({"a": better, "b": equal, "c": equal}, 1)


def test_not_worse_is_measured_from_the_best_accepted_version() -> None:
    losses = alternating(0.9, 1.1)
    assert is_accepted({"a": compare_losses(losses, losses)}, 1, Claim.NOT_WORSE)
    worse_than_best = compare_losses(
        losses, losses, best=np.asarray(alternating(0.8, 0.9))
    )  # 1 against 1.1 x 0.85 = 0.935
    assert not is_accepted({"a": worse_than_best}, 1, Claim.NOT_WORSE)


def test_harm_in_a_category_is_a_veto() -> None:
    # better by 1 in 100 answers, worse by 1 or 0.8 in 20 of another category
    candidate, active = alternating(0.0, 0.2, 100) + alternating(1.0, 0.8, 20), [1.0] * 100 + [0.0] * 20
    names = ["plain"] * 100 + ["tables"] * 20
    comparison = compare_losses(candidate, active, categories=names)
    assert comparison.p_better < 0.001
    assert comparison.harmed_categories == ("tables",)
    assert not is_accepted({"a": comparison}, 1)
    small_category = compare_losses(candidate[:-1], active[:-1], categories=names[:-1])  # 19 answers tell too little
    assert small_category.harmed_categories == ()
    assert is_accepted({"a": small_category}, 1)


def test_too_small_holdout_reports_what_is_missing() -> None:
    shortage = holdout_shortage(f"q{place // 8}" for place in range(96))  # 12 groups of 8
    assert shortage is not None
    assert (shortage.groups, shortage.answers) == (18, 4)
    assert holdout_shortage(range(100)) is None


def test_forecast_predicts_the_test_result() -> None:
    random = np.random.default_rng(5)
    active = random.exponential(1.0, 180)
    comparison = compare_losses(np.maximum(0.0, active - 0.2 + 0.8 * random.standard_normal(180)), active)
    forecast = forecast_test(comparison, 300, 1)
    assert forecast is not None
    error = float(
        mean_difference(comparison.candidate - comparison.active, comparison.weights, np.arange(180)).standard_error
    ) * math.sqrt(180 / 300)
    # t of 299 degrees at 0.975 and at 0.8: 1.968 + 0.843
    assert forecast.detectable == pytest.approx((1.968 + 0.843) * error, rel=1e-3)
    assert forecast.improvement == pytest.approx(float(active.mean() - comparison.candidate.mean()))
    later_forecast = forecast_test(comparison, 300, 4)
    assert later_forecast is not None
    assert later_forecast.power < forecast.power
    assert forecast_test(compare_losses([1.0] * 9, [1.0] * 9), 300, 1) is None
