"""Common slope of experts on the judge over several strata."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from review.statistics.correction.frame import Stratum
from review.statistics.correction.strata_estimates import slopes


def stratum(name: str, size: int, judge_values: Sequence[float], rating: Sequence[float]) -> Stratum:
    """A stratum of ``size`` answers whose rated ones were drawn with equal probabilities."""
    count = len(judge_values)
    return Stratum(
        name=name,
        judge_failed=False,
        members=np.arange(size),
        labelled=np.arange(count),
        judge=np.resize(np.array(judge_values, dtype=float), size),
        judged=np.array(judge_values, dtype=float),
        rating=np.array(rating, dtype=float),
        inclusion=np.full(count, count / size),
        reached=count,
        unanswered=0,
        unanswered_share=0.0,
    )


def test_stratum_weighs_in_the_slope_as_in_the_variance() -> None:
    # N^2 (1 - n / N) / n: of 4 with 2 rated 16 x .5 / 2 = 4, of 20 with 6 rated 400 x .7 / 6 = 46 2/3.
    # The judge's variances are .5 and .3; the experts say the same in the small stratum, the opposite in the large one:
    # (4 x .5 - 46 2/3 x .3) / (4 x .5 + 46 2/3 x .3) = (2 - 14) / (2 + 14)
    small, large = stratum("a", 4, [0, 1], [0, 1]), stratum("b", 20, [0, 1] * 3, [1, 0] * 3)
    pooled = slopes([small, large], 1.0, 24)
    assert pooled.values == pytest.approx((-0.75, -0.75))
    assert pooled.estimated == 1
