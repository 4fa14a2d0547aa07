from __future__ import annotations

import pytest
from scipy.special import stdtrit

from review.statistics.student_t import t_quantile

PROBABILITIES = (0.001, 0.025, 0.2, 0.5, 0.5001, 0.6, 0.8, 0.95, 0.975, 0.995, 0.9995, 0.99999)


@pytest.mark.parametrize("freedom", [1, 1.5, 2, 4.7, 9, 30, 99.5, 1000, 9_999, 10_000, 12_345.6, 1e9, float("inf")])
def test_quantiles_equal_those_of_scipy(freedom: float) -> None:
    computed = [t_quantile(probability, freedom) for probability in PROBABILITIES]
    assert computed == pytest.approx([float(stdtrit(freedom, p)) for p in PROBABILITIES], rel=1e-9, abs=1e-12)
