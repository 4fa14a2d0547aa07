"""Standing score over releases: slope of earlier ratings, test for tuning, never-rated questions, rechecks."""

from __future__ import annotations

import os
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from review.statistics.correction.corrected import corrected_component
from review.statistics.correction.outcome import Estimate, Method
from review.statistics.standing import (
    NeverRated,
    earlier_slope,
    never_rated_score,
    recheck_drift,
    recheck_size,
    score_levels,
    tuning_test,
)
from tests.examples import max_examples
from tests.review.statistics.correction.frames import FrameAnswer, rated, unsampled, wilson, yes_no
from tools.simulations import standing as simulation

DATA = os.environ.get("CONCORD_TEST_DATA", "")


def release() -> list[FrameAnswer]:
    """100 answers: 40 carried ratings, of which 30 are yes; of the other 60, of which the judge accepts 40, 20 are
    drawn."""
    carried = [rated(key, 1.0, float(key < 30), 1.0, "carried") for key in range(40)]
    # Of 10 drawn that the judge accepts the experts accept 8, of 10 it rejects they accept 3.
    drawn = [rated(40 + key, 1.0, float(key < 8), 1 / 3) for key in range(10)]
    drawn += [rated(50 + key, 0.0, float(key < 3), 1 / 3) for key in range(10)]
    return [*carried, *drawn, *(unsampled(60 + key, float(key < 30), 1 / 3) for key in range(40))]


def test_standing_score_by_hand() -> None:
    """Earlier ratings give b = 0.6. Of the 60 the judge accepts 40, of the 20 drawn 10: 11/20 + 0.6 (40/60 - 10/20) =
    0.65. Score: 0.4 x 0.75 + 0.6 x 0.65 = 0.69.

    Residuals y - 0.6 f - 0.25: 0.15 (8), -0.85 (2), 0.75 (3), -0.25 (7); their squares sum to 0.18 + 1.445 + 1.6875 +
    0.4375 = 3.75. Variance 0.6^2 x 3.75/19 / 20 x (1 - 1/3) = 0.00236842, plus that of a quarter of an unseen label at
    either end: 1/4 (0.6 / 20)^2 (2/3) (0.35^2 + 0.65^2) = 0.00008175; t with 19 degrees of freedom is 2.093024."""
    outcome = corrected_component(replace(yes_no(release()), slope=0.6))
    assert isinstance(outcome, Estimate)
    assert (outcome.value, outcome.slope, outcome.labels) == (pytest.approx(0.69), 0.6, 60)
    assert outcome.method is Method.REGRESSION
    assert (outcome.low, outcome.high) == wilson(0.69, 0.00236842 + 0.00008175, 2.093024)


def test_slope_of_the_draw_costs_a_degree_of_freedom() -> None:
    """The draw gives b = 0.8 - 0.3 = 0.5 and the value 0.3 + 0.6 (0.55 + 0.5/6) = 0.68."""
    outcome = corrected_component(yes_no(release()))
    assert isinstance(outcome, Estimate)
    assert (outcome.value, outcome.slope) == (pytest.approx(0.68), pytest.approx(0.5))


def test_release_without_changes_is_known_exactly() -> None:
    answers = [rated(key, 1.0, float(key < 30), 1.0, "carried") for key in range(40)]
    outcome = corrected_component(replace(yes_no(answers), slope=0.6))
    assert isinstance(outcome, Estimate)
    assert (outcome.low, outcome.value, outcome.high) == (0.75, 0.75, 0.75)


def test_slope_needs_twenty_ratings_and_different_judge_values() -> None:
    """Of 10 accepted the experts accept 8, of 10 rejected 2: 0.8 - 0.2."""
    judge = np.repeat([1.0, 0.0], 10)
    rating = np.array([1.0] * 8 + [0.0] * 2 + [1.0] * 2 + [0.0] * 8)
    assert earlier_slope(judge, rating) == pytest.approx(0.6)
    assert earlier_slope(judge[1:], rating[1:]) is None
    assert earlier_slope(np.full(20, 0.7), rating) is None


