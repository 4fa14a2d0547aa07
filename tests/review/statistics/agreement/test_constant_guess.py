"""Best constant guess."""

from __future__ import annotations

import pytest

from evaluation.core.scales import Scale
from review.statistics.agreement.pair import best_constant_guess

LEVELS = Scale.parse("1..5")


def test_most_common_level_wins_after_rounding() -> None:
    # rounded 5, 4, 5, 2: 5 is right twice
    guess = best_constant_guess([4.5, 4, 5, 2], LEVELS)

    assert guess is not None
    assert (guess.value, guess.agreement.statistics["exact"].value) == (5.0, 0.5)
    assert guess.agreement.statistics["pearson"].reason == "judge_constant"


def test_weights_decide_and_ties_go_to_the_lowest_level() -> None:
    weighted, tied = best_constant_guess([1, 5], LEVELS, [1, 3]), best_constant_guess([5, 1], LEVELS)

    assert weighted is not None
    assert weighted.value == 5.0
    assert tied is not None
    assert tied.value == 1.0


def test_constant_guess_for_classes_and_reals() -> None:
    classes = best_constant_guess(["b", "a", "b", None], Scale.parse("class:a|b"))
    reals = best_constant_guess([0.1, 0.2, 0.9], Scale.parse("0..1:real"))

    assert classes is not None
    assert classes.value == "b"
    assert reals is not None
    assert reals.value == 0.2
    # |0.2 - 0.1| + 0 + |0.2 - 0.9| = 0.8 over 3
    assert reals.agreement.statistics["mae"].value == pytest.approx(0.8 / 3)


def test_no_guess_without_experts() -> None:
    assert best_constant_guess([], LEVELS) is None
    assert best_constant_guess([None], Scale.parse("0..1:real")) is None
    assert best_constant_guess([0.5], Scale.parse("bool")) is None
