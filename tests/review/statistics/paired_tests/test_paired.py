"""Two runs on the same questions."""

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


def test_two_groups_are_enough_for_a_permutation() -> None:
    # differences 1 and 1: of the patterns ++, +-, -+ and -- two are as extreme
    two = paired_difference({1: 1.0, 2: 1.0}, {1: 0.0, 2: 0.0})
    assert two is not None
    assert two.p_value == 0.5


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


def test_a_sum_of_parts_by_hand() -> None:
    # weight .6 over q1 to q4: d = 1, 0, 0, 1, mean 0.5; weight .4 over q4 and q5: d = 0, 0.5, mean 0.25
    # value 0.6 x 0.5 + 0.4 x 0.25 = 0.4
    # deviations: q1 .6 x .5/4 = .075, q2 and q3 -.075, q4 .075 + .4 x -.25/2 = .025, q5 .05
    # squares 3 x .005625 + .000625 + .0025 = .02, x 5/4 = .025
    first = PairedPart({1: 1, 2: 1, 3: 0, 4: 1}, {1: 0, 2: 1, 3: 0, 4: 0}, 0.6)
    second = PairedPart({4: 0.5, 5: 0.5, 6: 1}, {4: 0.5, 5: 0}, 0.4)
    found = paired_sum([first, second])

    assert found is not None
    assert found.value == pytest.approx(0.4)
    assert found.high == pytest.approx(0.4 + 2.776445 * 0.025**0.5, rel=1e-5)
    # shares: q1 .15, q4 .15, q5 .10, the others nothing; of 8 sign patterns only +++ and --- reach 0.4
    assert (found.wins, found.losses, found.ties) == (3, 0, 2)
    assert found.p_value == pytest.approx(2 / 8)
    assert (found.n, found.only_ours, found.only_baseline) == (5, 1, 0)


@given(
    values=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(0, 4)), min_size=1, max_size=25),
    seed=st.integers(0, 3),
)
def test_any_comparison_is_finite_and_turns_round_when_the_runs_do(
    values: list[tuple[float, float, int]], seed: int
) -> None:
    ours = {at: a for at, (a, _, _) in enumerate(values)}
    baseline = {at: b for at, (_, b, _) in enumerate(values)}
    groups = {at: g for at, (_, _, g) in enumerate(values)}
    found, reverse = paired_difference(ours, baseline, groups, seed=seed), paired_difference(baseline, ours, groups)

    assert found is not None
    assert reverse is not None
    json.dumps(found.to_dict(), allow_nan=False)
    assert reverse.value == pytest.approx(-found.value)
    assert (found.wins, found.losses, found.ties) == (reverse.losses, reverse.wins, reverse.ties)
    if found.low is not None and found.high is not None:
        assert found.low < found.value < found.high
        assert (reverse.low, reverse.high) == (pytest.approx(-found.high), pytest.approx(-found.low))
    shuffled = dict(reversed(ours.items()))
    again = paired_difference(shuffled, baseline, groups, seed=seed)
    assert again is not None
    assert (again.value, again.low, again.n) == (
        pytest.approx(found.value),
        None if found.low is None else pytest.approx(found.low),
        found.n,
    )