def test_levels_are_values_or_quarters() -> None:
    assert score_levels(np.array([1.0, 0.0, np.nan, 1.0])).tolist() == [1, 0, -1, 1]
    assert score_levels(np.arange(12.0)).tolist() == [0] * 3 + [1] * 3 + [2] * 3 + [3] * 3


def test_tuning_by_hand() -> None:
    """Level 0: both of the 2 rated of 4 answers changed, no others: one of 6 choices. Level 1: the one rated of
    3 answers changed, and one other: 2 of 3 choices. Both at once: 1/6 x 2/3 = 1/9; expected 1 + 2/3."""
    changed = np.array([1, 1, 0, 0, 1, 1, 0], dtype=bool)
    rated_flags = np.array([1, 1, 0, 0, 1, 0, 0], dtype=bool)
    result = tuning_test(changed, rated_flags, np.array([0, 0, 0, 0, 1, 1, 1]))
    assert (result.rated, result.rated_changed, result.unrated, result.unrated_changed) == (3, 3, 4, 1)
    assert (result.expected, result.p_value) == (pytest.approx(5 / 3), pytest.approx(1 / 9))
    assert not result.fired


@pytest.mark.parametrize(("changed", "rated_flags"), [([0] * 4, [1, 1, 0, 0]), ([1, 0, 1, 0], [1] * 4)])
def test_tuning_cannot_be_tested_without_variation(changed: list[int], rated_flags: list[int]) -> None:
    result = tuning_test(np.array(changed, dtype=bool), np.array(rated_flags, dtype=bool), np.zeros(4, dtype=int))
    assert (result.p_value, result.fired) == (None, False)


@settings(max_examples=max_examples(100), deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 1)), min_size=2, max_size=9).map(
        lambda rows: [np.array(column) for column in zip(*rows, strict=True)]
    )
)
def test_p_value_is_that_of_all_permutations_within_levels(columns: list[np.ndarray]) -> None:
    changed, rated_flags, level = columns
    counts = {0: 1}
    for number in np.unique(level):
        members = np.flatnonzero(level == number)
        totals: dict[int, int] = {}
        for chosen in combinations(members.tolist(), int(rated_flags[members].sum())):
            for count, ways in counts.items():
                total = count + int(changed[list(chosen)].sum())
                totals[total] = totals.get(total, 0) + ways
        counts = totals
    observed = int((changed & rated_flags).sum())
    exact = sum(ways for count, ways in counts.items() if count >= observed) / sum(counts.values())
    p_value = tuning_test(changed, rated_flags, level).p_value
    assert p_value == pytest.approx(exact) if p_value is not None else len(counts) == 1


def never_rated(**columns: object) -> NeverRated:
    """40 questions that the judge accepts in half; 20 rated, 10 of each half, of which 8 and 2 are good."""
    rating = np.array(([1.0] * 8 + [0.0] * 2 + [np.nan] * 10) + ([1.0] * 2 + [0.0] * 8 + [np.nan] * 10))
    questions = NeverRated(np.repeat([1.0, 0.0], 20), rating, np.full(40, 0.5), np.full(40, 0.5), np.arange(40), 0.6)
    return replace(questions, **columns)  # type: ignore[arg-type]


def test_never_rated_questions_by_hand() -> None:
    """Equal weights and b = 0.6. Residuals y - 0.6 f - 0.2: 0.2 (8), -0.8 (2), 0.8 (2), -0.2 (8); their squares sum to
    3.2. The deviation of a question is that of its judge value, 0.6 x 0.5 / 40, and of its label, residual / 20 x
    sqrt(20/19)."""
    result = never_rated_score([never_rated()])
    assert result is not None
    judge, label = 0.6 * 0.5 / 40, (20 / 19) ** 0.5 / 20
    # Accepted: 8 x 0.2 - 2 x 0.8 = 0, so the judge's and the labels' shares do not correlate.
    variance = (40 * judge**2 + 3.2 * label**2) * 40 / 39
    assert (result.value, result.labels) == (pytest.approx(0.5), 20)
    # 19 degrees of freedom: 20 rated groups.
    assert (result.low, result.high) == wilson(0.5, variance, 2.093024)


