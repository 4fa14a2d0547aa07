"""The rule by which a new version of a judge prompt takes the place of the active one; figures worked by hand."""

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


def compared(candidate: object, active: object, **more: object) -> LossComparison:
    ours, theirs = np.asarray(candidate, dtype=np.float64), np.asarray(active, dtype=np.float64)
    n = len(ours)
    given: dict[str, object] = {
        "best": theirs,
        "weights": np.ones(n),
        "groups": list(range(n)),
        "categories": ["all"] * n,
    }
    return LossComparison(candidate=ours, active=theirs, **(given | more))  # type: ignore[arg-type]


def test_levels_of_looks_add_up_to_five_percent() -> None:
    # 0.05/2, 0.05/6, 0.05/12: together 0.05 (1 - 1/4) = 0.0375, so that 0.0125 is left before look 4
    assert [significance_level(j) for j in (1, 2, 3)] == pytest.approx([0.025, 0.05 / 6, 0.05 / 12])
    assert remaining_error(1) == pytest.approx(0.05)
    assert remaining_error(4) == pytest.approx(0.0125)
    with pytest.raises(ValueError):
        significance_level(0)


@given(st.integers(1, 500))
def test_no_number_of_looks_spends_more_than_five_percent(looks: int) -> None:
    spent = math.fsum(significance_level(j) for j in range(1, looks + 1))
    assert spent == pytest.approx(0.05 - remaining_error(looks + 1))
    assert spent < 0.05


def test_losses_are_squared_distances_to_the_unrounded_label() -> None:
    # (4 - 3.5)^2 = 0.25; (1 - 3)^2 = 4; a verdict that is missing costs the width of 1..5 squared: 16
    assert squared_losses([4, 1, None], [3.5, 3, 2], 16.0).tolist() == [0.25, 4.0, 16.0]


def test_a_mean_loss_is_by_the_weights_of_the_draw() -> None:
    assert compared([1.0, 4.0], [0.0, 0.0], weights=np.array([3.0, 1.0])).loss == 1.75


def test_evidence_by_hand() -> None:
    # four answers alone: mean -0.5; deviations -.5 .5 -.5 .5, each a quarter: 4 (1/8)^2 = 1/16, times 4/3 = 1/12
    found = mean_difference(np.array([-1.0, 0.0, -1.0, 0.0]), np.ones(4), np.arange(4))
    assert float(found.mean) == -0.5
    assert float(found.standard_error) == pytest.approx(math.sqrt(1 / 12))
    assert (found.freedom, found.groups) == (pytest.approx(3.0), 4)
    assert float(found.p_below) == pytest.approx(stats.ttest_1samp([-1, 0, -1, 0], 0, alternative="less").pvalue)


def test_groups_are_summed_and_weights_count() -> None:
    # groups {-1, 0} and {-1, 0}: their sums are alike, so nothing varies between them: the sign test of two groups
    found = mean_difference(np.array([-1.0, 0.0, -1.0, 0.0]), np.ones(4), np.array([0, 0, 1, 1]))
    assert float(found.standard_error) == 0.0
    assert float(found.p_below) == 0.25
    # weights 3 and 1: (3 (-1) + 1 (1)) / 4
    assert float(mean_difference(np.array([-1.0, 1.0]), np.array([3.0, 1.0]), np.arange(2)).mean) == -0.5


def test_one_group_and_no_difference_prove_nothing() -> None:
    assert float(mean_difference(np.array([-1.0, -2.0]), np.ones(2), np.zeros(2, dtype=int)).p_below) == 0.5
    assert float(mean_difference(np.zeros(40), np.ones(40), np.arange(40)).p_below) == 1.0


def test_several_lives_at_once_are_those_one_by_one() -> None:
    lives = np.random.default_rng(3).standard_normal((5, 40))
    member, weights = np.arange(40) // 3, np.random.default_rng(4).uniform(1, 4, 40)
    together = mean_difference(lives, weights, member).p_below
    assert together == pytest.approx([float(mean_difference(one, weights, member).p_below) for one in lives])


def alternating(low: float, high: float, n: int = 120) -> list[float]:
    return [low if place % 2 else high for place in range(n)]


