"""Agreement among experts, and the judge compared with it."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evaluation.core.scales import Scale
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.catalogue import STATISTIC_NAMES
from review.statistics.agreement.ceiling import alternative_annotator_test, ceiling
from review.statistics.agreement.experts import compare_experts
from review.statistics.agreement.statistic import Rating, consensus, group_by_item

LEVELS, YES_NO = Scale.parse("1..5"), Scale.parse("bool")


def ratings(**values: str) -> list[Rating]:
    """Ratings by rater name: one digit per item, a dot for a missing rating."""
    return [Rating(i, name, int(v)) for name, row in values.items() for i, v in enumerate(row) if v != "."]


def test_mean_pairwise_kappa_weights_pairs_by_shared_items() -> None:
    # a-b share 4 items: agreement 3/4, chance 1/2 x 1/4 + 1/2 x 3/4 = 1/2, kappa 0.5; a-c share 2 and agree: kappa 1;
    # b-c share 2: b 0 1, c 0 1: kappa 1. Mean (4 x 0.5 + 2 + 2) / 8
    agreement = compare_experts(ratings(a="0011", b="0111", c="0.1."), YES_NO)
    kappas = {name: pair.statistics["cohen_kappa"].value for name, pair in agreement.pairs.items()}

    assert kappas == pytest.approx({"a-b": 0.5, "a-c": 1.0, "b-c": 1.0})
    assert agreement.statistics["cohen_kappa"].value == pytest.approx(0.75)


def test_directed_statistics_are_undefined_among_experts() -> None:
    agreement = compare_experts(ratings(a="0011", b="0111"), YES_NO).to_dict()

    assert {name for name, reason in agreement["undefined"].items() if reason == "no_direction"} == {
        "bias",
        "tpr",
        "tnr",
        "precision",
        "recall",
        "f1",
        "balanced_accuracy",
    }


def test_dict_has_the_judge_comparison_keys_and_more() -> None:
    agreement = compare_experts(
        ratings(a="1234", b="1334", c="12.4"), LEVELS, judge=dict(enumerate([1, 2, 3, 5])), resampling=Resampling(200)
    ).to_dict()

    assert {*STATISTIC_NAMES, "n", "excluded", "confusion", "labels", "intervals", "undefined"} <= set(agreement)
    assert {"fleiss_kappa", "pairs", "ceiling", "alternative_annotator"} <= set(agreement)
    json.dumps(agreement, allow_nan=False)
    assert agreement["ceiling"]["judge"]["n"] == agreement["ceiling"]["expert"]["n"] == 11
    assert agreement["alternative_annotator"]["reason"] == "too_few_raters"


def test_single_expert_has_no_agreement() -> None:
    agreement = compare_experts(ratings(a="123"), LEVELS).to_dict()

    assert agreement["n"] == 0
    assert agreement["excluded"] == {"single_rating": 3}
    assert agreement["undefined"]["krippendorff_alpha_ordinal"] == "too_few_raters"
    assert agreement["undefined"]["exact"] == "too_few_raters"


def test_item_rated_twice_by_one_rater_is_an_error() -> None:
    with pytest.raises(ValueError, match="twice"):
        compare_experts([Rating(1, "a", 2), Rating(1, "a", 3)], LEVELS)


def test_ceiling_leaves_one_expert_out_and_compares_with_equal_means() -> None:
    # item 0: a 1, b 3, c 5; left out a: mean 4, |1 - 4| = 3; b: 3 against 3: 0; c: 5 against 2: 3. Mean MAE 2.
    # the judge's 4 against 4, 3 and 2: 0, 1 and 2, mean 1. Item 1 has no judgement and counts for nobody.
    ceiling_values = ceiling(group_by_item(ratings(a="11", b="35", c="55")), LEVELS, judge={0: 4}).to_dict()

    assert ceiling_values["expert"]["mae"] == pytest.approx(2.0)
    assert ceiling_values["judge"]["mae"] == pytest.approx(1.0)
    assert ceiling_values["judge"]["n"] == ceiling_values["expert"]["n"] == 3


def test_ceiling_without_a_judge_covers_experts_only() -> None:
    ceiling_values = ceiling(group_by_item(ratings(a="11", b="35")), LEVELS).to_dict()

    assert ceiling_values["judge"]["n"] == 0
    assert ceiling_values["judge"]["mae"] is None
    assert ceiling_values["raters"]["a"]["judge"] is None


def test_consensus_is_mean_or_majority() -> None:
    classes = Scale.parse("class:x|y|z")

    assert consensus([1, 2, 2], LEVELS) == pytest.approx(5 / 3)
    assert consensus(["x", "y", "x"], classes) == "x"
    assert consensus(["x", "y"], classes) is None
    with pytest.raises(ValueError, match="no ratings"):
        consensus([], LEVELS)


def test_alternative_annotator_test_by_hand() -> None:
    # Three experts always agree on 40 items; the judge differs on the first 4. For each expert the judge wins 36/40,
    # the expert 40/40: lead 4 ones and 36 zeros, mean 0.1, sd sqrt(40/39 x 0.09) = 0.3038, t = (0.1 - 0.2) / 0.04804
    # = -2.0817 with 39 degrees of freedom, p = 0.0220. Benjamini-Yekutieli: all three p equal, so the limit is
    # 0.05 / (1 + 1/2 + 1/3) = 0.0273: all rejected.
    row = "01" * 20
    judge = {i: (1 - int(v) if i < 4 else int(v)) for i, v in enumerate(row)}
    annotator_test = alternative_annotator_test(ratings(a=row, b=row, c=row), judge, YES_NO)

    assert annotator_test.advantage == pytest.approx(0.9)
    assert annotator_test.experts["a"].p_value == pytest.approx(0.0220, abs=5e-5)
    assert (annotator_test.winning_rate, annotator_test.passed) == (1.0, True)
    assert alternative_annotator_test(ratings(a=row, b=row, c=row), judge, YES_NO, epsilon=0.1).passed is False


@pytest.mark.parametrize(
    ("size", "p_value", "is_passed"),
    [
        # The 4 items the judge is wrong on are one of 10 groups of 4: the groups' sums about the mean are 3.6 and nine
        # times -0.4, (12.96 + 1.44) / 40^2 x 10/9 = 0.01, t = (0.1 - 0.2) / 0.1 = -1 with 9 degrees of freedom
        (4, 0.1717, False),
        # 20 groups of 2: two of 1.8 and 18 of -0.2, (6.48 + 0.72) / 40^2 x 20/19 = 0.0047368, t = -1.4530 with 19
        (2, 0.0813, False),
        # two groups of 20: 2 and -2, 8 / 40^2 x 2 = 0.01, t = -1 with 1 degree of freedom
        (20, 0.25, False),
        (40, 1.0, False),  # one group tells nothing
        (1, 0.0220, True),
    ],
)
def test_alternative_annotator_test_uses_groups(size: int, p_value: float, is_passed: bool) -> None:
    row = "01" * 20
    judge = {i: (1 - int(v) if i < 4 else int(v)) for i, v in enumerate(row)}
    groups = {i: i // size for i in range(40)}
    annotator_test = alternative_annotator_test(ratings(a=row, b=row, c=row), judge, YES_NO, groups=groups)

    assert annotator_test.experts["a"].p_value == pytest.approx(p_value, abs=1e-4)
    assert annotator_test.passed is is_passed


def test_alternative_annotator_test_applies_holm_limits() -> None:
    # 40 items, b and c alike. On 6 the judge differs from all three: a lead of 1 for each. On 6 others the judge is
    # with b and c against a: a lead of -1 for a; b and c are as near to the others as the judge there. b and c: mean
    # 0.15, sd sqrt(40/39 x 0.15 x 0.85), t = -0.05 / 0.05718 = -0.874, p = 0.194. a: mean 0, mean square 12/40,
    # t = -0.2 / 0.08771 = -2.280, p = 0.0141: below 0.05 x 2/3 / (1 + 1/2 + 1/3) = 0.0182, but the smallest of three is
    # held to half of that
    row = [i % 2 for i in range(40)]
    judge = {i: 1 - value if i < 6 else value for i, value in enumerate(row)}
    a = "".join(str(1 - value if 6 <= i < 12 else value) for i, value in enumerate(row))
    b = "".join(map(str, row))
    annotator_test = alternative_annotator_test(ratings(a=a, b=b, c=b), judge, YES_NO)

    assert annotator_test.experts["a"].p_value == pytest.approx(0.0141, abs=5e-5)
    assert annotator_test.experts["b"].p_value == pytest.approx(0.1936, abs=5e-5)
    assert (annotator_test.winning_rate, annotator_test.passed) == (0.0, False)


def test_alternative_annotator_test_on_levels_uses_distance() -> None:
    # 30 items, experts 2, 3, 4; judge 3: as near to the others as b is, nearer than a and c (left out a: others 3 and
    # 4; judge's errors 0 and 1, a's 1 and 2)
    annotator_test = alternative_annotator_test(
        ratings(a="2" * 30, b="3" * 30, c="4" * 30), dict.fromkeys(range(30), 3), LEVELS
    )

    assert {
        name: (comparison.judge_wins, comparison.expert_wins) for name, comparison in annotator_test.experts.items()
    } == {
        "a": (1.0, 0.0),
        "b": (1.0, 1.0),
        "c": (1.0, 0.0),
    }


def test_expert_intervals_do_not_depend_on_rating_order() -> None:
    random = np.random.default_rng(0)
    expert_ratings = ratings(a="".join(random.choice(list("123"), 60)), b="".join(random.choice(list("123"), 60)))
    first, second = (
        compare_experts(r, LEVELS, resampling=Resampling(200)).intervals for r in (expert_ratings, expert_ratings[::-1])
    )

    for name, interval in first.items():
        assert interval == pytest.approx(second[name], abs=0.1)
        assert interval[0] < interval[1]


def test_ceiling_intervals_contain_their_values() -> None:
    expert_ratings = ratings(a="1122334455", b="1223344551", c="2122334415")
    agreement = compare_experts(
        expert_ratings, LEVELS, judge=dict.fromkeys(range(10), 3), resampling=Resampling(200)
    ).to_dict()
    for side in ("expert", "judge"):
        side_values = agreement["ceiling"][side]
        assert {"exact", "mae"} <= set(side_values["intervals"])
        assert all(low <= side_values[name] <= high for name, (low, high) in side_values["intervals"].items()), side


def test_intervals_need_two_groups_of_answers() -> None:
    expert_ratings = ratings(a="1234512345", b="1234412355")
    groups_by_count = {1: dict.fromkeys(range(10), "x"), 2: {i: f"x{i % 2}" for i in range(10)}}
    single_group, two_groups = (
        compare_experts(expert_ratings, LEVELS, groups=groups_by_count[n], resampling=Resampling(200)) for n in (1, 2)
    )

    assert single_group.interval_reasons["krippendorff_alpha_interval"] == "too_few_groups"
    assert "krippendorff_alpha_interval" not in single_group.intervals
    assert "krippendorff_alpha_interval" in two_groups.intervals
