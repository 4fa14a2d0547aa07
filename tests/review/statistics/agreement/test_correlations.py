"""Pearson, Spearman and Kendall correlations by hand, with ties and weights."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from review.statistics.agreement.layout import Pairs
from review.statistics.agreement.pair_statistics import kendall_tau_b, pearson, spearman
from review.statistics.agreement.statistic import Undefined
from tests.examples import max_examples
from tests.review.statistics.agreement.tables import pairs

JUDGE, EXPERT = [1, 2, 2, 3], [1, 2, 3, 3]


def test_pearson_by_hand() -> None:
    # deviations -1, 0, 0, 1 and -1.25, -0.25, 0.75, 0.75: 2 / sqrt(2 x 2.75)
    assert pearson(pairs(JUDGE, EXPERT)).values == pytest.approx(2 / 5.5**0.5)


def test_spearman_uses_mean_ranks_for_ties() -> None:
    # ranks 1, 2.5, 2.5, 4 and 1, 2, 3.5, 3.5: covariance 3.75, variances 4.5 and 4.5
    assert spearman(pairs(JUDGE, EXPERT)).values == pytest.approx(3.75 / 4.5)


def test_kendall_excludes_ties() -> None:
    # 4 concordant, 0 discordant; one pair tied on each side, so 5 untied on each: 4 / sqrt(5 x 5)
    assert kendall_tau_b(pairs(JUDGE, EXPERT)).values == pytest.approx(0.8)


def test_kendall_weights_a_pair_by_the_product() -> None:
    # pairs of answers: (1, 2) concordant 1 x 2, (1, 3) discordant... judge 1 2 3, expert 2 3 1, weights 1 2 3:
    # (1,2) concordant 2; (1,3) discordant 3; (2,3) discordant 6; no ties: (2 - 9) / 11
    assert kendall_tau_b(pairs([1, 2, 3], [2, 3, 1], [1, 2, 3])).values == pytest.approx(-7 / 11)


@pytest.mark.parametrize("statistic", [pearson, spearman, kendall_tau_b])
def test_constant_side_is_reported_as_the_reason(statistic) -> None:
    constant = pairs([3, 3, 3], [1, 2, 3])
    assert not statistic(constant).defined
    assert constant.constant_side_reason() is Undefined.JUDGE_CONSTANT
    assert pairs([1, 2], [4, 4]).constant_side_reason() is Undefined.EXPERT_CONSTANT


@given(
    st.lists(st.tuples(st.integers(-4, 9), st.integers(0, 6), st.integers(1, 5)), min_size=2, max_size=40),
)
@settings(max_examples=max_examples(200), deadline=None)
def test_kendall_equals_the_enumeration_of_all_pairs(rows: list[tuple[int, int, int]]) -> None:
    balance = judge_untied = expert_untied = 0.0
    for (x, y, v), (x2, y2, v2) in combinations(rows, 2):
        balance += v * v2 * float(np.sign(x - x2) * np.sign(y - y2))
        judge_untied += v * v2 * (x != x2)
        expert_untied += v * v2 * (y != y2)
    correlation = kendall_tau_b(pairs(*map(list, zip(*rows, strict=True))))

    assert bool(correlation.defined) == (judge_untied > 0 and expert_untied > 0)
    if correlation.defined:
        assert float(correlation.values) == pytest.approx(balance / (judge_untied * expert_untied) ** 0.5, abs=1e-9)


def test_slightly_different_values_are_not_constant() -> None:
    close = [3.0, 3.0 + 1e-7, 3.0, 3.0 + 1e-7]
    assert pearson(pairs(close, close)).defined
    assert pearson(pairs(close, close)).values == pytest.approx(1.0)


@pytest.mark.parametrize("statistic", [pearson, spearman, kendall_tau_b])
def test_several_weightings_equal_separate_computations(statistic) -> None:
    weights = [[1, 1, 1, 1], [3, 1, 2, 0.5]]
    weighted_pairs = Pairs(np.array(JUDGE, float), np.array(EXPERT, float), np.array(weights, float))
    separate = [statistic(pairs(JUDGE, EXPERT, weight)).values for weight in weights]
    assert statistic(weighted_pairs).values == pytest.approx(np.array(separate))
