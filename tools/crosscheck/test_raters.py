"""Agreement of several raters, with gaps, as irrCAC has it."""

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


def table(seed: int, raters: int, gaps: float) -> np.ndarray:
    """Ratings of 60 items, one column per rater; every item keeps at least one."""
    random = np.random.default_rng(seed)
    truth = random.integers(1, 6, (60, 1))
    found = np.clip(truth + random.integers(-1, 2, (60, raters)), 1, 5).astype(float)
    missing = random.random(found.shape) < gaps
    missing[:, 0] = False
    found[missing] = np.nan
    return found


def coefficient(data: np.ndarray, name: str, weights: str) -> float:
    pandas, irr = pytest.importorskip("pandas"), pytest.importorskip("irrCAC.raw")
    cac: Any = irr.CAC(pandas.DataFrame(data), weights=weights, categories=[1.0, 2.0, 3.0, 4.0, 5.0])
    return float(getattr(cac, name)()["est"]["coefficient_value"])


@pytest.mark.parametrize("gaps", [0.0, 0.35])
@pytest.mark.parametrize("seed", SEEDS)
def test_gwet_and_fleiss_over_four_raters(seed: int, gaps: float) -> None:
    data = table(seed, 4, gaps)
    given = [Rating(i, str(r), data[i, r]) for i in range(60) for r in range(4) if not np.isnan(data[i, r])]
    found = compare_experts(given, LEVELS).to_dict()
    assert found["gwet_ac1"] == pytest.approx(coefficient(data, "gwet", "identity"), abs=CLOSE)
    assert found["gwet_ac2"] == pytest.approx(coefficient(data, "gwet", "quadratic"), abs=CLOSE)
    assert found["fleiss_kappa"] == pytest.approx(coefficient(data, "fleiss", "identity"), abs=CLOSE)


@pytest.mark.parametrize("seed", SEEDS)
def test_gwet_of_a_judge_and_the_experts(seed: int) -> None:
    data = table(seed, 2, 0.0)
    found = compare(data[:, 0].tolist(), data[:, 1].tolist(), LEVELS).to_dict()
    assert found["gwet_ac1"] == pytest.approx(coefficient(data, "gwet", "identity"), abs=CLOSE)
    assert found["gwet_ac2"] == pytest.approx(coefficient(data, "gwet", "quadratic"), abs=CLOSE)
    assert found["cohen_kappa"] == pytest.approx(coefficient(data, "conger", "identity"), abs=CLOSE)
    assert found["cohen_kappa_linear"] == pytest.approx(coefficient(data, "conger", "linear"), abs=CLOSE)
    assert found["cohen_kappa_quadratic"] == pytest.approx(coefficient(data, "conger", "quadratic"), abs=CLOSE)
