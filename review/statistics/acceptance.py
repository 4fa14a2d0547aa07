"""Whether a new version of a judge prompt may take the place of the active one, by a test whose false acceptances are
bounded over the whole life of a gold set.

Correction takes a judge's bias out and leaves its noise. So a candidate whose loss is lower is not accepted where the
residual variance of the labels about the best line in its scores is shown to be larger (:class:`Residuals`).

The loss of a verdict is its squared distance to the label on the metric's scale. What is tested is the weighted mean of
the paired differences, candidate minus active, summed by group: t with the freedom of
``correction.outcome.group_freedom``. Look ``j`` tests one-sided at ``0.05 / (j (j + 1))``; these levels add up to
``0.05 (1 - 1 / (j + 1))``, so that by the union bound any number of looks together accepts a useless candidate in at
most 5% of the lives of a gold set, also where candidates are chosen by what earlier looks answered.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from review.statistics.agreement.statistic import Array, Indices, numbered
from review.statistics.correction.outcome import group_freedom, t_quantile
from review.statistics.paired_tests.paired import POWER, holm

ERROR = 0.05  # false acceptances over all looks of a life, and the level of the test for harm
MARGIN = 1.1  # a version is not inferior while its loss is below this times that of the best version ever accepted
LEAST_GROUPS, LEAST_ANSWERS = 30, 100  # of a hold-out that may be looked at
LEAST_IN_CATEGORY = 20  # answers of a category in which harm is tested
MOST_MISSING = 0.05  # share of verdicts that the candidate may miss
_TIE = 1e-12


def level_of_look(look: int) -> float:
    """The one-sided level of look ``look``, counted from 1: ``0.05 / (j (j + 1))``.

    :raises ValueError: for a look below 1.
    """
    if look < 1:
        raise ValueError("looks are counted from 1")
    return ERROR / (look * (look + 1))


def left_before(look: int) -> float:
    """What of the 5% is still there to spend before look ``look``: ``0.05 / j``."""
    return level_of_look(look) * (look + 1)


class Claim(StrEnum):
    """What a look is to show: that the candidate is better, or only that it is not worse (a cheaper judge)."""

    BETTER = "better"
    NOT_WORSE = "not_worse"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Weighted mean differences with their cluster-robust standard errors; one value, or one for each of several
    simulated lives."""

    mean: Array
    error: Array
    freedom: float
    groups: int

    @property
    def p_below(self) -> Array:
        """One-sided p-values of the claim that the true mean is below zero.

        Where all groups differ by the same amount nothing tells how it would vary: then the sign test's ``0.5^G``
        stands for a mean below zero, and 1 for any other.
        """
        from scipy.special import stdtr  # costs 0.2 s at import

        varies = self.error > _TIE
        p = stdtr(self.freedom, self.mean / np.where(varies, self.error, 1.0))
        return np.asarray(np.where(varies, p, np.where(self.mean < -_TIE, 0.5**self.groups, 1.0)), dtype=np.float64)

    @property
    def negated(self) -> Evidence:
        """Of the differences the other way round."""
        return Evidence(-self.mean, self.error, self.freedom, self.groups)

    @property
    def interval(self) -> tuple[float, float] | tuple[None, None]:
        """The ends of the 95% interval of the one mean; ``None`` where nothing tells how it would vary."""
        mean, error = float(self.mean), float(self.error)
        if not _TIE < error < math.inf:
            return None, None
        reach = t_quantile(0.975, max(1.0, self.freedom)) * error
        return mean - reach, mean + reach


def evidence_of(differences: Array, weights: Array, member: Indices) -> Evidence:
    """What the differences of answers (last axis) tell of their weighted mean. ``member`` numbers the group of each
    answer from 0.

    With ``w`` the weights' shares and ``m`` the mean, the variance is ``G / (G - 1) sum_g (sum_{i in g} w_i (d_i -
    m))^2``; with fewer than two groups the error is infinite.
    """
    share = weights / weights.sum()
    mean = (differences * share).sum(axis=-1)
    order = np.argsort(member, kind="stable")
    starts = np.flatnonzero(np.diff(member[order], prepend=-1))
    groups = len(starts)
    sums = np.add.reduceat((share * (differences - mean[..., None]))[..., order], starts, axis=-1)
    variance = np.square(sums).sum(axis=-1) * groups / (groups - 1) if groups > 1 else np.full(mean.shape, math.inf)
    return Evidence(mean, np.sqrt(variance), group_freedom(np.bincount(member, weights=share)), groups)


