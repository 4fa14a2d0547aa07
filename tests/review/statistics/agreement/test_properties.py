"""Properties of agreement for any ratings: order, names, unit weights, finite values and interval widths."""

from __future__ import annotations

import json
import math
import random
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.core.scales import Scale
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.catalogue import STATISTIC_NAMES
from review.statistics.agreement.experts import ALL_RATER_STATISTICS, compare_experts
from review.statistics.agreement.pair import CurvePoint, best_constant_guess, compare, reliability_curve, scatter_points
from review.statistics.agreement.statistic import Rating, period_names
from tests.examples import max_examples

LEVELS, YES_NO, CLASSES, REALS = (Scale.parse(text) for text in ("1..5", "bool", "class a|b|c", "0..1:real"))
SYMMETRIC = tuple(name for name in STATISTIC_NAMES if name != "bias")


def values_of(scale: Scale) -> st.SearchStrategy[Any]:
    """Values on a scale; reals are drawn from few values, so that they repeat."""
    if scale.labels:
        return st.sampled_from(scale.labels)
    return st.sampled_from([float(level) for level in scale.levels] or [0.0, 0.2, 0.5, 0.9, 1.0])


@st.composite
def rating_tables(draw: st.DrawFn) -> tuple[Scale, list[Rating], dict[Any, Any]]:
    """Ratings of up to 12 items by up to four raters with gaps, and a judge of some items."""
    scale = draw(st.sampled_from([LEVELS, YES_NO, CLASSES, REALS]))
    value = values_of(scale)
    places = draw(st.lists(st.tuples(st.integers(0, 11), st.sampled_from("abcd")), unique=True, max_size=30))
    ratings = [Rating(item, rater, draw(value)) for item, rater in places]
    judged_items = draw(st.sets(st.integers(0, 11)))
    return scale, ratings, {item: draw(value) for item in sorted(judged_items)}


@given(rating_tables(), st.integers(1, 5))
@settings(max_examples=max_examples(80), deadline=None)
def test_results_are_finite_and_intervals_have_a_width(case: Any, groups: int) -> None:
    scale, ratings, judge = case
    agreement = compare_experts(
        ratings, scale, judge=judge, groups={r.item: r.item % groups for r in ratings}, resampling=Resampling(60)
    ).to_dict()
    json.dumps(agreement, allow_nan=False)
    parts = [agreement, *(agreement["ceiling"][part] for part in ("expert", "judge"))]
    for part in parts:
        assert all(low < high for low, high in part["intervals"].values())
    for name in (*STATISTIC_NAMES, "fleiss_kappa"):
        assert (agreement[name] is None) == (name in agreement["undefined"])
        if agreement[name] is not None:
            assert (name in agreement["intervals"]) != (f"intervals.{name}" in agreement["undefined"])


@given(rating_tables(), st.integers(0, 99))
@settings(max_examples=max_examples(60), deadline=None)
def test_rating_order_and_unit_weights_change_nothing(case: Any, seed: int) -> None:
    scale, ratings, judge = case
    shuffled = list(ratings)
    random.Random(seed).shuffle(shuffled)
    first = compare_experts(ratings, scale, judge=judge)
    for variant in (
        compare_experts(shuffled, scale, judge=judge),
        compare_experts(ratings, scale, judge=judge, weights={r.item: 1.0 for r in ratings}),
    ):
        for name, statistic in first.statistics.items():
            assert (statistic.value is None) == (variant.statistics[name].value is None), name
            assert statistic.value == pytest.approx(variant.statistics[name].value), name
        ceilings = [statistic.ceiling.to_dict()["expert"] for statistic in (first, variant)]
        assert all(ceiling.pop("intervals") == {} for ceiling in ceilings)
        assert ceilings[0] == pytest.approx(ceilings[1])


