"""Bootstrap resampling of groups within strata."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.core.scales import Scale
from review.statistics.agreement.bootstrap import (
    Resampling,
    bca_interval,
    build_resampler,
    cell_weights,
    clopper_pearson,
    percentile_interval,
    percentile_intervals,
)
from review.statistics.agreement.ceiling import joint_intervals
from review.statistics.agreement.layout import build_layout
from review.statistics.agreement.pair import FEW_GROUPS_WARNING, compare
from review.statistics.agreement.statistic import BatchStatistic, Undefined

YES_NO = Scale.parse("bool")


def resample_counts(resampling: Resampling, items: int, resamples: int = 500) -> np.ndarray:
    plan = build_resampler(items, resampling, np.arange(items))
    return np.concatenate(list(plan.multiplicities(resamples, seed=1, chunk=64)))


def test_every_resample_keeps_the_size_of_every_stratum() -> None:
    counts = resample_counts(Resampling(strata=["a"] * 3 + ["b"] * 5), 8)

    assert counts.shape == (500, 8)
    assert set(counts[:, :3].sum(axis=1)) == {3.0}
    assert set(counts[:, 3:].sum(axis=1)) == {5.0}


def test_strata_sharing_a_group_are_resampled_together() -> None:
    # group x lies in both strata, so nothing holds the strata's sizes apart
    plan = build_resampler(4, Resampling(groups=["x", "x", "y", "z"], strata=["a", "b", "a", "b"]), np.arange(4))

    assert plan.groups == 3
    assert len(set(plan.stratum.tolist())) == 1


def test_groups_are_drawn_whole() -> None:
    plan = build_resampler(4, Resampling(groups=["x", "x", "y", "y"]), np.arange(4))
    counts = next(plan.multiplicities(50, seed=0, chunk=50))
    weight = cell_weights(counts, plan.group, np.ones(4), np.arange(4), 4)

    assert (weight[:, 0] == weight[:, 1]).all()
    assert (weight[:, 2] == weight[:, 3]).all()


def test_both_folding_methods_agree() -> None:
    random = np.random.default_rng(0)
    group, cell = random.integers(0, 3000, 5000), np.sort(random.integers(0, 1000, 5000))
    cell[:1000] = np.arange(1000)
    counts, weight = random.integers(0, 3, (4, 3000)).astype(float), random.random(5000)
    large_weights = cell_weights(counts, group, weight, cell, 1000)
    by_hand = np.zeros((4, 1000))
    np.add.at(by_hand.T, cell, (counts[:, group] * weight).T)

    assert large_weights == pytest.approx(by_hand)


def test_interval_of_a_mean_equals_the_theoretical_one() -> None:
    # 400 answers, half exact: standard error 0.5 / sqrt(400) = 0.025, interval 0.5 plus and minus 0.049
    interval = compare([0, 1] * 200, [0] * 400, YES_NO, resampling=Resampling()).intervals["exact"]

    assert interval == pytest.approx((0.451, 0.549), abs=0.006)


def test_groups_widen_the_interval() -> None:
    # 40 groups of 10 equal answers carry as much as 40 answers: 0.5 plus and minus 1.96 x 0.5 / sqrt(40) = 0.155
    judge = [int(i // 10 % 2) for i in range(400)]
    interval = compare(judge, [0] * 400, YES_NO, resampling=Resampling(groups=[i // 10 for i in range(400)]))

    assert interval.intervals["exact"] == pytest.approx((0.345, 0.655), abs=0.03)
    assert interval.warnings == ()


def test_seed_decides_the_interval() -> None:
    judge, expert = [0, 1, 1, 1, 0, 1] * 5, [0, 1, 0, 1, 1, 1] * 5
    intervals = [compare(judge, expert, YES_NO, resampling=Resampling(seed=s)).intervals for s in (1, 1, 2)]

    assert intervals[0] == intervals[1]
    assert intervals[0] != intervals[2]


def test_perfect_agreement_gets_the_exact_interval() -> None:
    # 0.025 ** (1 / 10): with a smaller share 10 of 10 would be rarer than 2.5%
    agreement = compare([1, 0] * 5, [1, 0] * 5, YES_NO, resampling=Resampling())

    assert agreement.intervals["exact"] == pytest.approx((0.025**0.1, 1.0))
    assert agreement.interval_reasons["mae"] == "no_variation"
    assert agreement.interval_reasons["within_one"] == "no_variation"
    assert agreement.warnings == (FEW_GROUPS_WARNING,)


def test_each_proportion_has_the_exact_interval_of_its_own_answers() -> None:
    # 8 of 12 are yes to both: the interval of 8 for those, of 4 for those that are no
    intervals = compare([1, 1, 0] * 4, [1, 1, 0] * 4, YES_NO, resampling=Resampling()).intervals
    for name, answer_count in (("exact", 12), ("tpr", 8), ("recall", 8), ("precision", 8), ("tnr", 4)):
        assert intervals[name] == pytest.approx((0.025 ** (1 / answer_count), 1.0)), name


def test_one_group_gives_no_interval() -> None:
    agreement = compare([1, 0, 1], [1, 1, 1], YES_NO, resampling=Resampling(groups=["x"] * 3))

    assert agreement.intervals == {}
    assert set(agreement.interval_reasons.values()) == {"too_few_groups"}


def test_bca_matches_percentiles_for_symmetric_but_not_skewed_means() -> None:
    plans = [Resampling(bca=bca) for bca in (False, True)]
    symmetric = [compare([0, 1] * 50, [0] * 100, YES_NO, resampling=plan).intervals["exact"] for plan in plans]
    skewed = [compare([1] + [0] * 39, [0] * 40, YES_NO, resampling=plan).intervals["exact"] for plan in plans]

    assert symmetric[0] == pytest.approx(symmetric[1], abs=0.011)
    assert skewed[1][0] < skewed[0][0]


def test_bca_when_all_resamples_lie_above_the_point() -> None:
    # 100 resamples 1..100 above the point 0, no acceleration: the share below is taken for half of one, 0.005, so that
    # the shift is -2.575829 and the ends lie at Phi(2 x -2.575829 - 1.959964) = 0 and Phi(-5.151659 + 1.959964) =
    # Phi(-3.191695) = 0.000707 of the resamples: 1 and 1 + 99 x 0.000707. Below the point it is the same, mirrored
    above = bca_interval(np.arange(1.0, 101.0), 0.0, np.ones(5), 0.95)
    assert above == pytest.approx((1.0, 1.0700), abs=5e-5)
    below = bca_interval(np.arange(-100.0, 0.0), 0.0, np.ones(5), 0.95)
    assert below == pytest.approx((-1.0700, -1.0), abs=5e-5)


def test_percentiles_interpolate() -> None:
    # 0..100: the 2.5th percentile lies at 2.5
    assert percentile_interval(np.arange(101.0), 0.95) == pytest.approx((2.5, 97.5))


def test_clopper_pearson_matches_the_table() -> None:
    # 8 of 10: the tables give 0.4439 to 0.9748
    assert clopper_pearson(0.8, 10) == pytest.approx((0.4439, 0.9748), abs=5e-5)
    assert clopper_pearson(0.0, 10) == pytest.approx((0.0, 1 - 0.025**0.1))


def test_interval_needs_at_least_19_of_20_defined_resamples() -> None:
    values = np.arange(40.0)
    for undefined, reasons in ((2, {}), (3, {"x": Undefined.OFTEN_UNDEFINED})):
        defined = np.arange(40) >= undefined
        assert percentile_intervals({"x": BatchStatistic(values, defined)}, 0.95)[1] == reasons


def test_intervals_repeat_unless_the_seed_changes() -> None:
    assert Resampling() == Resampling(resamples=2000, seed=0, groups=None, strata=None, confidence=0.95, bca=False)


@pytest.mark.parametrize("chunk", [1, 2, 3])
def test_jackknife_leaves_out_one_group_at_a_time(chunk: int) -> None:
    batches = list(build_resampler(3, Resampling(), np.arange(3)).leave_one_out(chunk))
    assert np.concatenate(batches).tolist() == [[0, 1, 1], [1, 0, 1], [1, 1, 0]]


def test_exact_interval_needs_a_confidence_between_0_and_1() -> None:
    for confidence in (0.0, 1.0):
        with pytest.raises(ValueError, match="proportion"):
            clopper_pearson(0.5, 10, confidence)


def test_joint_intervals_equal_those_of_a_single_comparison() -> None:
    judge, expert = [1.0, 2, 3, 4, 5, 1, 2, 3], [1.0, 3, 3, 5, 4, 1, 2, 2]
    scale, plan = Scale.parse("1..5"), build_resampler(8, Resampling(), np.arange(8))
    layout = build_layout(judge, expert, scale, None, ())
    single, _ = joint_intervals([layout], scale, ["mae"], plan, Resampling(500))
    twice, missing = joint_intervals([layout, layout], scale, ["mae"], plan, Resampling(500))
    assert missing == {}
    assert single["mae"] == pytest.approx(twice["mae"])
    assert single["mae"][0] <= 0.5 <= single["mae"][1]  # four of eight are one apart