def losses(verdicts: Iterable[float | None], labels: Iterable[float], missing: float) -> Array:
    """Squared distances of the verdicts to the labels; ``missing`` stands for a verdict that is not there."""
    pairs = zip(verdicts, labels, strict=True)
    return np.array([missing if said is None else (said - label) ** 2 for said, label in pairs], dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Shift:
    """The mean ``change`` of a judge's verdicts on the same answers, ``n`` of them in so many ``groups``, with the ends
    of its 95% interval (``None`` where nothing varies), and whether it ``moved`` by the test."""

    change: float
    low: float | None
    high: float | None
    n: int
    groups: int
    moved: bool


def shift_of(before: Sequence[float], now: Sequence[float], groups: Sequence[Hashable], step: int, tests: int) -> Shift:
    """How far verdicts moved, tested on both sides at the level of look ``step``, shared by so many ``tests``
    (metrics). Steps of a year count from 1, so that a judge who does not move is found to have moved in at most 5% of
    all years.
    """
    found = evidence_of(np.array(now) - np.array(before), np.ones(len(now)), numbered(groups))
    p = 2.0 * min(float(found.p_below), float(found.negated.p_below))
    low, high = found.interval
    return Shift(float(found.mean), low, high, len(now), found.groups, p < level_of_look(step) / tests)


@dataclass(frozen=True, slots=True)
class Residuals:
    """The weighted variance of the labels about the best line in the scores of ``candidate`` and ``active``, in squared
    units of the scale, on ``n`` answers that both scored. ``low`` is the one-sided 95% lower limit of the difference
    (candidate minus active)."""

    candidate: float
    active: float
    low: float
    n: int

    @property
    def larger(self) -> bool:
        """Whether the candidate's is shown to be larger."""
        return self.low > _TIE


def residuals_of(
    labels: Sequence[float],
    candidate: Sequence[float | None],
    active: Sequence[float | None],
    weights: Array,
    groups: Sequence[Hashable],
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Residuals | None:
    """The residual variances of both versions, with a paired percentile bootstrap over groups; ``None`` with fewer than
    two groups of answers that both scored."""
    at = [place for place, pair in enumerate(zip(candidate, active, strict=True)) if None not in pair]
    member = numbered(groups[place] for place in at)
    count = int(member.max()) + 1 if at else 0
    if count < 2:
        return None
    y = np.array([labels[place] for place in at], dtype=np.float64)
    y -= y.mean()  # so that no digits are lost in the sums of squares
    drawn = np.random.default_rng(seed).multinomial(count, np.full(count, 1.0 / count), size=resamples)
    found = []
    for verdicts in (candidate, active):
        f = np.array([verdicts[place] for place in at], dtype=np.float64)
        f -= f.mean()
        moments = np.stack([np.ones_like(y), f, y, f * f, f * y, y * y]) * weights[at]
        sums = np.stack([np.bincount(member, weights=row, minlength=count) for row in moments], axis=1)
        found.append(_residual_variance(np.vstack([sums.sum(axis=0), drawn @ sums])))
    difference = found[0] - found[1]
    return Residuals(float(found[0][0]), float(found[1][0]), float(np.quantile(difference[1:], ERROR)), len(at))


def _residual_variance(sums: Array) -> Array:
    """Of rows of weighted sums of 1, f, y, f squared, f times y and y squared."""
    mass, f, y, ff, fy, yy = sums.T
    spread_f, shared, spread_y = ff / mass - (f / mass) ** 2, fy / mass - f * y / mass**2, yy / mass - (y / mass) ** 2
    varies = spread_f > _TIE
    explained = np.where(varies, shared**2 / np.where(varies, spread_f, 1.0), 0.0)
    return np.asarray(np.maximum(spread_y - explained, 0.0), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Compared:
    """One metric of a look: the losses of candidate, active and the best version ever accepted on the same answers,
    with draw weights, groups and categories. Of a verdict that is not there the candidate takes the scale's width
    squared, the others 0 (:func:`losses`). ``residuals`` compares what the scores of candidate and active tell of the
    labels."""

    candidate: Array
    active: Array
    best: Array
    weights: Array
    groups: Sequence[Hashable]
    categories: Sequence[str]
    residuals: Residuals | None = None

    @property
    def gain(self) -> Evidence:
        """By how much the candidate's loss is below that of the active version."""
        return evidence_of(self.active - self.candidate, self.weights, numbered(self.groups))

    @property
    def loss(self) -> float:
        """The candidate's mean loss."""
        return float(np.average(self.candidate, weights=self.weights))

    @property
    def better(self) -> float:
        """The one-sided p-value of: the candidate's loss is below that of the active version."""
        return float(self.gain.negated.p_below)

    @property
    def not_worse(self) -> float:
        """The one-sided p-value of: the candidate's loss is below 1.1 times that of the best version."""
        return float(evidence_of(self.candidate - MARGIN * self.best, self.weights, numbered(self.groups)).p_below)

    @property
    def noisier(self) -> bool:
        """Whether the candidate's scores are shown to tell less of the labels than those of the active version."""
        return self.residuals is not None and self.residuals.larger

    @property
    def harmed(self) -> tuple[str, ...]:
        """The categories of at least 20 answers in which the candidate is worse, one-sided at 5% each."""
        found = []
        for category, count in sorted(_counts(self.categories).items()):
            if count < LEAST_IN_CATEGORY:
                continue
            at = [place for place, name in enumerate(self.categories) if name == category]
            member = numbered(self.groups[place] for place in at)
            worse = evidence_of((self.candidate - self.active)[at], self.weights[at], member).negated
            if float(worse.p_below) < ERROR:
                found.append(category)
        return tuple(found)


def _counts(names: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return found


def accepted(metrics: Mapping[str, Compared], look: int, claim: Claim = Claim.BETTER) -> bool:
    """Whether the candidate is accepted at this look.

    *Better*: at least one metric is better by Holm's test within the look's level, every other one is not worse at that
    level (all have to be, so that no level is shared out), and no category is harmed. *Not worse*: every metric is not
    worse at the level, and no category is harmed. In neither case may the residual variance on any metric be shown to
    be larger than that of the active version, one-sided at 5%.
    """
    level = level_of_look(look)
    better = set()
    if claim is Claim.BETTER:
        adjusted = holm({name: one.better for name, one in metrics.items()})
        better = {name for name, p in adjusted.items() if p < level}
        if not better:
            return False
    if any(one.not_worse >= level for name, one in metrics.items() if name not in better):
        return False
    return bool(metrics) and not any(one.harmed or one.noisier for one in metrics.values())


@dataclass(frozen=True, slots=True)
class TooSmall:
    """How many groups and answers a hold-out lacks."""

    groups: int
    answers: int


def too_small(groups: Iterable[Hashable]) -> TooSmall | None:
    """What is missing of 30 groups and 100 answers; ``None`` where a look may be taken. One group an answer."""
    of_answers = list(groups)
    lacks = TooSmall(max(0, LEAST_GROUPS - len(set(of_answers))), max(0, LEAST_ANSWERS - len(of_answers)))
    return lacks if lacks.groups or lacks.answers else None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a look could tell, foreseen from the same comparison on validation answers. ``improvement`` is how far the
    candidate's mean loss lies below that of the active version there; ``detectable`` the improvement a look would find
    in 4 of 5 cases, both in squared units of the scale; ``power`` the chance that this look finds what validation
    shows. ``harm`` is by how much a category of 20 answers would have to be worse to be noticed in 4 of 5 cases."""

    improvement: float
    detectable: float
    power: float
    harm: float


def forecast(one: Compared, groups: int, look: int, *, tests: int = 1) -> Forecast | None:
    """What look ``look`` on a hold-out of so many groups could tell; ``None`` where validation has fewer than two
    groups or nothing varies. The standard error is that of validation, scaled by the root of the number of groups;
    ``tests`` is how many metrics share the level (Bonferroni, the first step of Holm)."""
    from scipy.special import stdtr

    found = one.gain
    error = float(found.error)
    if groups < 2 or not _TIE < error < math.inf:
        return None
    freedom = groups - 1.0
    there = error * math.sqrt(found.groups / groups)
    bar = t_quantile(1.0 - level_of_look(look) / tests, freedom)
    each = error * math.sqrt(found.groups * len(one.candidate) / found.groups)
    harm = (t_quantile(1.0 - ERROR, LEAST_IN_CATEGORY - 1.0) + t_quantile(POWER, LEAST_IN_CATEGORY - 1.0)) * (
        each / math.sqrt(LEAST_IN_CATEGORY)
    )
    return Forecast(
        improvement=float(found.mean),
        detectable=(bar + t_quantile(POWER, freedom)) * there,
        power=float(stdtr(freedom, float(found.mean) / there - bar)),
        harm=harm,
    )
