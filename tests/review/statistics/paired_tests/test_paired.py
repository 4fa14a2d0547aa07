"""Two runs on common questions."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.statistics.correction.outcome import Target
from review.statistics.paired_tests.paired import PairedPart, paired_difference, paired_sum, permutation_p


def test_difference_by_hand() -> None:
    # differences 1, 0, 1, 0, -1 over 5 questions: mean 0.2; sum of squares 3 - 5 x 0.04 = 2.8, variance
    # 2.8 x 5/4 / 25 = 0.14; t with 4 df: 2.776445. Detectable: (2.776445 + 0.940965) x sqrt(0.14)
    run_values, baseline = dict(enumerate([1, 1, 1, 0, 0])), dict(enumerate([0, 1, 0, 0, 1]))
    difference = paired_difference(run_values, baseline | {"other": 1})

    assert difference is not None
    assert difference.value == pytest.approx(0.2)
    assert difference.high == pytest.approx(0.2 + 2.776445 * 0.14**0.5, rel=1e-5)
    assert (difference.wins, difference.losses, difference.ties) == (2, 1, 2)
    assert (difference.n, difference.groups, difference.only_ours, difference.only_baseline) == (5, 5, 0, 1)
    assert difference.detectable == pytest.approx((2.776445 + 0.940965) * 0.14**0.5, rel=1e-5)
    # three differing questions, +1 +1 -1: 6 of 8 sign patterns sum to 1 in absolute value, 2 to 3: all at least 1
    assert difference.p_value == 1.0
    assert difference.target is Target.QUESTIONS_LIKE_THESE
    json.dumps(difference.to_dict(), allow_nan=False)


def test_groups_are_the_sampling_unit() -> None:
    # the same 8 differences in 2 groups: sums 4 x (1 - 0.5) and 4 x (0 - 0.5): variance (4 + 4) x 2 / 64 = 0.25
    run_values = dict(enumerate([1.0] * 4 + [0.0] * 4))
    difference = paired_difference(run_values, dict.fromkeys(range(8), 0.0), {i: i // 4 for i in range(8)})

    assert difference is not None
    assert difference.high == pytest.approx(0.5 + 12.706205 * 0.5, rel=1e-5)
    # one group without a difference; the other may as well have been the reverse
    assert difference.p_value == 1.0


def test_no_variation_gives_no_interval_and_nothing_common_no_difference() -> None:
    constant = paired_difference({1: 1.0, 2: 1.0}, {1: 0.5, 2: 0.5})

    assert constant is not None
    assert (constant.value, constant.low, constant.high, constant.detectable) == (0.5, None, None, None)
    assert paired_difference({1: 1.0}, {2: 1.0}) is None
    single = paired_difference({1: 1.0}, {1: 0.0})
    assert single is not None
    assert single.p_value is None


def test_two_groups_suffice_for_a_permutation_test() -> None:
    # differences 1 and 1: of the patterns ++, +-, -+ and -- two are as extreme
    difference = paired_difference({1: 1.0, 2: 1.0}, {1: 0.0, 2: 0.0})
    assert difference is not None
    assert difference.p_value == 0.5


def test_exact_permutation_counts_patterns() -> None:
    # five wins of equal size: 2 of 32 patterns are as extreme
    assert permutation_p(np.ones(5)) == pytest.approx(2 / 32)
    assert permutation_p(np.zeros(5)) == 1.0


def test_many_groups_are_permuted_with_a_seed_and_never_give_zero() -> None:
    strong = permutation_p(np.ones(40), seed=1)

    assert strong == pytest.approx(1 / 10_001)
    random = np.random.default_rng(0).normal(0.2, 1, 60)
    assert permutation_p(random, seed=1) == permutation_p(random, seed=1)
    # near the p of the normal theory for the same data
    z = random.sum() / np.sqrt(np.square(random).sum())
    assert permutation_p(random) == pytest.approx(math.erfc(abs(z) / 2**0.5), abs=0.02)


def test_sum_of_parts_by_hand() -> None:
    # weight .6 over q1 to q4: d = 1, 0, 0, 1, mean 0.5; weight .4 over q4 and q5: d = 0, 0.5, mean 0.25
    # value 0.6 x 0.5 + 0.4 x 0.25 = 0.4
    # deviations: q1 .6 x .5/4 = .075, q2 and q3 -.075, q4 .075 + .4 x -.25/2 = .025, q5 .05
    # squares 3 x .005625 + .000625 + .0025 = .02, x 5/4 = .025
    first = PairedPart({1: 1, 2: 1, 3: 0, 4: 1}, {1: 0, 2: 1, 3: 0, 4: 0}, 0.6)
    second = PairedPart({4: 0.5, 5: 0.5, 6: 1}, {4: 0.5, 5: 0}, 0.4)
    total = paired_sum([first, second])

    assert total is not None
    assert total.value == pytest.approx(0.4)
    assert total.high == pytest.approx(0.4 + 2.776445 * 0.025**0.5, rel=1e-5)
    # shares: q1 .15, q4 .15, q5 .10, the others nothing; of 8 sign patterns only +++ and --- reach 0.4
    assert (total.wins, total.losses, total.ties) == (3, 0, 2)
    assert total.p_value == pytest.approx(2 / 8)
    assert (total.n, total.only_ours, total.only_baseline) == (5, 1, 0)


@given(
    values=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(0, 4)), min_size=1, max_size=25),
    seed=st.integers(0, 3),
)
def test_comparison_is_finite_and_reverses_with_the_runs(values: list[tuple[float, float, int]], seed: int) -> None:
    run_values = {i: a for i, (a, _, _) in enumerate(values)}
    baseline = {i: b for i, (_, b, _) in enumerate(values)}
    groups = {i: g for i, (_, _, g) in enumerate(values)}
    difference, reverse = (
        paired_difference(run_values, baseline, groups, seed=seed),
        paired_difference(baseline, run_values, groups),
    )

    assert difference is not None
    assert reverse is not None
    json.dumps(difference.to_dict(), allow_nan=False)
    assert reverse.value == pytest.approx(-difference.value)
    assert (difference.wins, difference.losses, difference.ties) == (reverse.losses, reverse.wins, reverse.ties)
    if difference.low is not None and difference.high is not None:
        assert difference.low < difference.value < difference.high
        assert (reverse.low, reverse.high) == (pytest.approx(-difference.high), pytest.approx(-difference.low))
    shuffled = dict(reversed(run_values.items()))
    repeated = paired_difference(shuffled, baseline, groups, seed=seed)
    assert repeated is not None
    assert (repeated.value, repeated.low, repeated.n) == (
        pytest.approx(difference.value),
        None if difference.low is None else pytest.approx(difference.low),
        difference.n,
    )
