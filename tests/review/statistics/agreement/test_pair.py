"""Judge compared with experts: rounding, exclusions, reasons and properties."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.core.scales import Scale
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.catalogue import COINCIDENCE_STATISTICS, CONFUSION_STATISTICS, STATISTIC_NAMES
from review.statistics.agreement.pair import compare
from tests.examples import max_examples

LEVELS, YES_NO, REAL = Scale.parse("1..5"), Scale.parse("bool"), Scale.parse("0..1:real")
CLASSES = Scale.parse("class:good|bad|unclear")
KEYS = {*STATISTIC_NAMES, "n", "excluded", "confusion", "labels", "intervals", "undefined"}

numbers = st.lists(
    st.tuples(st.integers(1, 5), st.integers(2, 10).map(lambda v: v / 2), st.integers(1, 4)), min_size=2, max_size=40
)


def test_halves_round_up_for_levels_and_errors_use_unrounded_means() -> None:
    # experts' means 2.5 and 3 against the judge's 3 and 3: 2.5 counts as 3, so both are exact; MAE 0.25
    agreement = compare([3, 3], [2.5, 3], LEVELS).to_dict()

    assert agreement["exact"] == 1.0
    assert agreement["mae"] == 0.25
    assert agreement["confusion"][2] == [0, 0, 2, 0, 0]


def test_halves_round_up_below_zero_too() -> None:
    # -0.5 becomes 0, -1.5 becomes -1
    agreement = compare([0, -1], [-0.5, -1.5], Scale.parse("-2..2")).to_dict()

    assert agreement["exact"] == 1.0


def test_expert_ties_on_yes_no_are_excluded_and_counted() -> None:
    agreement = compare([1, 0, 1], [0.5, 0, 1], YES_NO).to_dict()

    assert (agreement["n"], agreement["excluded"], agreement["mae"]) == (2, {"expert_tie": 1}, 0.0)


def test_incomparable_answers_are_counted_by_reason() -> None:
    agreement = compare([5, None, 7, 4], [None, 3, 3, 4], LEVELS).to_dict()

    assert agreement["n"] == 1
    assert agreement["excluded"] == {"judge_off_scale": 1, "no_expert_value": 1, "no_judge_value": 1}


def test_expert_value_off_the_scale_is_an_error() -> None:
    with pytest.raises(ValueError, match="not on the scale"):
        compare([5], [6], LEVELS)
    with pytest.raises(ValueError, match="not on the scale"):
        compare(["good"], ["great"], CLASSES)


def test_classes_have_nominal_statistics_only() -> None:
    # 3 of 4 equal; chance 2/4 x 2/4 + 2/4 x 1/4 = 0.375; kappa 0.375 / 0.625; a tie of the experts is left out
    agreement = compare(
        ["good", "good", "bad", "unclear", "bad"], ["good", "good", "bad", "bad", None], CLASSES
    ).to_dict()

    assert agreement["cohen_kappa"] == pytest.approx(0.6)
    assert agreement["excluded"] == {"expert_tie": 1}
    assert agreement["mae"] is None
    assert agreement["undefined"]["mae"] == "classes_have_no_order"
    assert agreement["undefined"]["tpr"] == "yes_no_only"
    assert agreement["labels"] == ["good", "bad", "unclear"]


def test_reals_need_binning_for_level_statistics() -> None:
    judge, expert = [0.1, 0.6, 0.9, 0.4], [0.2, 0.4, 1.0, 0.45]
    plain, binned = compare(judge, expert, REAL).to_dict(), compare(judge, expert, REAL, bins=[0, 0.5, 1]).to_dict()

    assert plain["exact"] is None
    assert plain["undefined"]["exact"] == "needs_binning"
    assert plain["undefined"]["confusion"] == "needs_binning"
    barred = [name for name, reason in plain["undefined"].items() if reason == "needs_binning"]
    in_order = [
        *CONFUSION_STATISTICS,
        *(statistic for statistic in COINCIDENCE_STATISTICS if statistic not in CONFUSION_STATISTICS),
        "confusion",
    ]
    assert barred == [
        statistic for statistic in in_order if statistic in barred
    ]  # the same in every process, so that files are
    # 0.6 against 0.4 falls in different bins, the rest in equal ones; 1.0 belongs to the last bin
    assert binned["exact"] == 0.75
    assert binned["labels"] == ["[0, 0.5)", "[0.5, 1]"]
    assert binned["krippendorff_alpha_interval"] == plain["krippendorff_alpha_interval"]


def test_interval_alpha_of_reals_uses_their_values() -> None:
    # values 0, 0.5 and 0.5, 1: within-unit squares 0.25 + 0.25, D_o = 2 x 0.5 / 4 = 0.25
    # sum 2, sum of squares 1.5, D_e = 2 (4 x 1.5 - 4) / (4 x 3) = 1/3; alpha = 0.25
    assert compare([0, 0.5], [0.5, 1], REAL).to_dict()["krippendorff_alpha_interval"] == pytest.approx(0.25)


def test_undefined_statistics_state_the_reason() -> None:
    agreement = compare([1, 1, 1], [1, 1, 1], YES_NO).to_dict()

    assert agreement["undefined"]["cohen_kappa"] == "one_value_only"
    assert agreement["undefined"]["pearson"] == "judge_constant"
    assert agreement["undefined"]["tnr"] == "no_expert_negative"
    assert agreement["undefined"]["balanced_accuracy"] == "one_expert_class"
    assert agreement["gwet_ac1"] == 1.0
    assert set(compare([], [], LEVELS).to_dict()["undefined"].values()) == {"no_pairs", "yes_no_only"}


@pytest.mark.parametrize("weight", [0.0, -1.0, float("inf"), float("nan")])
def test_weights_must_be_positive_and_finite(weight: float) -> None:
    with pytest.raises(ValueError, match="positive and finite"):
        compare([3, 4], [3, 2], LEVELS, weights=[1.0, weight])


def test_integer_weights_equal_repeated_answers() -> None:
    # An answer of weight 3 beside one of weight 1 is the same mix as three copies beside one.
    weighted = compare([3, 4, 2], [3, 2, 4], LEVELS, weights=[3, 1, 2]).to_dict()
    copied = compare([3, 3, 3, 4, 2, 2], [3, 3, 3, 2, 4, 4], LEVELS).to_dict()

    for name in ("exact", "mae", "bias", "rmse", "pearson", "spearman", "cohen_kappa_quadratic", "gwet_ac2"):
        assert weighted[name] == pytest.approx(copied[name])
    # weights are scaled to a sum of n = 3: the diagonal cell holds 3/6 of it
    assert weighted["confusion"][2][2] == pytest.approx(1.5)


@given(numbers, st.integers(0, 99))
@settings(max_examples=max_examples(60), deadline=None)
def test_order_and_unit_weights_change_nothing(rows: list[tuple[int, float, int]], seed: int) -> None:
    shuffled = list(rows)
    random.Random(seed).shuffle(shuffled)
    first, second, third = (
        compare([r[0] for r in row_order], [r[1] for r in row_order], LEVELS, weights).to_dict()
        for row_order, weights in ((rows, None), (shuffled, None), (rows, [1.0] * len(rows)))
    )

    for name in STATISTIC_NAMES:
        assert first[name] == pytest.approx(second[name])
        assert first[name] == pytest.approx(third[name])


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=2, max_size=40))
@settings(max_examples=max_examples(60), deadline=None)
def test_swapping_judge_and_expert_flips_bias_and_keeps_symmetric_statistics(rows: list[tuple[int, int]]) -> None:
    judge, expert = [r[0] for r in rows], [r[1] for r in rows]
    forward, swapped = compare(judge, expert, LEVELS).to_dict(), compare(expert, judge, LEVELS).to_dict()

    assert swapped["bias"] == pytest.approx(-forward["bias"])
    for name in set(STATISTIC_NAMES) - {"bias"}:
        assert swapped[name] == pytest.approx(forward[name])
    assert swapped["confusion"] == [list(row) for row in zip(*forward["confusion"], strict=True)]


scaled = st.one_of(
    st.tuples(st.just(LEVELS), st.lists(st.tuples(st.integers(1, 5), st.sampled_from([1, 2, 2.5, 5])), max_size=30)),
    st.tuples(st.just(YES_NO), st.lists(st.tuples(st.integers(0, 1), st.sampled_from([0, 0.5, 1])), max_size=30)),
    st.tuples(st.just(REAL), st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=30)),
    st.tuples(
        st.just(CLASSES),
        st.lists(st.tuples(st.sampled_from(CLASSES.labels), st.sampled_from([*CLASSES.labels, None])), max_size=30),
    ),
)


@given(scaled, st.booleans(), st.integers(1, 8))
@settings(max_examples=max_examples(120), deadline=None)
def test_results_are_finite_and_intervals_have_a_width(case, bca: bool, groups: int) -> None:
    scale, rows = case
    resampling = Resampling(resamples=100, groups=[i % groups for i in range(len(rows))], bca=bca)
    agreement = compare([r[0] for r in rows], [r[1] for r in rows], scale, resampling=resampling).to_dict()

    assert set(agreement) == KEYS
    json.dumps(agreement, allow_nan=False)
    for name in STATISTIC_NAMES:
        assert (agreement[name] is None) == (name in agreement["undefined"])
        if agreement[name] is not None:
            assert (name in agreement["intervals"]) != (f"intervals.{name}" in agreement["undefined"])
    assert all(low < high for low, high in agreement["intervals"].values())
