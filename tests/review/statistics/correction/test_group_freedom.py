"""Degrees of freedom of a variance over groups."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.statistics.correction.outcome import Influence, Method, Target, group_freedom, target_interval


@pytest.mark.parametrize("groups", [3, 12, 150])
def test_equal_groups_have_one_degree_less_than_their_number(groups: int) -> None:
    assert group_freedom(np.array([7] * groups)) == pytest.approx(groups - 1)


def test_two_groups_have_one_degree_whatever_their_sizes() -> None:
    assert group_freedom(np.array([1, 99])) == 1.0
    assert group_freedom(np.array([5])) == 1.0


def test_one_large_group_of_three_by_hand() -> None:
    # shares 1/2, 1/4, 1/4, squares 1/4, 1/16, 1/16: the sum is S = (1/4 u_1)^2-like in two contrasts.
    # S_1 = (u_1 - v) / 4 with v the mean of u_2, u_3: S_1 = -(S_2 + S_3), and d = (u_2 - u_3) / 8:
    # S_2, S_3 = -S_1 / 2 +- d, so that the sum of squares is 1.5 S_1^2 + 2 d^2, of variances 1.5 / 16 and 2 / 64:
    # 1.5 x 1.5 / 16 = .140625 and 2 x 2 / 64 = .0625: as multiples of chi-squared 1.5 x .09375 and 2 x .03125
    large, small = 1.5 * 1.5 / 16, 2 * 2 / 64
    assert group_freedom(np.array([2, 1, 1])) == pytest.approx((large + small) ** 2 / (large**2 + small**2))


@given(st.lists(st.integers(1, 200), min_size=3, max_size=40))
def test_degrees_equal_those_of_the_explicit_matrix(sizes: list[int]) -> None:
    share = np.array(sizes) / sum(sizes)
    centred = np.eye(len(sizes)) - np.outer(share, np.ones(len(sizes)))
    matrix = centred @ np.diag(share**2) @ centred.T
    freedom = group_freedom(np.array(sizes))
    expected = np.trace(matrix) ** 2 / np.trace(matrix @ matrix)
    assert freedom == pytest.approx(expected, rel=1e-4)
    assert 1.0 <= freedom <= len(sizes) - 1 + 1e-9


def test_interval_needs_two_groups() -> None:
    influence_values = np.array([0.1, 0.1, -0.1, -0.1])
    influence = Influence(0.5, influence_values, influence_values, Method.MEAN_OF_LABELS, None)
    arguments = (np.ones(4, dtype=np.bool_), Target.QUESTIONS_LIKE_THESE, (0.0, 1.0), 0.95)
    ends = target_interval(influence, np.array([0, 0, 1, 1]), *arguments)
    assert ends is not None
    assert ends.groups == 2
    assert target_interval(influence, np.zeros(4, dtype=np.int64), *arguments) is None
