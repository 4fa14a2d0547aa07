"""Result of a correction: influence of each answer on the variance, interval for a target, or the reason for
withholding it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import numpy as np

from review.statistics.agreement.statistic import Array, Flags, Indices
from review.statistics.student_t import t_quantile

_EMPTY: Mapping[str, Any] = MappingProxyType({})


class Target(StrEnum):
    """Population that an interval is about: all answers of this run, or questions like these."""

    THIS_RUN = "this_run"
    QUESTIONS_LIKE_THESE = "questions_like_these"


class Method(StrEnum):
    """Method of an estimate."""

    REGRESSION = "regression"
    # Without a slope: the judge has one value per stratum, or none.
    MEAN_OF_LABELS = "mean_of_labels"
    CENSUS = "census"
    # Judge and experts agreed on every label.
    BOUND = "bound"
    CLOPPER_PEARSON = "clopper_pearson"
    # The judge's mean, because nobody rated it with known probabilities.
    UNCORRECTED = "as_it_came"
    # Weighted sum of several rounds of review.
    COMPOSITE = "composite"
    # Sum of components.
    SUM = "sum"


class WithheldReason(StrEnum):
    """Reason why there is no corrected score; ``missing`` tells how to get one."""

    TOO_FEW_LABELS = "too_few_labels"
    STRATUM_TOO_FEW_LABELS = "stratum_too_few_labels"
    NON_RESPONSE = "non_response"
    NOT_ESTIMABLE = "not_estimable"
    NO_PROBABILITY = "no_probability"
    # Fewer than 20 answers: they are corrected only if all are rated.
    SMALL_FRAME = "small_frame"
    COMPONENTS_WITHHELD = "components_withheld"
    TOO_FEW_GROUPS = "too_few_groups"
    NO_VALUES = "no_values"


class EstimateWarning(StrEnum):
    """Warning about an estimate."""

    # Fewer than 5 labels differ from the most common one.
    FEW_OFF_COMMONEST = "few_off_commonest"
    # The judge failed on answers with fewer than 2 labels.
    FAILED_STRATUM_BOUNDS = "failed_stratum_bounds"
    CLIPPED = "clipped"
    FEW_GROUPS = "few_groups"
    # The width depends on answers that few labels of a skewed scale cannot show.
    UNSEEN_ANSWERS = "unseen_answers"


@dataclass(frozen=True, slots=True)
class RoundShare:
    """A round of review in a corrected score: ``labels`` counts the ratings of answers that it drew first, ``weight``
    (0 to 1) is its weight in the composite. ``left_out`` is the reason if the round cannot be estimated.

    In an overall score, ``labels`` is the largest number and ``weight`` the mean over the rated components, by their
    weights."""

    labels: int
    weight: float
    planned: bool
    left_out: str = ""

    def to_dict(self) -> dict[str, Any]:
        document = {"labels": self.labels, "weight": self.weight, "planned": self.planned}
        return document | ({"left_out": self.left_out} if self.left_out else {})


@dataclass(frozen=True, slots=True)
class Estimate:
    """Corrected score with its interval.

    ``n`` is the size of the frame, ``labels`` the number of ratings used. ``effective_labels`` is the number of labels
    of a uniform draw that gives the same width without the judge. ``slope`` is the regression's b (stored as lambda).
    ``non_response`` is the share of reached items without a rating; ``response_bounds`` are the values if all of these
    had the worst or the best rating.

    ``named`` lists exact components that entered uncorrected. ``unrated`` lists components of a judge that nobody
    rated, with their weight in the score (0 to 1): the figure is then *partly corrected*. Its interval covers their
    possible values: the whole scale, or the share ``assumed`` of it if that was assumed as the judge's largest bias.

    ``rounds`` lists the rounds of a composite; it is empty for a single round. ``looks`` is the planned number of looks
    that share the error of a verdict. ``planned`` is false if the score includes a round whose size may depend on
    earlier ratings: its interval holds, but it allows no verdict."""

    value: float
    low: float
    high: float
    target: Target
    method: Method
    n: int
    labels: int
    effective_labels: float | None = None
    slope: float | None = None
    warnings: tuple[EstimateWarning, ...] = ()
    non_response: float = 0.0
    response_bounds: tuple[float, float] | None = None
    named: tuple[str, ...] = ()
    unrated: Mapping[str, float] = field(default_factory=lambda: _EMPTY)
    assumed: float | None = None
    rounds: tuple[RoundShare, ...] = ()
    looks: int = 1
    planned: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Stable JSON form of the ``corrected_scores`` command, the report and REST."""
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
            **({"rounds": [round_share.to_dict() for round_share in self.rounds]} if self.rounds else {}),
            **({"looks": self.looks} if self.looks > 1 else {}),
            **({} if self.planned else {"planned": False}),
        }


