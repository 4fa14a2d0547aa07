"""Acceptance test for a new version of a judge prompt.

A candidate version replaces the active one only if a test on a hold-out set says so. Many tests may be run on one gold
set: the chance of accepting any useless candidate stays below 5% over all of them.

The loss of a verdict is its squared distance to the label on the metric's scale. The test uses the weighted mean of the
paired loss differences, candidate minus active, summed by group, and Student's t with the degrees of freedom of
``correction.outcome.group_freedom``. Test number ``j`` is one-sided at ``0.05 / (j (j + 1))``. These levels add up to
``0.05 (1 - 1 / (j + 1))``. By the union bound the limit of 5% also holds if earlier results guide the next candidate.

Score correction removes a judge's bias but not its noise. A candidate with a lower loss is therefore rejected if the
residual variance of the labels about the best line in its scores is shown to be larger (:class:`ResidualVariances`)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from review.statistics.agreement.statistic import Array, Indices, factorize
from review.statistics.correction.outcome import group_freedom
from review.statistics.paired_tests.paired import POWER, holm
from review.statistics.student_t import t_quantile

# Error rate over all tests of a gold set, and the level of the test for harm.
ERROR_RATE = 0.05
# A version is not inferior if its loss is below this multiple of the loss of the best version ever accepted.
NON_INFERIORITY_MARGIN = 1.1
# Smallest hold-out set that may be tested.
MIN_GROUPS, MIN_ANSWERS = 30, 100
# Harm is tested only in categories with at least this many answers.
MIN_IN_CATEGORY = 20
# The candidate may lack at most this share of the verdicts.
MAX_MISSING_SHARE = 0.05
_ZERO_TOLERANCE = 1e-12


def significance_level(test_number: int) -> float:
    """One-sided level of a test, ``0.05 / (j (j + 1))``; tests are numbered from 1.

    :raises ValueError: for a number below 1."""
    if test_number < 1:
        raise ValueError("looks are counted from 1")
    return ERROR_RATE / (test_number * (test_number + 1))


def remaining_error(test_number: int) -> float:
    """Error rate that is still unspent before a test: ``0.05 / j``."""
    return significance_level(test_number) * (test_number + 1)


class Claim(StrEnum):
    """Claim that a test has to show: the candidate is better, or it is not worse (for example a cheaper judge)."""

    BETTER = "better"
    NOT_WORSE = "not_worse"


@dataclass(frozen=True, slots=True)
class MeanDifference:
    """Weighted mean difference with its cluster-robust standard error. Arrays hold one value, or one for each
    simulation."""

    mean: Array
    standard_error: Array
    freedom: float
    groups: int

    @property
    def p_below(self) -> Array:
        """One-sided p-values of the claim that the true mean is below zero.

        If all groups differ by the same amount, the variance is unknown. The p-value is then that of the sign test,
        ``0.5^G``, for a negative mean, and 1 otherwise."""
        # Importing scipy takes 0.2 s.
        from scipy.special import stdtr

        varies = self.standard_error > _ZERO_TOLERANCE
        p = stdtr(self.freedom, self.mean / np.where(varies, self.standard_error, 1.0))
        return np.asarray(
            np.where(varies, p, np.where(self.mean < -_ZERO_TOLERANCE, 0.5**self.groups, 1.0)), dtype=np.float64
        )

    @property
    def negated(self) -> MeanDifference:
        return MeanDifference(-self.mean, self.standard_error, self.freedom, self.groups)

    @property
    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """95% interval of a single mean; ``None`` if nothing varies, because the standard error is then unknown."""
        mean, standard_error = float(self.mean), float(self.standard_error)
        if not _ZERO_TOLERANCE < standard_error < math.inf:
            return None, None
        half_width = t_quantile(0.975, max(1.0, self.freedom)) * standard_error
        return mean - half_width, mean + half_width


def mean_difference(differences: Array, weights: Array, group_index: Indices) -> MeanDifference:
    """Weighted mean of the differences of answers (last axis). ``group_index`` numbers the group of each answer from 0.

    With ``w`` the weights' shares and ``m`` the mean, the variance is ``G / (G - 1) sum_g (sum_{i in g} w_i (d_i -
    m))^2``. With fewer than two groups the standard error is infinite."""
    share = weights / weights.sum()
    mean = (differences * share).sum(axis=-1)
    order = np.argsort(group_index, kind="stable")
    starts = np.flatnonzero(np.diff(group_index[order], prepend=-1))
    group_count = len(starts)
    group_sums = np.add.reduceat((share * (differences - mean[..., None]))[..., order], starts, axis=-1)
    variance = (
        np.square(group_sums).sum(axis=-1) * group_count / (group_count - 1)
        if group_count > 1
        else np.full(mean.shape, math.inf)
    )
    return MeanDifference(mean, np.sqrt(variance), group_freedom(np.bincount(group_index, weights=share)), group_count)


def squared_losses(verdicts: Iterable[float | None], labels: Iterable[float], missing: float) -> Array:
    """Squared distances of the verdicts to the labels; ``missing`` is the loss of a missing verdict."""
    pairs = zip(verdicts, labels, strict=True)
    return np.array(
        [missing if verdict is None else (verdict - label) ** 2 for verdict, label in pairs], dtype=np.float64
    )


@dataclass(frozen=True, slots=True)
class VerdictShift:
    """Change of a judge's verdicts on the same answers.

    ``change`` is the mean change over ``n`` answers in ``groups`` groups. ``low`` and ``high`` bound its 95% interval
    and are ``None`` if nothing varies. ``moved`` tells whether the change is significant."""

    change: float
    low: float | None
    high: float | None
    n: int
    groups: int
    moved: bool


def verdict_shift(
    before: Sequence[float], after: Sequence[float], groups: Sequence[Hashable], test_number: int, test_count: int
) -> VerdictShift:
    """Test how far verdicts moved, on both sides.

    The level is that of test ``test_number``, divided by ``test_count`` metrics. Tests are numbered from 1 within a
    year, so an unchanged judge is reported as changed in at most 5% of all years."""
    difference = mean_difference(np.array(after) - np.array(before), np.ones(len(after)), factorize(groups))
    p = 2.0 * min(float(difference.p_below), float(difference.negated.p_below))
    low, high = difference.interval
    return VerdictShift(
        float(difference.mean),
        low,
        high,
        len(after),
        difference.groups,
        p < significance_level(test_number) / test_count,
    )


@dataclass(frozen=True, slots=True)
class ResidualVariances:
    """Weighted variances of the labels about the best line in the scores of ``candidate`` and ``active``.

    Both are in squared units of the scale, on the ``n`` answers that both versions scored. ``low`` is the one-sided 95%
    lower limit of the difference, candidate minus active."""

    candidate: float
    active: float
    low: float
    n: int

    @property
    def larger(self) -> bool:
        """Return whether the candidate's residual variance is shown to be larger."""
        return self.low > _ZERO_TOLERANCE


