"""Statistics equal scikit-learn, scipy and krippendorff on random ratings."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.core.scales import Scale
from review.statistics.agreement.experts import compare_experts
from review.statistics.agreement.pair import compare
from review.statistics.agreement.statistic import Rating

LEVELS, YES_NO = Scale.parse("1..5"), Scale.parse("bool")
SEEDS = range(5)


def random_pairs(seed: int, levels: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    expert = random.integers(0, levels, 200)
    judge = np.clip(expert + random.integers(-1, 2, 200), 0, levels - 1)
    return judge, expert, random.integers(1, 6, 200).astype(float)


@pytest.mark.parametrize("seed", SEEDS)
def test_kappas_with_and_without_weights_equal_scikit_learn(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    judge, expert, weight = random_pairs(seed, 5)
    for weights in (None, weight):
        agreement = compare((judge + 1).tolist(), (expert + 1).tolist(), LEVELS, weights).to_dict()
        for kind in (None, "linear", "quadratic"):
            expected = metrics.cohen_kappa_score(expert, judge, weights=kind, sample_weight=weights, labels=range(5))
            name = "cohen_kappa" if kind is None else f"cohen_kappa_{kind}"
            assert agreement[name] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_yes_no_rates_equal_scikit_learn(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    judge, expert, weight = random_pairs(seed, 2)
    agreement = compare(judge.tolist(), expert.tolist(), YES_NO, weight).to_dict()

    for name, function in (
        ("precision", metrics.precision_score),
        ("recall", metrics.recall_score),
        ("f1", metrics.f1_score),
        ("balanced_accuracy", metrics.balanced_accuracy_score),
        ("exact", metrics.accuracy_score),
    ):
        assert agreement[name] == pytest.approx(function(expert, judge, sample_weight=weight), abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_correlations_equal_scipy(seed: int) -> None:
    stats = pytest.importorskip("scipy.stats")
    random = np.random.default_rng(seed)
    judge = random.integers(1, 6, 300)
    expert = np.clip((judge + random.integers(-2, 3, (3, 300))).mean(axis=0), 1, 5)
    agreement = compare(judge.tolist(), expert.tolist(), LEVELS).to_dict()

    assert agreement["pearson"] == pytest.approx(stats.pearsonr(judge, expert).statistic, abs=1e-9)
    assert agreement["spearman"] == pytest.approx(stats.spearmanr(judge, expert).statistic, abs=1e-9)
    assert agreement["kendall_tau_b"] == pytest.approx(stats.kendalltau(judge, expert).statistic, abs=1e-9)


@pytest.mark.parametrize("level", ["nominal", "ordinal", "interval"])
@pytest.mark.parametrize("seed", SEEDS)
def test_alphas_with_gaps_equal_krippendorff(seed: int, level: str) -> None:
    library = pytest.importorskip("krippendorff")
    random = np.random.default_rng(seed)
    data = np.clip(random.integers(1, 6, 80) + random.integers(-1, 2, (4, 80)), 1, 5).astype(float)
    data[random.random(data.shape) < 0.4] = np.nan
    ratings = [Rating(u, str(r), data[r, u]) for r in range(4) for u in range(80) if not np.isnan(data[r, u])]
    alpha = compare_experts(ratings, LEVELS).statistics[f"krippendorff_alpha_{level}"].value

    expected = library.alpha(data, level_of_measurement=level, value_domain=[1, 2, 3, 4, 5])
    assert alpha == pytest.approx(expected, abs=1e-9)


def test_interval_alpha_of_reals_equals_krippendorff() -> None:
    library = pytest.importorskip("krippendorff")
    data = np.random.default_rng(1).random((3, 50))
    data[0, :20] = np.nan
    ratings = [Rating(u, str(r), data[r, u]) for r in range(3) for u in range(50) if not np.isnan(data[r, u])]
    alpha = compare_experts(ratings, Scale.parse("0..1:real")).statistics["krippendorff_alpha_interval"].value

    assert alpha == pytest.approx(library.alpha(data, level_of_measurement="interval"), abs=1e-9)
