"""What a correction gives back: what each answer adds to the variance, the interval for a target, or why not."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import numpy as np

from review.statistics.agreement.statistic import Array, Flags, Indices

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Target(StrEnum):
    """What the interval is about: all answers of this run as they are, or questions like these."""

    THIS_RUN = "this_run"
    QUESTIONS_LIKE_THESE = "questions_like_these"


class Method(StrEnum):
    """How the estimate was made."""

    REGRESSION = "regression"
    MEAN_OF_LABELS = "mean_of_labels"  # no slope: the judge has one value per stratum, or gives none
    CENSUS = "census"
    BOUND = "bound"  # judge and experts never differed on a label
    CLOPPER_PEARSON = "clopper_pearson"
    AS_IT_CAME = "as_it_came"  # nobody rated it with known probabilities: the judge's mean
    SUM = "sum"  # of components


class WithheldReason(StrEnum):
    """Why there is no corrected figure; ``missing`` says what would give one."""

    TOO_FEW_LABELS = "too_few_labels"
    STRATUM_TOO_FEW_LABELS = "stratum_too_few_labels"
    NON_RESPONSE = "non_response"
    NOT_ESTIMABLE = "not_estimable"
    NO_PROBABILITY = "no_probability"
    SMALL_FRAME = "small_frame"  # fewer than 20 answers: they are rated completely or not corrected
    COMPONENTS_WITHHELD = "components_withheld"
    TOO_FEW_GROUPS = "too_few_groups"
    NO_VALUES = "no_values"


class Warn(StrEnum):
    """What a reader should know about an estimate."""

    FEW_OFF_COMMONEST = "few_off_commonest"  # fewer than 5 labels differ from the commonest
    FAILED_STRATUM_BOUNDS = "failed_stratum_bounds"  # answers the judge failed on, with fewer than 2 labels
    CLIPPED = "clipped"
    FEW_GROUPS = "few_groups"
    UNSEEN_ANSWERS = "unseen_answers"  # the width rests on what few labels of a skewed scale cannot show


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval.

    ``n`` is the size of the frame, ``labels`` the ratings used, ``effective_labels`` how many labels of a uniform
    draw without the judge would give the same width, ``slope`` the regression's b (stored as lambda).
    ``non_response`` is the share of reached items without a rating and ``response_bounds`` what the value would be
    had all of these been worst or best. ``named`` lists exact components that entered as they came; ``unrated`` those
    of a judge that nobody rated, each with its weight in the score (0 to 1): with any the figure is *partly
    corrected*, and its interval reaches as far as they could be: to the ends of their scales, or by ``assumed`` of
    these where that was taken for the judge's largest bias there.
    """

    value: float
    low: float
    high: float
    target: Target
    method: Method
    n: int
    labels: int
    effective_labels: float | None = None
    slope: float | None = None
    warnings: tuple[Warn, ...] = ()
    non_response: float = 0.0
    response_bounds: tuple[float, float] | None = None
    named: tuple[str, ...] = ()
    unrated: Mapping[str, float] = field(default_factory=lambda: _NOTHING)
    assumed: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The stable form of the ``correct`` command, the report and REST."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "target": str(self.target),
            "n": self.n,
            "labels": self.labels,
            "effective_labels": self.effective_labels,
            "lambda": self.slope,
            "method": str(self.method),
            "warnings": [str(warning) for warning in self.warnings],
            "non_response": self.non_response,
            "response_bounds": None if self.response_bounds is None else list(self.response_bounds),
            "as_it_came": list(self.named),
            "partly_corrected": dict(self.unrated),
            **({} if self.assumed is None else {"assumed_bias": self.assumed}),
        }


@dataclass(frozen=True, slots=True)
class Withheld:
    """No figure, and what is missing for one: labels, strata, components."""

    reason: WithheldReason
    target: Target
    n: int
    labels: int
    missing: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    def to_dict(self) -> dict[str, Any]:
        """The stable form: ``withheld`` holds the reason, ``missing`` what would lift it."""
        return {
            "withheld": str(self.reason),
            "missing": dict(self.missing),
            "target": str(self.target),
            "n": self.n,
            "labels": self.labels,
        }


Outcome = Estimate | Withheld


