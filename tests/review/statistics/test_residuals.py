"""A judge's scores are worth what they tell of the labels: acceptance compares residual variances."""

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


def compared(labels: list[float], candidate: list[float], active: list[float]) -> LossComparison:
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


def simulated(slope: float, noise: float, bias: float, n: int = 400) -> tuple[list[float], list[float]]:
    random = np.random.default_rng(7)
    labels = random.uniform(1, 5, n)
    verdicts = 3 + slope * (labels - 3) + bias + random.normal(0, noise, n)
    return labels.tolist(), verdicts.tolist()


def found(
    labels: list[float], candidate: list[float | None], active: list[float | None], **more: object
) -> ResidualVariances:
    weights = np.asarray(more.get("weights", np.ones(len(labels))), dtype=np.float64)
    groups = more.get("groups", list(range(len(labels))))
    residuals = residual_variances(labels, candidate, active, weights, groups)  # type: ignore[arg-type]
    assert residuals is not None
    return residuals


def test_the_best_line_is_worked_by_hand() -> None:
    # Labels 1, 2, 3, 4: mean 2.5, variance 1.25. Scores 1, 3, 2, 4 have the same mean and variance; the mean product of
    # deviations is (2.25 - 0.25 - 0.25 + 2.25) / 4 = 1, so 1.25 - 1 / 1.25 = 0.45 is left. 5, 5, 5, 5 explain nothing.
    residuals = found([1, 2, 3, 4], [1, 3, 2, 4], [5, 5, 5, 5])
    assert (residuals.candidate, residuals.active) == pytest.approx((0.45, 1.25))
    assert residuals.n == 4
    assert not residuals.larger


def test_weights_count_and_missing_scores_do_not() -> None:
    # Weights 2, 1, 1: mean 1.75, variance 0.5 * 0.5625 + 0.25 * 0.0625 + 0.25 * 1.5625 = 0.6875
    residuals = found([1, 2, 3, 9], [4, 4, 4, None], [1, 2, 3, 9], weights=[2, 1, 1, 50])
    assert (residuals.candidate, residuals.active) == pytest.approx((0.6875, 0.0))
    assert residuals.n == 3


@pytest.mark.parametrize(("slope", "bias"), [(1.0, 0.0), (0.5, 1.0), (2.0, -1.5), (-1.0, 0.0)])
def test_neither_bias_nor_slope_matters(slope: float, bias: float) -> None:
    labels, verdicts = simulated(1.0, 0.5, 0.0)
    moved: list[float | None] = [bias + slope * verdict for verdict in verdicts]
    residuals = found(labels, moved, list(verdicts))
    assert residuals.candidate == pytest.approx(residuals.active)
    assert not residuals.larger


def test_fewer_than_two_groups_tell_nothing() -> None:
    assert residual_variances([1, 2], [1, 2], [2, 1], np.ones(2), ["same", "same"]) is None
    assert residual_variances([1, 2], [None, None], [2, 1], np.ones(2), [1, 2]) is None


def test_lower_loss_with_clearly_lower_correlation_is_not_accepted() -> None:
    """The active judge ranks well and is two levels too lenient; the candidate says nearly the mean of everything."""
    labels, active = simulated(1.0, 0.7, 2.0)
    _, candidate = simulated(0.1, 0.7, 0.0)
    one = compared(labels, candidate, active)
    assert one.loss < float(np.mean(one.active))
    assert one.is_noisier
    without = LossComparison(one.candidate, one.active, one.best, one.weights, one.groups, one.categories)
    assert is_accepted({"correctness": without}, 1)
    assert not is_accepted({"correctness": one}, 1)
    assert not is_accepted({"correctness": one}, 1, Claim.NOT_WORSE)


def test_a_candidate_that_takes_bias_away_is_accepted() -> None:
    labels, active = simulated(1.0, 0.7, 2.0)
    _, candidate = simulated(1.0, 0.7, 0.0)
    assert is_accepted({"correctness": compared(labels, candidate, active)}, 1)


def test_equal_judges_are_found_noisier_in_a_twentieth_of_all_cases() -> None:
    larger = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        labels = random.uniform(1, 5, 100)
        ours, theirs = labels + random.normal(0, 1, 100), labels + random.normal(0, 1, 100)
        residuals = residual_variances(
            labels.tolist(), ours.tolist(), theirs.tolist(), np.ones(100), list(range(100)), resamples=400, seed=seed
        )
        larger += residuals is not None and residuals.larger
    assert 2 <= larger <= 22
