"""Shares and errors by hand."""

from __future__ import annotations

import pytest

from review.statistics.agreement.pair_statistics import (
    balanced_accuracy,
    bias,
    exact,
    f1,
    mae,
    precision,
    rmse,
    true_negative_rate,
    true_positive_rate,
    within_one,
)
from tests.review.statistics.agreement.tables import pairs, table

# 10 answers: experts reject 4 (judge accepts 1 of them) and accept 6 (judge rejects 2 of them)
VERDICTS = table([[3, 1], [2, 4]])


def test_exact_and_within_one() -> None:
    # 1..3: diagonal 2 + 1 + 3 = 6 of 10; only the one answer of 3 against 1 differs by more than 1
    levels = table([[2, 1, 0], [1, 1, 1], [1, 0, 3]], [1, 2, 3])
    assert exact(levels).values == pytest.approx(0.6)
    assert within_one(levels).values == pytest.approx(0.9)


def test_errors_have_the_judges_sign_and_the_scales_unit() -> None:
    # differences judge - expert: 0.5, -1, 2
    three_pairs = pairs([3, 2, 5], [2.5, 3, 3])
    assert mae(three_pairs).values == pytest.approx(3.5 / 3)
    assert bias(three_pairs).values == pytest.approx(1.5 / 3)
    assert rmse(three_pairs).values == pytest.approx(((0.25 + 1 + 4) / 3) ** 0.5)


def test_weights_are_applied() -> None:
    # (3 x 1 + 1 x 0) / 4
    assert bias(pairs([2, 2], [1, 2], [3, 1])).values == pytest.approx(0.75)


def test_yes_no_rates() -> None:
    assert true_positive_rate(VERDICTS).values == pytest.approx(4 / 6)
    assert true_negative_rate(VERDICTS).values == pytest.approx(3 / 4)
    assert precision(VERDICTS).values == pytest.approx(4 / 5)
    # 2 x 4 / (6 + 5)
    assert f1(VERDICTS).values == pytest.approx(8 / 11)
    assert balanced_accuracy(VERDICTS).values == pytest.approx((4 / 6 + 3 / 4) / 2)


def test_rates_without_their_answers_are_undefined() -> None:
    rejected_table = table([[3, 0], [0, 0]])
    assert not true_positive_rate(rejected_table).defined
    assert not precision(rejected_table).defined
    assert not f1(rejected_table).defined
    assert not balanced_accuracy(rejected_table).defined
    assert true_negative_rate(rejected_table).values == 1.0