@dataclass(frozen=True, slots=True)
class Influence:
    """``value`` with, per answer of the frame, ``design`` (its share of the deviation due to having rated a sample;
    the squares sum to the variance for ``this_run``) and ``population`` (its share of the deviation from the mean
    over questions like these; summed by group, then squared).

    ``below`` and ``above`` are added to the interval where the variance says nothing. ``freedom`` are the degrees of
    freedom of ``design``; ``None`` where nothing was estimated. ``unseen`` is the variance to add for answers unlike
    all that were rated.
    """

    value: float
    design: Array
    population: Array
    method: Method
    freedom: int | None
    below: float = 0.0
    above: float = 0.0
    slope: float | None = None
    unseen: float = 0.0

    def half_width(self, confidence: float) -> float:
        """Half the width of the interval for ``this_run``, without what is cut off at the scale's ends or added by
        :func:`score_interval`."""
        reach = t_quantile(0.5 + confidence / 2.0, max(1, self.freedom or 1))
        return reach * math.sqrt(self.design_variance + self.unseen) + (self.below + self.above) / 2.0

    @property
    def design_variance(self) -> float:
        """The variance for ``this_run``, the finite-population correction included."""
        return float(np.square(self.design).sum())


def t_quantile(probability: float, freedom: float) -> float:
    """The quantile of Student's t; ``freedom`` is at least 1."""
    from scipy.special import stdtrit  # costs 0.2 s at import

    return float(stdtrit(freedom, probability))


