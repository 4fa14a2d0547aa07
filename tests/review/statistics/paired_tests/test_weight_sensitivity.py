"""Sensitivity of the run order to the weights."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.statistics.paired_tests.ranking import weight_sensitivity


def test_weight_at_which_two_runs_swap_by_hand() -> None:
    # a leads by .2 in x and falls back by .1 in y: .5 x .2 - .5 x .1 = .05. With weight t on y and 1 - t on x:
    # .2 (1 - t) - .1 t = 0 at t = 2/3; the same point as x at 1/3. Both are 1/6 away; x comes first.
    sensitivity = weight_sensitivity({"a": {"x": 0.8, "y": 0.5}, "b": {"x": 0.6, "y": 0.6}}, {"x": 1.0, "y": 1.0})

    assert sensitivity is not None
    (swap,) = sensitivity.turns
    assert (swap.ahead, swap.behind) == ("a", "b")
    assert (swap.part, swap.weight, swap.at) == ("x", 0.5, pytest.approx(1 / 3))
    # of all weightings those with x above 1/3: two thirds
    assert sensitivity.best["a"] == pytest.approx(2 / 3, abs=0.02)
    # near: the ratio of the weights lies between 1/4 and 4, its log triangular; b leads where x / y < 1/2, that is
    # log ratio below -ln 2 of +-2 ln 2: 1/8
    assert sensitivity.holds == pytest.approx(7 / 8, abs=0.02)


def test_run_leading_everywhere_leads_under_any_weights() -> None:
    sensitivity = weight_sensitivity({"b": {"x": 0.1, "y": 0.2}, "a": {"x": 0.8, "y": 0.5}}, {"x": 0.3, "y": 0.7})

    assert sensitivity is not None
    assert (sensitivity.holds, sensitivity.turns) == (1.0, ())
    assert sensitivity.best == {"a": 1.0, "b": 0.0}


def test_equal_runs_share_the_first_place_and_never_swap() -> None:
    sensitivity = weight_sensitivity({"a": {"x": 0.5, "y": 0.5}, "b": {"x": 0.5, "y": 0.5}}, {"x": 0.3, "y": 0.7})

    assert sensitivity is not None
    assert sensitivity.best == pytest.approx({"a": 0.5, "b": 0.5})
    assert (sensitivity.holds, sensitivity.turns) == (0.5, ())


def test_single_run_or_part_leaves_nothing_to_weigh() -> None:
    assert weight_sensitivity({"a": {"x": 1.0, "y": 0.0}}, {"x": 0.5, "y": 0.5}) is None
    assert weight_sensitivity({"a": {"x": 1.0}, "b": {"x": 0.0}}, {"x": 1.0}) is None
    for weight in (0.0, -0.5):
        with pytest.raises(ValueError, match="positive"):
            weight_sensitivity({"a": {"x": 1.0, "y": 0.0}, "b": {"x": 1.0, "y": 0.0}}, {"x": 1.0, "y": weight})


@given(
    table=st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=5),
    weights=st.tuples(st.floats(0.05, 1), st.floats(0.05, 1), st.floats(0.05, 1)),
)
def test_shares_are_valid_and_every_swap_weight_equalises_two_runs(
    table: list[tuple[float, float, float]], weights: tuple[float, float, float]
) -> None:
    runs = {str(i): dict(zip("xyz", row, strict=True)) for i, row in enumerate(table)}
    sensitivity = weight_sensitivity(runs, dict(zip("xyz", weights, strict=True)), draws=200)

    assert sensitivity is not None
    assert 0.0 <= sensitivity.holds <= 1.0
    assert sum(sensitivity.best.values()) == pytest.approx(1.0)
    for swap in sensitivity.turns:
        share = {part: weight / sum(weights) for part, weight in zip("xyz", weights, strict=True)}
        other_share = 1.0 - share[swap.part]
        swapped_weights = {
            part: w * (1 - swap.at) / other_share if part != swap.part else swap.at for part, w in share.items()
        }
        scores = [sum(swapped_weights[p] * runs[run][p] for p in "xyz") for run in (swap.ahead, swap.behind)]
        assert scores[0] == pytest.approx(scores[1], abs=1e-6)
