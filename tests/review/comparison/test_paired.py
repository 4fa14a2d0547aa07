"""Two runs on the same questions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from review.comparison.paired import paired_difference
from review.comparison.permutation import permutation_p
from review.correction.outcome import Target


def test_difference_by_hand() -> None:
    # differences 1, 0, 1, 0, -1 over 5 questions: mean 0.2; sum of squares 3 - 5 x 0.04 = 2.8, variance
    # 2.8 x 5/4 / 25 = 0.14; t with 4 df: 2.776445. Detectable: (2.776445 + 0.940965) x sqrt(0.14)
    ours, baseline = dict(enumerate([1, 1, 1, 0, 0])), dict(enumerate([0, 1, 0, 0, 1]))
    found = paired_difference(ours, baseline | {"other": 1})

    assert found is not None
    assert found.value == pytest.approx(0.2)
    assert found.high == pytest.approx(0.2 + 2.776445 * 0.14**0.5, rel=1e-5)
    assert (found.wins, found.losses, found.ties) == (2, 1, 2)
    assert (found.n, found.groups, found.only_ours, found.only_baseline) == (5, 5, 0, 1)
    assert found.detectable == pytest.approx((2.776445 + 0.940965) * 0.14**0.5, rel=1e-5)
    # three differing questions, +1 +1 -1: 6 of 8 sign patterns sum to 1 in absolute value, 2 to 3: all at least 1
    assert found.p_value == 1.0
    assert found.target is Target.QUESTIONS_LIKE_THESE
    json.dumps(found.to_dict(), allow_nan=False)


def test_groups_are_the_unit() -> None:
    # the same 8 differences in 2 groups: sums 4 x (1 - 0.5) and 4 x (0 - 0.5): variance (4 + 4) x 2 / 64 = 0.25
    ours = dict(enumerate([1.0] * 4 + [0.0] * 4))
    found = paired_difference(ours, dict.fromkeys(range(8), 0.0), {at: at // 4 for at in range(8)})

    assert found is not None
    assert found.high == pytest.approx(0.5 + 12.706205 * 0.5, rel=1e-5)
    # one group without a difference; the other may as well have been the reverse
    assert found.p_value == 1.0


def test_no_variation_gives_no_interval_and_nothing_common_gives_nothing() -> None:
    same = paired_difference({1: 1.0, 2: 1.0}, {1: 0.5, 2: 0.5})

    assert same is not None
    assert (same.value, same.low, same.high, same.detectable) == (0.5, None, None, None)
    assert paired_difference({1: 1.0}, {2: 1.0}) is None
    one = paired_difference({1: 1.0}, {1: 0.0})
    assert one is not None
    assert one.p_value is None


def test_exact_permutation_counts_patterns() -> None:
    # five wins of equal size: 2 of 32 patterns are as extreme
    assert permutation_p(np.ones(5)) == pytest.approx(2 / 32)
    assert permutation_p(np.zeros(5)) == 1.0


def test_many_groups_are_shuffled_with_a_seed_and_never_give_zero() -> None:
    strong = permutation_p(np.ones(40), seed=1)

    assert strong == pytest.approx(1 / 10_001)
    random = np.random.default_rng(0).normal(0.2, 1, 60)
    assert permutation_p(random, seed=1) == permutation_p(random, seed=1)
    # near the p of the normal theory for the same data
    z = random.sum() / np.sqrt(np.square(random).sum())
    assert permutation_p(random) == pytest.approx(math.erfc(abs(z) / 2**0.5), abs=0.02)