@given(rating_tables())
@settings(max_examples=max_examples(60), deadline=None)
def test_rater_names_change_nothing(case: Any) -> None:
    """Renaming raters changes no overall figure; the pairs keep their figures under the new names."""
    scale, ratings, _ = case
    renamed = [Rating(r.item, {"a": "d", "b": "c", "c": "b", "d": "a"}[r.rater], r.value) for r in ratings]
    first, second = compare_experts(ratings, scale), compare_experts(renamed, scale)
    for name in ALL_RATER_STATISTICS:
        assert first.statistics[name].value == pytest.approx(second.statistics[name].value)
    for name in SYMMETRIC:
        if name not in {"tpr", "tnr", "precision", "recall", "f1", "balanced_accuracy"}:
            assert first.statistics[name].value == pytest.approx(second.statistics[name].value), name


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=1, max_size=30))
@settings(max_examples=max_examples(60), deadline=None)
def test_swapping_judge_and_expert_swaps_precision_and_recall(rows: list[tuple[int, int]]) -> None:
    judge, expert = [r[0] for r in rows], [r[1] for r in rows]
    forward, swapped = compare(judge, expert, YES_NO).to_dict(), compare(expert, judge, YES_NO).to_dict()
    for statistic, swapped_statistic in (
        ("precision", "recall"),
        ("recall", "precision"),
        ("f1", "f1"),
        ("gwet_ac1", "gwet_ac1"),
    ):
        assert forward[statistic] == pytest.approx(swapped[swapped_statistic])


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(1, 4)), min_size=2, max_size=25))
@settings(max_examples=max_examples(40), deadline=None)
def test_seeded_interval_does_not_depend_on_answer_order(rows: list[tuple[int, int, int]]) -> None:
    intervals = []
    for order in (rows, rows[::-1]):
        plan = Resampling(80, seed=3)
        judge, expert, weight = ([float(row[column]) for row in order] for column in range(3))
        intervals.append(compare(judge, expert, LEVELS, weight, resampling=plan))
    first, second = intervals
    assert set(first.intervals) == set(second.intervals)
    for name, ends in first.intervals.items():
        assert ends == pytest.approx(second.intervals[name]), name


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(0, 4)), max_size=60), st.booleans())
@settings(max_examples=max_examples(60), deadline=None)
def test_curve_stays_on_the_scale_and_counts_every_answer_once(rows: list[Any], weighted: bool) -> None:
    judge, expert, group = ([row[column] for row in rows] for column in range(3))
    weights = [1.0 + g for g in group] if weighted else None
    curve = reliability_curve(judge, expert, REALS, weights, group)
    assert sum(point.n for point in curve) == len(rows)
    assert [point.judge for point in curve] == sorted(point.judge for point in curve)
    for point in curve:
        assert 0 <= point.expert <= 1 + 1e-9
        if point.low is not None and point.high is not None:
            assert -1e-9 <= point.low < point.high <= 1 + 1e-9
    assert sum(count for _, _, count in scatter_points(judge, expert, REALS)) == len(rows)


@given(st.lists(st.sampled_from([1.0, 2.0, 2.5, 4.0, 5.0]), min_size=1, max_size=30))
def test_no_constant_is_exact_more_often_than_the_best_guess(means: list[float]) -> None:
    best_guess = best_constant_guess(means, LEVELS)
    assert best_guess is not None
    shares = [compare([level] * len(means), means, LEVELS).statistics["exact"].value for level in range(1, 6)]
    assert best_guess.agreement.statistics["exact"].value == max(share or 0.0 for share in shares)


@given(st.lists(st.dates(), max_size=20))
def test_periods_sort_by_time(dates: list[Any]) -> None:
    names = period_names(dates)
    ordered = [name for _, name in sorted(zip(dates, names, strict=True))]
    assert ordered == sorted(ordered)
    assert len({len(name) for name in names}) <= 1


def test_curve_needs_paired_values_and_points_round_trip() -> None:
    with pytest.raises(ValueError, match="zip"):
        reliability_curve([4, 4], [3], LEVELS)
    point_values = {"judge": 1.0, "expert": 2.0, "low": None, "high": 3.0, "n": 7}
    assert CurvePoint(1.0, 2.0, None, 3.0, 7).to_dict() == point_values


def test_reliability_curve_by_hand() -> None:
    # The judge gives 4 to three answers whose means are 3, 4 and 5, each of its own question: mean 4, standard error
    # sqrt(3/2 x ((1/3)^2 + 0 + (1/3)^2)) = sqrt(1/3) = 0.577, t(2) = 4.303: 4 plus and minus 2.484, cut at 5.
    # A single answer with 2 gives a point without an interval.
    low, high = reliability_curve([4, 4, 4, 2], [3, 4, 5, 1.5], LEVELS)
    assert (low.judge, low.expert, low.low, low.n) == (2.0, 1.5, None, 1)
    assert (high.judge, high.expert, high.n) == (pytest.approx(4.0), pytest.approx(4.0), 3)
    assert high.low == pytest.approx(4 - 4.302653 * math.sqrt(1 / 3), abs=1e-5)
    assert high.high == 5.0


def test_grouped_answers_widen_the_curve_interval() -> None:
    values = [3.0, 3.0, 5.0, 5.0] * 5
    ungrouped = reliability_curve([4.0] * 20, values, LEVELS)[0]
    grouped = reliability_curve([4.0] * 20, values, LEVELS, groups=[i // 2 for i in range(20)])[0]
    assert ungrouped.low is not None
    assert grouped.low is not None
    assert grouped.low < ungrouped.low


def test_positions_are_quarters_of_a_level() -> None:
    # 2.33 lies nearest to 2.25; the judge's 6 is off the scale and stands nowhere
    assert scatter_points([2, 2, 6, None], [7 / 3, 2.25, 3, 3], LEVELS) == ((2.25, 2.0, 2),)


@pytest.mark.parametrize(
    ("days", "name"), [(["2026-11-20", "2026-11-30"], "2026-11-20"), (["2026-11-20", "2027-01-20"], "2026-W47"),
                       (["2026-11-20", "2027-11-20"], "2026-11")]
)  # fmt: skip
def test_periods_grow_with_the_time_they_cover(days: list[str], name: str) -> None:
    assert period_names([date.fromisoformat(day) for day in days])[0] == name
