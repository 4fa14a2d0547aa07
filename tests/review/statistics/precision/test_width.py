"""Labels needed for a target interval width."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from review.statistics.precision import (
    PlannedStratum,
    expected_difference,
    expected_half_width,
    label_plan,
    labels_for_difference,
    labels_for_width,
    pilot_deviations,
)
from tests.examples import max_examples


def test_expected_half_width_of_one_stratum() -> None:
    # t(0.975, 98) = 1.984467; sqrt((1 - 100/1000) x 0.25 / 100) = 0.047434
    half_width = expected_half_width([PlannedStratum("", 1000, 0.5)], {"": 100})

    assert half_width == pytest.approx(1.984467 * 0.0474342, rel=1e-5)


def test_plan_is_the_smallest_that_suffices() -> None:
    strata = [PlannedStratum("", 1000, 0.5)]
    plan = labels_for_width(strata, 0.1, seconds_per_item=50, reviewers_per_item=2)

    assert plan.half_width <= 0.1 < expected_half_width(strata, {"": plan.labels - 1})
    assert plan.minutes == pytest.approx(plan.labels * 2 * 50 / 60)


def test_strata_share_labels_by_size_and_deviation() -> None:
    # 500 x 0.4 to 500 x 0.1 is 4 to 1, so that of 100 labels 80 are of the first
    strata = [PlannedStratum("a", 500, 0.4), PlannedStratum("b", 500, 0.1)]

    assert label_plan(strata, 100).half_width == expected_half_width(strata, {"a": 80, "b": 20})


def test_at_least_twenty_are_planned_and_a_small_frame_is_taken_whole() -> None:
    assert labels_for_width([PlannedStratum("", 1000, 0.1)], 0.5).labels == 20
    complete_plan = labels_for_width([PlannedStratum("", 30, 0.5)], 0.001)
    assert (complete_plan.labels, complete_plan.half_width) == (30, 0.0)


def test_difference_of_two_runs_needs_about_twice_as_narrow_intervals() -> None:
    # (t(.975, 98) + t(.8, 98)) x sqrt(2) x .0474342 = (1.984467 + .845302) x 1.414214 x .0474342
    difference = expected_difference([PlannedStratum("", 1000, 0.5)], {"": 100})
    assert difference == pytest.approx(2.829769 * 1.414214 * 0.0474342, rel=1e-5)

    plan = labels_for_difference([PlannedStratum("", 1000, 0.5)], 0.1)
    assert plan.difference <= 0.1
    # 1.984467 / (2.829769 x 1.414214) = .4959 of the difference
    assert plan.half_width == pytest.approx(0.0496, abs=2e-4)


def test_existing_ratings_count_only_for_themselves() -> None:
    # the other half is estimated from its own 50: 1/2 x t(48) x .5 x sqrt((1 - 50/500) / 50)
    strata = [PlannedStratum("", 500, 0.5)]
    half_width = expected_half_width(strata, {"": 50}, certain=500)
    assert half_width == pytest.approx(0.5 * 2.010635 * 0.5 * (0.9 / 50) ** 0.5, rel=1e-5)
    # 20 ratings in all, 2 in the stratum
    alike = [PlannedStratum("", 500, 0.05)]
    assert labels_for_width(alike, 0.9, certain=500).labels == 2
    assert labels_for_width(alike, 0.9, certain=15).labels == 5


def test_completely_drawn_stratum_adds_no_variance_or_freedom() -> None:
    strata = [PlannedStratum("whole", 50, 0.5), PlannedStratum("rest", 50, 0.5)]
    # t(10 - 1 - 1) of the rest alone
    half_width = expected_half_width(strata, {"whole": 50, "rest": 10})
    assert half_width == pytest.approx(0.5 * 2.306004 * 0.5 * (0.8 / 10) ** 0.5, rel=1e-5)


@pytest.mark.parametrize("target", [0.0, -0.1])
def test_non_positive_width_or_difference_cannot_be_planned(target: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        labels_for_width([PlannedStratum("", 30, 0.5)], target)
    with pytest.raises(ValueError, match="positive"):
        labels_for_difference([PlannedStratum("", 30, 0.5)], target)


@given(st.lists(st.tuples(st.integers(2, 300), st.floats(0, 1)), min_size=1, max_size=5), st.floats(0.01, 0.5))
@settings(max_examples=max_examples(100), deadline=None)
def test_plan_fits_its_frame(rows: list[tuple[int, float]], half_width: float) -> None:
    strata = [PlannedStratum(str(i), size, deviation) for i, (size, deviation) in enumerate(rows)]
    plan = labels_for_width(strata, half_width)

    assert sum(min(2, stratum.size) for stratum in strata) <= plan.labels <= sum(stratum.size for stratum in strata)
    assert plan.half_width <= half_width + 1e-12 or plan.labels == sum(stratum.size for stratum in strata)


def test_thin_pilot_strata_borrow_from_all() -> None:
    # a: 1, -1, 1, -1, 1, -1 has sd sqrt(6/5); b has too few and takes that of all 8 (mean 0, squares 6): sqrt(6/7)
    deviations = pilot_deviations({"a": [1, -1, 1, -1, 1, -1], "b": [0, 0]}, {"a": 10, "b": 10, "c": 10}, floor=0.1)

    assert deviations == pytest.approx({"a": 1.2**0.5, "b": (6 / 7) ** 0.5, "c": (6 / 7) ** 0.5})
    assert pilot_deviations({"a": [0.0] * 9}, {"a": 10}, floor=0.1) == {"a": 0.1}
    assert pilot_deviations({}, {"a": 10}, floor=0.1) == {"a": 0.1}
