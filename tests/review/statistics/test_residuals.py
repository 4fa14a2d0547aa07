"""Acceptance compares residual variances: a judge's scores must explain the labels."""

from __future__ import annotations

import numpy as np
import pytest

from review.statistics.acceptance import (
    Claim,
    LossComparison,
    ResidualVariances,
    is_accepted,
    residual_variances,
    squared_losses,
)


def compare_judges(labels: list[float], candidate: list[float], active: list[float]) -> LossComparison:
    weights, groups = np.ones(len(labels)), list(range(len(labels)))
    return LossComparison(
        candidate=squared_losses(candidate, labels, 16.0),
        active=squared_losses(active, labels, 0.0),
        best=squared_losses(active, labels, 0.0),
        weights=weights,
        groups=groups,
        categories=["all"] * len(labels),
        residuals=residual_variances(labels, candidate, active, weights, groups),
    )


def simulate_judge(slope: float, noise: float, bias: float, n: int = 400) -> tuple[list[float], list[float]]:
    random = np.random.default_rng(7)
    labels = random.uniform(1, 5, n)
    verdicts = 3 + slope * (labels - 3) + bias + random.normal(0, noise, n)
    return labels.tolist(), verdicts.tolist()


def residuals_of(
    labels: list[float], candidate: list[float | None], active: list[float | None], **options: object
) -> ResidualVariances:
    weights = np.asarray(options.get("weights", np.ones(len(labels))), dtype=np.float64)
    groups = options.get("groups", list(range(len(labels))))
    residuals = residual_variances(labels, candidate, active, weights, groups)  # type: ignore[arg-type]
    assert residuals is not None
    return residuals


def test_best_line_by_hand() -> None:
    # Labels 1, 2, 3, 4: mean 2.5, variance 1.25. Scores 1, 3, 2, 4 have the same mean and variance; the mean product of
    # deviations is (2.25 - 0.25 - 0.25 + 2.25) / 4 = 1, so 1.25 - 1 / 1.25 = 0.45 is left. 5, 5, 5, 5 explain nothing.
    residuals = residuals_of([1, 2, 3, 4], [1, 3, 2, 4], [5, 5, 5, 5])
    assert (residuals.candidate, residuals.active) == pytest.approx((0.45, 1.25))
    assert residuals.n == 4
    assert not residuals.larger


def test_weights_count_and_missing_scores_do_not() -> None:
    # Weights 2, 1, 1: mean 1.75, variance 0.5 * 0.5625 + 0.25 * 0.0625 + 0.25 * 1.5625 = 0.6875
    residuals = residuals_of([1, 2, 3, 9], [4, 4, 4, None], [1, 2, 3, 9], weights=[2, 1, 1, 50])
    assert (residuals.candidate, residuals.active) == pytest.approx((0.6875, 0.0))
    assert residuals.n == 3


@pytest.mark.parametrize(("slope", "bias"), [(1.0, 0.0), (0.5, 1.0), (2.0, -1.5), (-1.0, 0.0)])
def test_bias_and_slope_do_not_matter(slope: float, bias: float) -> None:
    labels, verdicts = simulate_judge(1.0, 0.5, 0.0)
    transformed: list[float | None] = [bias + slope * verdict for verdict in verdicts]
    residuals = residuals_of(labels, transformed, list(verdicts))
    assert residuals.candidate == pytest.approx(residuals.active)
    assert not residuals.larger


def test_fewer_than_two_groups_give_no_result() -> None:
    assert residual_variances([1, 2], [1, 2], [2, 1], np.ones(2), ["same", "same"]) is None
    assert residual_variances([1, 2], [None, None], [2, 1], np.ones(2), [1, 2]) is None


def test_lower_loss_with_clearly_lower_correlation_is_rejected() -> None:
    """The active judge ranks well but is two levels too lenient; the candidate stays close to the overall mean."""
    labels, active = simulate_judge(1.0, 0.7, 2.0)
    _, candidate = simulate_judge(0.1, 0.7, 0.0)
    comparison = compare_judges(labels, candidate, active)
    assert comparison.loss < float(np.mean(comparison.active))
    assert comparison.is_noisier
    without_residuals = LossComparison(
        comparison.candidate,
        comparison.active,
        comparison.best,
        comparison.weights,
        comparison.groups,
        comparison.categories,
    )
    assert is_accepted({"correctness": without_residuals}, 1)
    assert not is_accepted({"correctness": comparison}, 1)
    assert not is_accepted({"correctness": comparison}, 1, Claim.NOT_WORSE)


def test_candidate_that_removes_bias_is_accepted() -> None:
    labels, active = simulate_judge(1.0, 0.7, 2.0)
    _, candidate = simulate_judge(1.0, 0.7, 0.0)
    assert is_accepted({"correctness": compare_judges(labels, candidate, active)}, 1)


def test_equal_judges_are_called_noisier_in_a_twentieth_of_cases() -> None:
    larger = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        labels = random.uniform(1, 5, 100)
        candidate_scores, active_scores = labels + random.normal(0, 1, 100), labels + random.normal(0, 1, 100)
        residuals = residual_variances(
            labels.tolist(),
            candidate_scores.tolist(),
            active_scores.tolist(),
            np.ones(100),
            list(range(100)),
            resamples=400,
            seed=seed,
        )
        larger += residuals is not None and residuals.larger
    assert 2 <= larger <= 22