def residual_variances(
    labels: Sequence[float],
    candidate: Sequence[float | None],
    active: Sequence[float | None],
    weights: Array,
    groups: Sequence[Hashable],
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> ResidualVariances | None:
    """Residual variances of both versions, with a paired percentile bootstrap over groups.

    ``None`` if the answers that both versions scored lie in fewer than two groups."""
    positions = [position for position, pair in enumerate(zip(candidate, active, strict=True)) if None not in pair]
    group_index = factorize(groups[position] for position in positions)
    group_count = int(group_index.max()) + 1 if positions else 0
    if group_count < 2:
        return None
    y = np.array([labels[position] for position in positions], dtype=np.float64)
    # Centered values keep their digits in the sums of squares.
    y -= y.mean()
    resample_counts = np.random.default_rng(seed).multinomial(
        group_count, np.full(group_count, 1.0 / group_count), size=resamples
    )
    variances = []
    for verdicts in (candidate, active):
        f = np.array([verdicts[position] for position in positions], dtype=np.float64)
        f -= f.mean()
        moments = np.stack([np.ones_like(y), f, y, f * f, f * y, y * y]) * weights[positions]
        sums = np.stack([np.bincount(group_index, weights=row, minlength=group_count) for row in moments], axis=1)
        variances.append(_residual_variance(np.vstack([sums.sum(axis=0), resample_counts @ sums])))
    difference = variances[0] - variances[1]
    return ResidualVariances(
        float(variances[0][0]), float(variances[1][0]), float(np.quantile(difference[1:], ERROR_RATE)), len(positions)
    )


def _residual_variance(sums: Array) -> Array:
    """Residual variances from rows of weighted sums of ``1, f, y, f^2, f y, y^2``."""
    mass, f, y, ff, fy, yy = sums.T
    variance_f, covariance, variance_y = (
        ff / mass - (f / mass) ** 2,
        fy / mass - f * y / mass**2,
        yy / mass - (y / mass) ** 2,
    )
    varies = variance_f > _ZERO_TOLERANCE
    explained = np.where(varies, covariance**2 / np.where(varies, variance_f, 1.0), 0.0)
    return np.asarray(np.maximum(variance_y - explained, 0.0), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class LossComparison:
    """Losses of candidate, active and best accepted version on one metric, over the same answers.

    ``weights``, ``groups`` and ``categories`` are those of the answers. A missing verdict costs the candidate the
    squared width of the scale, and the other versions 0 (:func:`squared_losses`)."""

    candidate: Array
    active: Array
    best: Array
    weights: Array
    groups: Sequence[Hashable]
    categories: Sequence[str]
    residuals: ResidualVariances | None = None

    @property
    def gain(self) -> MeanDifference:
        """Loss of the active version minus loss of the candidate."""
        return mean_difference(self.active - self.candidate, self.weights, factorize(self.groups))

    @property
    def loss(self) -> float:
        return float(np.average(self.candidate, weights=self.weights))

    @property
    def p_better(self) -> float:
        """One-sided p-value of the claim that the candidate's loss is below that of the active version."""
        return float(self.gain.negated.p_below)

    @property
    def p_not_worse(self) -> float:
        """One-sided p-value of the claim that the candidate's loss is below 1.1 times that of the best version."""
        return float(
            mean_difference(
                self.candidate - NON_INFERIORITY_MARGIN * self.best, self.weights, factorize(self.groups)
            ).p_below
        )

    @property
    def is_noisier(self) -> bool:
        """Return whether the candidate's scores are shown to explain less of the labels than those of the active
        version."""
        return self.residuals is not None and self.residuals.larger

    @property
    def harmed_categories(self) -> tuple[str, ...]:
        """Categories of at least 20 answers in which the candidate is worse, one-sided at 5% each."""
        harmed = []
        for category, count in sorted(_counts(self.categories).items()):
            if count < MIN_IN_CATEGORY:
                continue
            positions = [position for position, name in enumerate(self.categories) if name == category]
            group_index = factorize(self.groups[position] for position in positions)
            harm = mean_difference(
                (self.candidate - self.active)[positions], self.weights[positions], group_index
            ).negated
            if float(harm.p_below) < ERROR_RATE:
                harmed.append(category)
        return tuple(harmed)


def _counts(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def is_accepted(metrics: Mapping[str, LossComparison], test_number: int, claim: Claim = Claim.BETTER) -> bool:
    """Decide whether the candidate passes a test.

    *Better*: at least one metric is better by Holm's test within the level of the test. Every other metric is not worse
    at that level; all of them must pass, so this test shares no level. *Not worse*: every metric is not worse at the
    level.

    Both claims also require that no category is harmed and that no residual variance is shown to be larger than that of
    the active version, one-sided at 5%."""
    level = significance_level(test_number)
    better_metrics = set()
    if claim is Claim.BETTER:
        adjusted = holm({name: comparison.p_better for name, comparison in metrics.items()})
        better_metrics = {name for name, p in adjusted.items() if p < level}
        if not better_metrics:
            return False
    if any(comparison.p_not_worse >= level for name, comparison in metrics.items() if name not in better_metrics):
        return False
    return bool(metrics) and not any(
        comparison.harmed_categories or comparison.is_noisier for comparison in metrics.values()
    )


@dataclass(frozen=True, slots=True)
class HoldoutShortage:
    """Number of groups and answers that a hold-out set lacks."""

    groups: int
    answers: int


def holdout_shortage(groups: Iterable[Hashable]) -> HoldoutShortage | None:
    """Shortage against 30 groups and 100 answers, from the group of each answer; ``None`` if the set can be tested."""
    group_of_answer = list(groups)
    shortage = HoldoutShortage(
        max(0, MIN_GROUPS - len(set(group_of_answer))), max(0, MIN_ANSWERS - len(group_of_answer))
    )
    return shortage if shortage.groups or shortage.answers else None


@dataclass(frozen=True, slots=True)
class Forecast:
    """Forecast of a hold-out test, from the same comparison on validation answers.

    ``improvement`` is the loss of the active version minus that of the candidate. ``detectable`` is the improvement
    that the test finds in 4 of 5 cases. Both are in squared units of the scale. ``power`` is the chance that the test
    finds the improvement seen in validation. ``harm`` is the increase of the loss in a category of 20 answers that is
    noticed in 4 of 5 cases."""

    improvement: float
    detectable: float
    power: float
    harm: float


def forecast_test(comparison: LossComparison, groups: int, test_number: int, *, test_count: int = 1) -> Forecast | None:
    """Forecast a test on a hold-out set of ``groups`` groups.

    The standard error is that of validation, scaled by the root of the number of groups. ``test_count`` metrics share
    the level (Bonferroni, the first step of Holm). ``None`` if validation has fewer than two groups, or nothing
    varies."""
    from scipy.special import stdtr

    gain = comparison.gain
    validation_error = float(gain.standard_error)
    if groups < 2 or not _ZERO_TOLERANCE < validation_error < math.inf:
        return None
    freedom = groups - 1.0
    expected_error = validation_error * math.sqrt(gain.groups / groups)
    critical_t = t_quantile(1.0 - significance_level(test_number) / test_count, freedom)
    answer_deviation = validation_error * math.sqrt(gain.groups * len(comparison.candidate) / gain.groups)
    harm = (t_quantile(1.0 - ERROR_RATE, MIN_IN_CATEGORY - 1.0) + t_quantile(POWER, MIN_IN_CATEGORY - 1.0)) * (
        answer_deviation / math.sqrt(MIN_IN_CATEGORY)
    )
    return Forecast(
        improvement=float(gain.mean),
        detectable=(critical_t + t_quantile(POWER, freedom)) * expected_error,
        power=float(stdtr(freedom, float(gain.mean) / expected_error - critical_t)),
        harm=harm,
    )