@dataclass(frozen=True, slots=True)
class Withheld:
    """Reason for a withheld score, and the missing labels, strata or components."""

    reason: WithheldReason
    target: Target
    n: int
    labels: int
    missing: Mapping[str, Any] = field(default_factory=lambda: _EMPTY)

    def to_dict(self) -> dict[str, Any]:
        """Stable JSON form: ``withheld`` holds the reason, ``missing`` the data that would lift it."""
        return {
            "withheld": str(self.reason),
            "missing": dict(self.missing),
            "target": str(self.target),
            "n": self.n,
            "labels": self.labels,
        }


CorrectionOutcome = Estimate | Withheld


@dataclass(frozen=True, slots=True)
class Influence:
    """Estimated ``value`` with the influence of each answer of the frame.

    ``design`` is an answer's share of the deviation due to sampling; the squares sum to the variance for ``this_run``.
    ``population`` is its share of the deviation from the mean over questions like these; it is summed by group, then
    squared.

    ``below`` and ``above`` widen the interval by bounds that the variance does not cover. ``freedom`` is the degrees of
    freedom of ``design``, ``None`` if nothing was estimated. ``label_freedom`` replaces it for questions like these, if
    set: all labels tell how questions vary, also those that hardly count in ``design``. ``unseen`` is the additional
    variance for answers unlike all rated ones."""

    value: float
    design: Array
    population: Array
    method: Method
    freedom: float | None
    below: float = 0.0
    above: float = 0.0
    slope: float | None = None
    unseen: float = 0.0
    label_freedom: float | None = None

    def half_width(self, confidence: float) -> float:
        """Half-width of the interval for ``this_run``, before clipping and the widening by :func:`score_interval`."""
        quantile = t_quantile(0.5 + confidence / 2.0, max(1, self.freedom or 1))
        return quantile * math.sqrt(self.design_variance + self.unseen) + (self.below + self.above) / 2.0

    @property
    def design_variance(self) -> float:
        """Variance for ``this_run``, including the finite-population correction."""
        return float(np.square(self.design).sum())


def score_interval(value: float, variance: float, quantile: float, bounds: tuple[float, float]) -> tuple[float, float]:
    """Interval of the means m that lie at most ``quantile`` standard deviations from ``value``.

    The standard deviation is the given one, or one that changes with m like ``(high - m)(m - low)``, as that of a share
    does (E. B. Wilson, 1927, JASA 22). The interval contains the symmetric one. On a skewed scale it reaches further
    towards the middle, because more frequent rare answers would also vary more.

    ``value`` counts as at least one standard error from the ends of ``bounds``, so that a sample without a rare answer
    does not give the whole scale."""
    low, high = bounds
    error = min(math.sqrt(variance), (high - low) / 2)
    if error <= 1e-12 * (high - low):
        return value, value
    symmetric_half = quantile * math.sqrt(variance)
    clipped_value = min(max(value, low), high)
    inner_value = min(max(clipped_value, low + error), high - error)
    ratio = quantile**2 * variance / ((high - inner_value) * (inner_value - low))
    center = (clipped_value + ratio * (low + high) / 2) / (1 + ratio)
    score_half = math.sqrt(ratio * (high - clipped_value) * (clipped_value - low) + (ratio * (high - low) / 2) ** 2) / (
        1 + ratio
    )
    return min(value - symmetric_half, center - score_half), max(value + symmetric_half, center + score_half)


def clustered_variance(influence: Array, group: Indices) -> tuple[float, Indices]:
    """Cluster-robust variance ``G / (G - 1) sum_g (sum_{i in g} psi_i)^2``, and the number of answers in each group.

    ``group`` numbers the G groups. The variance is 0 with a single group."""
    group_sizes = np.bincount(group)
    group_sums, group_sizes = np.bincount(group, weights=influence)[group_sizes > 0], group_sizes[group_sizes > 0]
    group_count = len(group_sizes)
    return (
        float(np.square(group_sums).sum()) * group_count / (group_count - 1) if group_count > 1 else 0.0
    ), group_sizes


