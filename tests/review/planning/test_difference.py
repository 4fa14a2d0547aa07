"""Questions for a wanted difference."""

from __future__ import annotations

import pytest

from review.planning.difference import detectable_difference, questions_for_difference


def test_large_samples_follow_the_normal_formula() -> None:
    # ((1.959964 + 0.841621) x 1 / 0.1)^2 = 784.9; t needs a little more: 787
    assert questions_for_difference(0.1, 1.0) == 787


def test_both_directions_agree() -> None:
    for size in (5, 20, 100):
        detectable = detectable_difference(size, 0.4)
        assert questions_for_difference(detectable * 1.0001, 0.4) == size


def test_impossible_questions_are_errors() -> None:
    with pytest.raises(ValueError, match="other than 0"):
        questions_for_difference(0.0, 1.0)
    assert questions_for_difference(0.5, 0.0) == 2
