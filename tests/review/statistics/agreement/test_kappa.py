"""Cohen's kappa by hand."""

from __future__ import annotations

import pytest

from review.statistics.agreement.kappa import cohen_kappa, cohen_kappa_linear, cohen_kappa_quadratic
from tests.review.statistics.agreement.tables import table


def test_unweighted_kappa_of_two_by_two() -> None:
    # agreement 35/50 = 0.7; by chance 25/50 x 30/50 + 25/50 x 20/50 = 0.5; (0.7 - 0.5) / (1 - 0.5) = 0.4
    assert cohen_kappa(table([[20, 5], [10, 15]])).values == pytest.approx(0.4)


def test_weighted_kappa_of_three_levels() -> None:
    # experts 2, 2, 2; judge 2, 3, 1 of 6 answers
    # linear: observed 1 (0 against 1) + 2 (2 against 0) = 3; expected sum r_i c_j |i - j| / 6
    #   = (2x(3x1 + 1x2) + 2x(2x1 + 1x1) + 2x(2x2 + 3x1)) / 6 = (10 + 6 + 14) / 6 = 5; 1 - 3/5 = 0.4
    # quadratic: observed 1 + 4 = 5; expected (2x(3 + 4) + 2x(2 + 1) + 2x(2x4 + 3)) / 6 = 42/6 = 7; 1 - 5/7 = 2/7
    cells = [[1, 1, 0], [0, 2, 0], [1, 0, 1]]
    assert cohen_kappa_linear(table(cells)).values == pytest.approx(0.4)
    assert cohen_kappa_quadratic(table(cells)).values == pytest.approx(2 / 7)


def test_weights_follow_values_not_positions() -> None:
    # The same table with values 0, 1, 10: linear distances 1, 9 and 10.
    # observed 1x1 + 1x10 = 11; expected (2x(3x1 + 1x10) + 2x(2x1 + 1x9) + 2x(2x10 + 3x9)) / 6
    #   = (26 + 22 + 94) / 6 = 71/3; 1 - 33/71 = 38/71
    cells = [[1, 1, 0], [0, 2, 0], [1, 0, 1]]
    assert cohen_kappa_linear(table(cells, [0, 1, 10])).values == pytest.approx(38 / 71)


def test_kappa_is_undefined_when_both_use_one_category() -> None:
    assert not cohen_kappa(table([[5, 0], [0, 0]])).defined
    assert not cohen_kappa_quadratic(table([[5, 0], [0, 0]])).defined


def test_kappa_is_zero_when_one_side_is_constant() -> None:
    # agreement equals chance: 3/5 against 1 x 3/5
    assert cohen_kappa(table([[3, 0], [2, 0]])).values == pytest.approx(0.0)
