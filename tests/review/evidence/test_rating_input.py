"""What may be given for a metric, and when a change of it is a large one."""

from __future__ import annotations

import pytest

from evaluation.core.errors import Refused
from evaluation.core.scales import Scale
from review.evidence.rating_input import Given, flips

LEVELS = Scale.parse("levels 1..5")


@pytest.mark.parametrize(
    "given",
    [
        Given(3),
        Given(cannot_judge=True),
        Given(cannot_judge=True, reason_code="not_my_field"),
        Given(3, comment="x" * 10_000),
    ],
)
def test_what_may_be_given(given: Given) -> None:
    given.check("correctness", LEVELS)


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (Given(), "one_value"),
        (Given(3, label="good"), "one_value"),
        (Given(3, cannot_judge=True), "one_value"),
        (Given(6), "off_scale"),
        (Given(2.5), "off_scale"),
        (Given(label="good"), "off_scale"),
        (Given(3, reason_code="not_my_field"), "unknown_why_not"),  # says why something else was not given
        (Given(cannot_judge=True, reason_code="policy"), "unknown_why_not"),
        (Given(3, comment="x" * 10_001), "comment_too_long"),
    ],
)
def test_what_may_not(given: Given, code: str) -> None:
    with pytest.raises(Refused) as refused:
        given.check("correctness", LEVELS)
    assert refused.value.code == code


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
def test_a_change_flips_where_it_crosses_the_threshold(
    threshold: float | None, first: float | None, second: float | None, crossed: bool
) -> None:
    assert flips(threshold, first, second) is crossed
