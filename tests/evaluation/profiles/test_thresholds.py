"""Thresholds and bands compare after rounding to 1e-9."""

from __future__ import annotations

import pytest

from evaluation.profiles.spec import ProfileSpec
from evaluation.profiles.thresholds import band_of, meets, passes

TITLE = {"en": "T", "ko": "T"}
PROFILE = ProfileSpec.model_validate(
    {
        "name": "p",
        "title": TITLE,
        "parts": [{"metric": "a", "weight": 0.5}, {"metric": "b", "weight": 0.5}],
        "thresholds": {"overall": 0.8, "a": 0.85},
        "bands": [
            {"name": "fair", "title": TITLE, "at_least": 0.4},
            {"name": "good", "title": TITLE, "at_least": 0.6},
        ],
    }
)


def test_a_sum_that_misses_the_threshold_by_a_rounding_error_meets_it() -> None:
    total = 0.7 + 0.1  # 0.7999999999999999 in binary
    assert total < 0.8
    assert meets(total, 0.8)
    assert not meets(0.8 - 2e-9, 0.8)


def test_passing_needs_every_threshold_and_a_missing_value_is_unknown() -> None:
    assert passes(PROFILE, {"overall": 0.9, "a": 0.85}) is True
    assert passes(PROFILE, {"overall": 0.9, "a": 0.8}) is False
    assert passes(PROFILE, {"overall": 0.9, "a": None}) is None
    assert passes(PROFILE, {"overall": 0.1, "a": None}) is False
    assert passes(PROFILE.model_copy(update={"thresholds": {}}), {"overall": 1.0}) is None


@pytest.mark.parametrize(
    ("value", "band"), [(0.39, None), (0.4, "fair"), (0.6, "good"), (0.6 - 1e-12, "good"), (1, "good")]
)
def test_bands_hold_their_lower_end_only(value: float, band: str | None) -> None:
    found = band_of(PROFILE, value)
    assert (found.name if found else None) == band