def group_freedom(group_sizes: Indices) -> float:
    """Degrees of freedom of a cluster-robust variance: groups minus one for equal sizes, fewer for unequal sizes.

    It is that of a chi-squared with the same mean and variance as the sum of squares over groups (F. E. Satterthwaite,
    1946, Biometrics 2), if the groups' means are independent with equal variance (R. M. Bell, D. F. McCaffrey, 2002,
    Survey Methodology 28; the working model of G. W. Imbens, M. Kolesar, 2016, Review of Economics and Statistics 98).

    With shares ``h`` of the answers and group means ``u`` the sum is ``u'Mu``, ``M = (I - h1') diag(h^2) (I - 1h')``.
    The degrees of freedom are ``tr(M)^2 / tr(M^2)``, in time linear in the groups. At least 1; two groups always have
    1."""
    if len(group_sizes) < 3:
        return 1.0
    share = np.asarray(group_sizes, dtype=np.float64) / float(np.sum(group_sizes))
    square = share * share
    sum_of_squares = float(square.sum())
    sum_of_cubes, sum_of_fourths = float(share @ square), float(square @ square)
    trace = sum_of_squares - 2.0 * sum_of_cubes + sum_of_squares * sum_of_squares
    left_factor = np.array([[sum_of_squares, -1.0], [-1.0, 0.0]])
    right_factor = np.array([[sum_of_squares, sum_of_cubes], [sum_of_cubes, sum_of_fourths]])
    product = left_factor @ right_factor
    trace_of_square = sum_of_fourths - 4.0 * float((square * square) @ share) + 2.0 * sum_of_squares * sum_of_fourths
    trace_of_square += float(np.trace(product @ product))
    freedom = trace * trace / trace_of_square if trace_of_square > 0 else 1.0
    return min(len(group_sizes) - 1.0, max(1.0, freedom))


FEW_GROUPS = 20
NO_VARIANCE = 1e-18


@dataclass(frozen=True, slots=True)
class IntervalEnds:
    """Interval, whether it was clipped at the scale's ends, and the number of its groups (0 for ``this_run``)."""

    low: float
    high: float
    clipped: bool
    groups: int


def target_interval(
    influence: Influence,
    group: Indices,
    labelled: Flags,
    target: Target,
    bounds: tuple[float, float],
    confidence: float,
) -> IntervalEnds | None:
    """Interval for a target, clipped to ``bounds``; ``None`` for questions like these with fewer than two groups.

    ``this_run`` uses the design variance and t with the estimate's degrees of freedom. ``questions_like_these`` uses
    the variance of the groups' summed influence and the degrees of freedom of :func:`group_freedom`. These are at most
    the groups with a label minus one, if labels were used, and at most the estimate's own. Both add the variance of
    unseen answers, by :func:`score_interval`."""
    freedom: float | None = influence.freedom
    variance, group_count = influence.design_variance, 0
    if target is Target.QUESTIONS_LIKE_THESE:
        variance, group_sizes = clustered_variance(influence.population, group)
        group_count = len(group_sizes)
        if group_count < 2:
            return None
        freedom = _group_freedom(influence, group, labelled, group_freedom(group_sizes))
    quantile = t_quantile(0.5 + confidence / 2, max(1, freedom or 1))
    low, high = score_interval(influence.value, variance + influence.unseen, quantile, bounds)
    low, high = low - influence.below, high + influence.above
    return IntervalEnds(
        min(max(low, bounds[0]), bounds[1]),
        max(min(high, bounds[1]), bounds[0]),
        low < bounds[0] - 1e-12 or high > bounds[1] + 1e-12,
        group_count,
    )


def _group_freedom(influence: Influence, group: Indices, labelled: Flags, groups_freedom: float) -> float:
    if influence.freedom is None:
        return groups_freedom
    label_freedom = influence.label_freedom or influence.freedom
    return max(1.0, min(groups_freedom, len(np.unique(group[labelled])) - 1, label_freedom))


@dataclass(frozen=True, slots=True)
class Deviation:
    """Figure for questions like these with its standard error (above 0) and degrees of freedom.

    ``sums`` are the shares of the deviation by group of questions; they add up to 0."""

    value: float
    error: float
    freedom: float
    sums: Mapping[Hashable, float]

    @property
    def t(self) -> float:
        """Value in standard errors."""
        return self.value / self.error

    @property
    def p_value(self) -> float:
        """Two-sided p-value of no difference, without adjustment for other tests."""
        return float(two_sided(np.array([self.t]), np.array([self.freedom]))[0])

    def half_width(self, confidence: float) -> float:
        return t_quantile(0.5 + confidence / 2.0, self.freedom) * self.error


def two_sided(t: Array, freedom: Array) -> Array:
    """Two-sided p-values of Student's t."""
    # Importing scipy takes 0.2 s.
    from scipy.special import stdtr

    return np.asarray(2.0 * stdtr(freedom, -np.abs(t)))


def group_deviation(
    influence: Influence, group: Indices, groups: Sequence[Hashable], labelled: Flags
) -> Deviation | None:
    """Deviation by group of an estimate for questions like these, without the widening by bounds.

    ``group`` holds positions in the names ``groups``. ``None`` if nothing varies or there are fewer than two groups."""
    variance, group_sizes = clustered_variance(influence.population, group)
    if len(group_sizes) < 2 or variance <= NO_VARIANCE:
        return None
    sums = np.bincount(group, weights=influence.population).tolist()
    freedom = _group_freedom(influence, group, labelled, group_freedom(group_sizes))
    sum_by_group = {groups[position]: sums[position] for position in np.unique(group).tolist()}
    return Deviation(influence.value, math.sqrt(variance), freedom, sum_by_group)
