"""Thresholds and bands compare after rounding to 1e-9."""

from __future__ import annotations

import pytest

from evaluation.profiles.arithmetic import band_of, meets
from evaluation.profiles.spec import ProfileSpec, ScoreBand

TITLE = {"en": "T", "ko": "T"}
PROFILE = ProfileSpec.model_validate(
    {
        "name": "p",
        "title": TITLE,
        "parts": [{"metric": "a", "weight": 0.5}, {"metric": "b", "weight": 0.5}],
        "bands": [
            {"name": "fair", "title": TITLE, "at_least": 0.4},
            {"name": "good", "title": TITLE, "at_least": 0.6},
        ],
    }
)


def test_threshold_is_met_despite_a_rounding_error() -> None:
    total = 0.7 + 0.1  # 0.7999999999999999 in binary
    assert total < 0.8
    assert meets(total, 0.8)
    assert not meets(0.8 - 2e-9, 0.8)


@pytest.mark.parametrize(
    ("value", "band"), [(0.39, None), (0.4, "fair"), (0.6, "good"), (0.6 - 1e-12, "good"), (1, "good")]
)
def test_bands_include_only_their_lower_end(value: float, band: str | None) -> None:
    score_band = band_of(PROFILE.bands, value)
    assert (score_band.name if score_band else None) == band


@pytest.mark.parametrize(("value", "band"), [(0.8, "good"), (0.8 + 1e-12, "good"), (0.800001, "excellent"), (0, None)])
def test_band_may_exclude_its_lower_end(value: float, band: str | None) -> None:
    """In the generation profile, above 0.8 is excellent and 0.8 itself is good."""
    bands = (
        ScoreBand.model_validate({"name": "good", "title": TITLE, "at_least": 0.6}),
        ScoreBand.model_validate({"name": "excellent", "title": TITLE, "above": 0.8}),
    )
    score_band = band_of(bands, value)
    assert (score_band.name if score_band else None) == band


@pytest.mark.parametrize("start", [{}, {"at_least": 0.1, "above": 0.1}])
def test_band_needs_either_at_least_or_above(start: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="either at_least"):
        ScoreBand.model_validate({"name": "b", "title": TITLE, **start})