def score_interval(value: float, variance: float, quantile: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """The means m that lie at most ``quantile`` standard deviations from ``value``, by the variance at hand or by one
    that changes with m like ``(high - m)(m - low)``, as that of a share does (E. B. Wilson, 1927, JASA 22).

    It holds the symmetrical interval, and on a skewed scale reaches further towards the middle: were the rare answers
    more frequent, their number would also vary more. ``value`` counts as no nearer to an end of ``bounds`` than its
    standard error, so that a sample without a rare answer does not give the whole scale.
    """
    low, high = bounds
    error = min(math.sqrt(variance), (high - low) / 2)
    if error <= 1e-12 * (high - low):
        return value, value
    reach = quantile * math.sqrt(variance)
    known = min(max(value, low), high)
    inner = min(max(known, low + error), high - error)
    ratio = quantile**2 * variance / ((high - inner) * (inner - low))
    middle = (known + ratio * (low + high) / 2) / (1 + ratio)
    half = math.sqrt(ratio * (high - known) * (known - low) + (ratio * (high - low) / 2) ** 2) / (1 + ratio)
    return min(value - reach, middle - half), max(value + reach, middle + half)


def clustered_variance(population: Array, group: Indices) -> tuple[float, Indices]:
    """The cluster-robust variance ``G / (G - 1) sum_g (sum_{i in g} psi_i)^2``, and how many answers each of the G
    groups has; ``group`` numbers them."""
    sizes = np.bincount(group)
    sums, sizes = np.bincount(group, weights=population)[sizes > 0], sizes[sizes > 0]
    count = len(sizes)
    return (float(np.square(sums).sum()) * count / (count - 1) if count > 1 else 0.0), sizes


def group_freedom(sizes: Indices) -> float:
    """Groups less one for groups of equal size, less where sizes differ: the freedom of a chi-squared with the same
    mean and variance as the sum of squares over groups (F. E. Satterthwaite, 1946, Biometrics 2), were the groups'
    means independent and alike in variance (R. M. Bell, D. F. McCaffrey, 2002, Survey Methodology 28; the working
    model of G. W. Imbens, M. Kolesar, 2016, Review of Economics and Statistics 98).

    With shares ``h`` of the answers and group means ``u`` the sum is ``u'Mu``, ``M = (I - h1') diag(h^2) (I - 1h')``;
    its freedom is ``tr(M)^2 / tr(M^2)``, in time linear in the groups. At least 1; two groups always have 1.
    """
    if len(sizes) < 3:
        return 1.0
    share = np.asarray(sizes, dtype=np.float64) / float(np.sum(sizes))
    square = share * share
    total = float(square.sum())
    crossed, of_squares = float(share @ square), float(square @ square)
    trace = total - 2.0 * crossed + total * total
    middle = np.array([[total, -1.0], [-1.0, 0.0]])
    inner = np.array([[total, crossed], [crossed, of_squares]])
    turned = middle @ inner
    squared = of_squares - 4.0 * float((square * square) @ share) + 2.0 * total * of_squares
    squared += float(np.trace(turned @ turned))
    found = trace * trace / squared if squared > 0 else 1.0
    return min(len(sizes) - 1.0, max(1.0, found))


FEW_GROUPS = 20
NO_VARIANCE = 1e-18


@dataclass(frozen=True, slots=True)
class Ends:
    """An interval, whether it was cut at the scale's ends, and how many groups carried it (0 for ``this_run``)."""

    low: float
    high: float
    clipped: bool
    groups: int


def interval(
    influence: Influence,
    group: Indices,
    labelled: Flags,
    target: Target,
    bounds: tuple[float, float],
    confidence: float,
) -> Ends | None:
    """The interval, clipped to ``bounds``; ``None`` for questions like these with fewer than two groups.

    ``this_run``: design variance, t with the estimate's degrees of freedom. ``questions_like_these``: variance of
    the groups' summed influence, t with one less than the groups (fewer where their sizes differ, and not more than
    those with a label, where labels were used) and not more than the estimate's own. Both with the variance of what
    was not seen, by :func:`score_interval`.
    """
    freedom: float | None = influence.freedom
    variance, count = influence.design_variance, 0
    if target is Target.QUESTIONS_LIKE_THESE:
        variance, sizes = clustered_variance(influence.population, group)
        count = len(sizes)
        if count < 2:
            return None
        freedom = _group_freedom(influence, group, labelled, group_freedom(sizes))
    quantile = t_quantile(0.5 + confidence / 2, max(1, freedom or 1))
    low, high = score_interval(influence.value, variance + influence.unseen, quantile, bounds)
    low, high = low - influence.below, high + influence.above
    return Ends(
        min(max(low, bounds[0]), bounds[1]),
        max(min(high, bounds[1]), bounds[0]),
        low < bounds[0] - 1e-12 or high > bounds[1] + 1e-12,
        count,
    )


def _group_freedom(influence: Influence, group: Indices, labelled: Flags, of_groups: float) -> float:
    if influence.freedom is None:
        return of_groups
    return max(1.0, min(of_groups, len(np.unique(group[labelled])) - 1, influence.freedom))


@dataclass(frozen=True, slots=True)
class Deviation:
    """A figure for questions like these with its standard error (above 0) and degrees of freedom, and how it deviates
    by group of questions: ``sums`` are the groups' shares of the deviation, which add up to 0."""

    value: float
    error: float
    freedom: float
    sums: Mapping[Hashable, float]

    @property
    def t(self) -> float:
        """The value in standard errors."""
        return self.value / self.error

    @property
    def p_value(self) -> float:
        """The two-sided p-value of no difference, this one alone."""
        return float(two_sided(np.array([self.t]), np.array([self.freedom]))[0])

    def half_width(self, confidence: float) -> float:
        """Half the width of the t interval."""
        return t_quantile(0.5 + confidence / 2.0, self.freedom) * self.error


def two_sided(t: Array, freedom: Array) -> Array:
    """The two-sided p-values of Student's t."""
    from scipy.special import stdtr  # costs 0.2 s at import

    return np.asarray(2.0 * stdtr(freedom, -np.abs(t)))


def deviation_of(influence: Influence, group: Indices, groups: Sequence[Hashable], labelled: Flags) -> Deviation | None:
    """As :func:`interval` has it for questions like these, without what bounds add to that; ``None`` where nothing
    varies or there are fewer than two groups. ``group`` are places in the names ``groups``."""
    variance, sizes = clustered_variance(influence.population, group)
    if len(sizes) < 2 or variance <= NO_VARIANCE:
        return None
    sums = np.bincount(group, weights=influence.population).tolist()
    freedom = _group_freedom(influence, group, labelled, group_freedom(sizes))
    of_group = {groups[at]: sums[at] for at in np.unique(group).tolist()}
    return Deviation(influence.value, math.sqrt(variance), freedom, of_group)
