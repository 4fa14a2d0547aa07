"""Correlation of scores with answer length."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from evaluation.judging.formulas import LengthBias, length_bias


def test_length_bias_of_a_worked_example() -> None:
    # 20 answers of lengths 1 to 20; scores 1..20 with the first and the last exchanged:
    # sum of d^2 = 19^2 + 19^2 = 722, rho = 1 - 6 * 722 / (20 * 399) = 1 - 4332 / 7980 = 0.457142857
    scores = [20.0, *map(float, range(2, 20)), 1.0]
    bias = length_bias(scores, list(map(float, range(1, 21))))
    assert bias is not None
    assert bias.rho == pytest.approx(0.4571428571)
    # atanh(0.45714) = 0.493716; half = 1.959964 * sqrt((1 + 0.104490) / 17) = 0.499578
    assert (bias.low, bias.high) == (pytest.approx(math.tanh(-0.00586), abs=1e-4), pytest.approx(0.7589, abs=1e-3))
    assert not bias.notable


def test_scores_that_follow_length_are_notable() -> None:
    lengths = [10.0 * n for n in range(40)]
    bias = length_bias([float(1 + n // 8) for n in range(40)], lengths)
    assert bias is not None
    assert bias.notable
    assert length_bias(lengths, lengths) == LengthBias(1, 1, 1, 40)


@pytest.mark.parametrize(
    ("scores", "lengths"),
    [
        ([3.0] * 30, [float(n) for n in range(30)]),
        ([float(n) for n in range(30)], [5.0] * 30),
        ([1.0], [1.0]),
        ([], []),
    ],
)
def test_length_bias_is_undefined_for_constant_or_few_values(scores: list[float], lengths: list[float]) -> None:
    assert length_bias(scores, lengths) is None


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 500)), min_size=20, max_size=60))
def test_length_bias_is_spearmans_correlation(pairs: list[tuple[int, int]]) -> None:
    scores, lengths = [float(s) for s, _ in pairs], [float(n) for _, n in pairs]
    bias = length_bias(scores, lengths)
    if bias is None:
        assert len(set(scores)) == 1 or len(set(lengths)) == 1
        return
    reference: Any = spearmanr(scores, lengths)
    assert bias.rho == pytest.approx(reference.statistic, abs=1e-9)
    assert -1 <= bias.low <= bias.rho <= bias.high <= 1