def test_a_better_candidate_is_accepted_and_an_equal_one_is_not() -> None:
    better = compared(alternating(0.0, 1.0), alternating(1.0, 1.0))
    assert is_accepted({"correctness": better}, 1)
    assert not is_accepted({"correctness": compared(alternating(1.0, 1.0), alternating(1.0, 1.0))}, 1)
    assert not is_accepted({}, 1)


def test_later_looks_ask_for_more() -> None:
    # difference -1 on 8 of 120 answers, else 0: mean -1/15, p = 0.002 lies between the levels of looks 4 and 5
    eight = compared([0.0 if place % 15 == 0 else 1.0 for place in range(120)], [1.0] * 120)
    assert 0.05 / 30 < eight.p_better < 0.05 / 20
    assert is_accepted({"correctness": eight}, 4)
    assert not is_accepted({"correctness": eight}, 5)


def test_one_metric_better_and_the_others_not_worse() -> None:
    better, same = compared(alternating(0.0, 1.0), [1.0] * 120), compared(alternating(0.9, 1.1), alternating(0.9, 1.1))
    worse = compared(alternating(2.0, 1.0), alternating(1.0, 1.0))
    assert is_accepted({"correctness": better, "completeness": same}, 1)  # 10% of the loss is the margin
    assert not is_accepted({"correctness": better, "completeness": worse}, 1)


def test_holm_shares_the_level_among_the_metrics() -> None:
    # 5 of 120: p = 0.012, below 0.025, and above 0.025 / 3
    five = compared([0.0 if place % 24 == 0 else 1.0 for place in range(120)], [1.0] * 120)
    same = compared(alternating(0.9, 1.1), alternating(0.9, 1.1))
    assert 0.025 / 3 < five.p_better < 0.025
    assert is_accepted({"a": five}, 1)
    assert not is_accepted({"a": five, "b": same, "c": same}, 1)


def test_not_worse_is_measured_from_the_best_version_ever_accepted() -> None:
    ours = alternating(0.9, 1.1)
    assert is_accepted({"a": compared(ours, ours)}, 1, Claim.NOT_WORSE)
    crept = compared(ours, ours, best=np.asarray(alternating(0.8, 0.9)))  # 1 against 1.1 x 0.85 = 0.935
    assert not is_accepted({"a": crept}, 1, Claim.NOT_WORSE)


def test_harm_in_a_category_is_a_veto() -> None:
    # better by 1 in 100 answers, worse by 1 or 0.8 in 20 of another category
    candidate, active = alternating(0.0, 0.2, 100) + alternating(1.0, 0.8, 20), [1.0] * 100 + [0.0] * 20
    names = ["plain"] * 100 + ["tables"] * 20
    one = compared(candidate, active, categories=names)
    assert one.p_better < 0.001
    assert one.harmed_categories == ("tables",)
    assert not is_accepted({"a": one}, 1)
    few = compared(candidate[:-1], active[:-1], categories=names[:-1])  # 19 answers tell too little
    assert few.harmed_categories == ()
    assert is_accepted({"a": few}, 1)


def test_a_hold_out_that_is_too_small_says_what_is_missing() -> None:
    lacks = holdout_shortage(f"q{place // 8}" for place in range(96))  # 12 groups of 8
    assert lacks is not None
    assert (lacks.groups, lacks.answers) == (18, 4)
    assert holdout_shortage(range(100)) is None


def test_a_forecast_foresees_what_the_test_finds() -> None:
    random = np.random.default_rng(5)
    active = random.exponential(1.0, 180)
    one = compared(np.maximum(0.0, active - 0.2 + 0.8 * random.standard_normal(180)), active)
    ahead = forecast_test(one, 300, 1)
    assert ahead is not None
    error = float(mean_difference(one.candidate - one.active, one.weights, np.arange(180)).standard_error) * math.sqrt(
        180 / 300
    )
    # t of 299 degrees at 0.975 and at 0.8: 1.968 + 0.843
    assert ahead.detectable == pytest.approx((1.968 + 0.843) * error, rel=1e-3)
    assert ahead.improvement == pytest.approx(float(active.mean() - one.candidate.mean()))
    later = forecast_test(one, 300, 4)
    assert later is not None
    assert later.power < ahead.power
    assert forecast_test(compared([1.0] * 9, [1.0] * 9), 300, 1) is None
