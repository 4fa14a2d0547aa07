"""Valid rating inputs per metric, and large changes of a rating."""

from __future__ import annotations

import pytest

from evaluation.core.errors import DomainError
from evaluation.core.scales import Scale
from review.evidence.rating_input import RatingInput, crosses_threshold

LEVELS = Scale.parse("levels 1..5")


@pytest.mark.parametrize(
    "rating",
    [
        RatingInput(3),
        RatingInput(cannot_judge=True),
        RatingInput(cannot_judge=True, reason_code="not_my_field"),
        RatingInput(3, comment="x" * 10_000),
    ],
)
def test_valid_input_is_accepted(rating: RatingInput) -> None:
    rating.check("correctness", LEVELS)


@pytest.mark.parametrize(
    ("rating", "code"),
    [
        (RatingInput(), "one_value"),
        (RatingInput(3, label="good"), "one_value"),
        (RatingInput(3, cannot_judge=True), "one_value"),
        (RatingInput(6), "off_scale"),
        (RatingInput(2.5), "off_scale"),
        (RatingInput(label="good"), "off_scale"),
        (RatingInput(3, reason_code="not_my_field"), "unknown_why_not"),  # says why something else was not given
        (RatingInput(cannot_judge=True, reason_code="policy"), "unknown_why_not"),
        (RatingInput(3, comment="x" * 10_001), "comment_too_long"),
    ],
)
def test_invalid_input_is_refused(rating: RatingInput, code: str) -> None:
    with pytest.raises(DomainError) as error_info:
        rating.check("correctness", LEVELS)
    assert error_info.value.code == code


@pytest.mark.parametrize(
    ("threshold", "first", "second", "crossed"),
    [
        (4.0, 3, 4, True),
        (4.0, 4, 3, True),
        (4.0, 4, 5, False),  # at the threshold is above it
        (4.0, 1, 3, False),
        (None, 1, 5, False),
        (4.0, None, 5, False),
    ],
)
def test_change_flips_when_it_crosses_the_threshold(
    threshold: float | None, first: float | None, second: float | None, crossed: bool
) -> None:
    assert crosses_threshold(threshold, first, second) is crossed