def test_question_that_hardly_escaped_counts_more() -> None:
    """The accepted half escaped with chance 1/4, the other with 1/2: weights 2 to 1. Means 0.8 and 0.2: 0.6."""
    result = never_rated_score([never_rated(escape=np.repeat([0.25, 0.5], 20), slope=0.0)])
    assert result is not None
    assert result.value == pytest.approx((2 * 0.8 + 0.2) / 3)


def test_components_add_up_by_question() -> None:
    """Half of the rated component and half of an exact one, which is 1 minus the judge: 0.5 x 0.5 + 0.5 x 0.5. The
    shares of a question in both partly cancel: 0.5 x 0.6 - 0.5 = -0.2 of the judge's."""
    judge, label = 0.2 * 0.5 / 40, 0.5 * (20 / 19) ** 0.5 / 20
    exact = never_rated(judge=np.repeat([0.0, 1.0], 20), rating=np.full(40, np.nan), exact=True, weight=0.5)
    result = never_rated_score([never_rated(weight=0.5), exact])
    assert result is not None
    variance = (40 * judge**2 + 3.2 * label**2) * 40 / 39
    assert (result.value, result.labels) == (pytest.approx(0.5), 20)
    assert (result.low, result.high) == wilson(0.5, variance, 2.093024)


def test_failed_judgement_takes_the_mean_prediction() -> None:
    judge = never_rated().judge.copy()
    judge[-1] = np.nan
    result = never_rated_score([never_rated(judge=judge, slope=1.0)])
    # Predictions: 20 x 1, 19 x 0 and 20/39. Ratings 10 of 20, of which the judge predicts 10: no error on average.
    assert result is not None
    assert result.value == pytest.approx((20 + 20 / 39) / 40)


def test_never_rated_score_needs_twenty_ratings() -> None:
    rating = never_rated().rating.copy()
    rating[0] = np.nan
    assert never_rated_score([never_rated(rating=rating)]) is None


@pytest.mark.parametrize(("carried", "size"), [(0, 0), (7, 7), (60, 10), (200, 10), (201, 11), (1000, 50)])
def test_recheck_size(carried: int, size: int) -> None:
    assert recheck_size(carried) == size


def test_drift_by_hand() -> None:
    """Differences 0 (6), -1 (4): mean -0.4, s^2 = 2.4/9, error sqrt(2.4/90) = 0.163299, t with 9 is 2.262157."""
    drift = recheck_drift([0.0] * 6 + [-1.0] * 4, np.arange(10), 4.0)
    assert drift is not None
    assert (drift.value, drift.rechecked) == (pytest.approx(-0.4), 10)
    assert (drift.low, drift.high) == pytest.approx((-0.4 - 2.262157 * 0.163299, -0.4 + 2.262157 * 0.163299), abs=1e-5)
    assert drift.shown


def test_equal_differences_leave_room_for_unseen_ones() -> None:
    """1 - 0.05^(1/10) = 0.258866 of the scale."""
    drift = recheck_drift([0.0] * 10, np.arange(10), 4.0)
    assert drift is not None
    assert (drift.low, drift.high) == pytest.approx((-4 * 0.258866, 4 * 0.258866), abs=1e-5)
    assert not drift.shown


def test_rechecks_of_one_question_count_once() -> None:
    assert recheck_drift([1.0, 1.0], np.array([0, 0]), 4.0) is None


@pytest.mark.skipif(not DATA, reason="CONCORD_TEST_DATA names no folder")
def test_small_simulation_keeps_promised_limits() -> None:
    """30 lives of 9 releases: coverage may be three standard deviations, .04, below its goal."""
    population = next(
        data for data in simulation.populations(Path(DATA)) if (data.scale, data.name) in simulation.JUDGES
    )
    for tuned in (0.0, simulation.FIXED):
        cell = simulation.simulate(population, tuned, 30)
        missed = list(simulation.missed_goals(cell, population.scale, 30, tuned=bool(tuned)))
        assert [goal for goal in missed if "coverage" not in goal] == []
        assert cell.coverage >= simulation.LEAST_COVERAGE - 0.04
