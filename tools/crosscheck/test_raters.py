"""Agreement of several raters, with gaps, against irrCAC."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluation.core.scales import Scale
from review.statistics.agreement.experts import compare_experts
from review.statistics.agreement.pair import compare
from review.statistics.agreement.statistic import Rating

LEVELS = Scale.parse("1..5")
SEEDS = range(8)
CLOSE = 1e-4  # irrCAC rounds to five digits


def simulate_ratings(seed: int, raters: int, gaps: float) -> np.ndarray:
    """Ratings of 60 items, one column per rater; every item keeps at least one."""
    random = np.random.default_rng(seed)
    true_levels = random.integers(1, 6, (60, 1))
    ratings = np.clip(true_levels + random.integers(-1, 2, (60, raters)), 1, 5).astype(float)
    is_missing = random.random(ratings.shape) < gaps
    is_missing[:, 0] = False
    ratings[is_missing] = np.nan
    return ratings


def coefficient(data: np.ndarray, name: str, weights: str) -> float:
    pandas, irr = pytest.importorskip("pandas"), pytest.importorskip("irrCAC.raw")
    cac: Any = irr.CAC(pandas.DataFrame(data), weights=weights, categories=[1.0, 2.0, 3.0, 4.0, 5.0])
    return float(getattr(cac, name)()["est"]["coefficient_value"])


@pytest.mark.parametrize("gaps", [0.0, 0.35])
@pytest.mark.parametrize("seed", SEEDS)
def test_gwet_and_fleiss_of_four_raters_match_irrcac(seed: int, gaps: float) -> None:
    data = simulate_ratings(seed, 4, gaps)
    ratings = [Rating(i, str(r), data[i, r]) for i in range(60) for r in range(4) if not np.isnan(data[i, r])]
    statistics_by_name = compare_experts(ratings, LEVELS).to_dict()
    assert statistics_by_name["gwet_ac1"] == pytest.approx(coefficient(data, "gwet", "identity"), abs=CLOSE)
    assert statistics_by_name["gwet_ac2"] == pytest.approx(coefficient(data, "gwet", "quadratic"), abs=CLOSE)
    assert statistics_by_name["fleiss_kappa"] == pytest.approx(coefficient(data, "fleiss", "identity"), abs=CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
def test_gwet_and_kappa_of_judge_and_experts_match_irrcac(seed: int) -> None:
    data = simulate_ratings(seed, 2, 0.0)
    statistics_by_name = compare(data[:, 0].tolist(), data[:, 1].tolist(), LEVELS).to_dict()
    assert statistics_by_name["gwet_ac1"] == pytest.approx(coefficient(data, "gwet", "identity"), abs=CLOSE)
    assert statistics_by_name["gwet_ac2"] == pytest.approx(coefficient(data, "gwet", "quadratic"), abs=CLOSE)
    assert statistics_by_name["cohen_kappa"] == pytest.approx(coefficient(data, "conger", "identity"), abs=CLOSE)
    assert statistics_by_name["cohen_kappa_linear"] == pytest.approx(coefficient(data, "conger", "linear"), abs=CLOSE)
    assert statistics_by_name["cohen_kappa_quadratic"] == pytest.approx(
        coefficient(data, "conger", "quadratic"), abs=CLOSE
    )
