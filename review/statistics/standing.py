"""Standing score over releases: the slope of earlier ratings, the test for tuning, the score of never-rated questions,
and rechecks.

The standing score itself is a corrected score (:mod:`review.statistics.correction`) in which answers with a standing
rating are a stratum that is rated completely, and whose components have the slope of earlier ratings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Array, Flags, Indices
from review.statistics.correction.outcome import clustered_variance, group_freedom, score_interval
from review.statistics.correction.strata_estimates import unseen_rate
from review.statistics.sampling.member import MAX_SCORE_BANDS
from review.statistics.student_t import t_quantile

MIN_SLOPE_RATINGS = 20
TUNING_LEVEL = 0.05
MIN_NEVER_RATED_LABELS = 20
RECHECK_SHARE = 0.05
MIN_RECHECKS = 10
ROUNDING = 1e-12


def earlier_slope(judge: Array, rating: Array) -> float | None:
    """Slope of ratings on judge values, ``Cov(y, f) / Var(f)``, from ratings of earlier releases.

    ``judge`` and ``rating`` are aligned, without missing values, on one scale. ``None`` with fewer than 20 ratings, or
    if the judge's value does not vary. A slope that does not depend on the new draw biases no estimate from it and
    costs no degree of freedom (W. G. Cochran, 1977, Sampling Techniques, 7.3)."""
    if len(rating) < MIN_SLOPE_RATINGS:
        return None
    centred = judge - judge.mean()
    spread = float(centred @ centred)
    if spread <= ROUNDING * len(judge) * max(1.0, float(np.square(judge).max())):
        return None
    return float(centred @ rating) / spread


def score_levels(judge: Array) -> Indices:
    """Level of each judge value: its place among at most ten different values, else its quarter; -1 without a value."""
    known = judge[~np.isnan(judge)]
    values = np.unique(known)
    edges = values if len(values) <= MAX_SCORE_BANDS else np.unique(np.quantile(known, [0.0, 0.25, 0.5, 0.75]))
    levels = np.searchsorted(edges, judge, side="right") - 1
    return np.where(np.isnan(judge), -1, levels)


@dataclass(frozen=True, slots=True)
class TuningTest:
    """Test whether rated answers were changed more often than never-rated ones.

    ``rated`` and ``rated_changed`` count rated answers, ``unrated`` and ``unrated_changed`` the others, over all
    releases tested. ``expected`` is the number of changed rated answers if ratings had no influence. ``p_value`` is
    one-sided; ``None`` if no level has both kinds of answers, changed and unchanged."""

    rated: int
    rated_changed: int
    unrated: int
    unrated_changed: int
    expected: float
    p_value: float | None

    @property
    def fired(self) -> bool:
        """Return whether the test finds tuning at the 5% level of a release."""
        return self.p_value is not None and self.p_value <= TUNING_LEVEL


def tuning_test(changed: Flags, rated: Flags, level: Indices) -> TuningTest:
    """Test for tuning to the ratings, within levels of the judge's score.

    The arrays are aligned: one entry for each answer and step from a release to the next. ``changed``: the next release
    answers differently. ``rated``: the answer had a rating before. ``level``: number of the step and the judge's level,
    within which ratings were assigned at random.

    The statistic is the number of changed rated answers (N. Mantel, W. Haenszel, 1959, JNCI 22). Its permutation
    distribution within a level is hypergeometric; the distribution of the sum is their convolution, so the p-value is
    exact for one step."""
    distribution, offset, expected, informative = np.ones(1), 0, 0.0, False
    for number in np.unique(level):
        members = level == number
        size, changes, ratings = (int(flags[members].sum()) for flags in (members, changed, rated))
        pmf, lowest = _hypergeometric(size, changes, ratings)
        distribution, offset = np.convolve(distribution, pmf), offset + lowest
        expected += ratings * changes / size
        informative |= len(pmf) > 1
    both = int((rated & changed).sum())
    # A sum of rounded terms may exceed 1 in the last digit.
    p_value = min(1.0, float(distribution[both - offset :].sum())) if informative else None
    return TuningTest(int(rated.sum()), both, int((~rated).sum()), int((changed & ~rated).sum()), expected, p_value)


def _hypergeometric(size: int, changes: int, ratings: int) -> tuple[Array, int]:
    """Probabilities of each number of changed rated answers, and the lowest number."""
    lowest, highest = max(0, changes + ratings - size), min(changes, ratings)
    total = _log_choose(size, ratings)
    logs = [
        _log_choose(changes, count) + _log_choose(size - changes, ratings - count) - total
        for count in range(lowest, highest + 1)
    ]
    return np.exp(np.array(logs)), lowest


def _log_choose(size: int, count: int) -> float:
    return math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)


@dataclass(frozen=True, slots=True)
class NeverRated:
    """Never-rated questions of a release in one component of its score, as aligned columns.

    ``judge`` is the judge's value (NaN if it failed), ``rating`` the expert's (NaN unless rated in this release).
    ``escape`` is the chance that all earlier draws missed the question, ``probability`` the chance of this release's
    draw times its response rate; both above 0. ``group`` numbers groups of dependent questions from 0, the same in all
    components.

    ``slope`` is that of expert on judge, ``weight`` the component's weight in the score, ``low`` and ``high`` bound its
    values. ``exact``: the values are exact by definition and need no ratings."""

    judge: Array
    rating: Array
    escape: Array
    probability: Array
    group: Indices
    slope: float = 0.0
    weight: float = 1.0
    low: float = 0.0
    high: float = 1.0
    exact: bool = False

    @property
    def labelled(self) -> Flags:
        return np.asarray(~np.isnan(self.rating))


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """Mean with its interval. ``labels``: ratings of the component that has fewest."""

    value: float
    low: float
    high: float
    labels: int


def never_rated_score(components: Sequence[NeverRated], confidence: float = 0.95) -> MeanEstimate | None:
    """Score for questions like these, from never-rated questions only.

    Each question counts 1 / ``escape``, so that the never-rated ones represent all (D. G. Horvitz, D. J. Thompson,
    1952, JASA 47). A component is estimated by ``b mean_v(f) + mean_w(y - b f)`` with weights v = 1 / escape over the
    questions and w = v / probability over the rated ones, both normalised (Hajek). The variance is that of the
    deviations summed by group over all components; Student's t with at most the rated groups minus one degrees of
    freedom. ``None`` if a component has fewer than 20 ratings, without variation, or with fewer than two groups."""
    estimated = [component for component in components if not component.exact]
    labels = min((int(component.labelled.sum()) for component in estimated), default=0)
    if labels < MIN_NEVER_RATED_LABELS:
        return None
    value, deviations, groups = 0.0, [], []
    for component in components:
        mean, deviation = _weighted_mean(component)
        value += component.weight * mean
        deviations.append(component.weight * deviation)
        groups.append(component.group)
    variance, group_sizes = clustered_variance(np.concatenate(deviations), np.concatenate(groups))
    if len(group_sizes) < 2 or variance <= ROUNDING**2:
        return None
    rated_groups = min(len(np.unique(component.group[component.labelled])) for component in estimated)
    freedom = max(1.0, min(group_freedom(group_sizes), rated_groups - 1.0))
    ends = [sorted((component.weight * component.low, component.weight * component.high)) for component in components]
    bounds = sum(low for low, _ in ends), sum(high for _, high in ends)
    low, high = score_interval(value, variance, t_quantile(0.5 + confidence / 2.0, freedom), bounds)
    return MeanEstimate(min(max(value, bounds[0]), bounds[1]), max(low, bounds[0]), min(high, bounds[1]), labels)


def _weighted_mean(questions: NeverRated) -> tuple[float, Array]:
    """Estimate of a component, and the deviation of each question, which sum to 0."""
    weight = 1.0 / questions.escape
    weight /= weight.sum()
    known = ~np.isnan(questions.judge)
    # Any prediction will do where the judge failed.
    judge = np.where(known, questions.judge, questions.judge[known].mean() if known.any() else 0.0)
    slope = 1.0 if questions.exact else questions.slope
    mean_judge = float(weight @ judge)
    deviation = slope * weight * (judge - mean_judge)
    if questions.exact:
        return mean_judge, deviation
    labelled = questions.labelled
    label_weight = np.where(labelled, weight / questions.probability, 0.0)
    label_weight /= label_weight.sum()
    error = np.where(labelled, questions.rating - slope * judge, 0.0)
    level, count = float(label_weight @ error), int(labelled.sum())
    return level + slope * mean_judge, deviation + label_weight * (error - level) * math.sqrt(count / (count - 1))


def recheck_size(carried: int) -> int:
    """Number of carried answers to rate again in a release: 5%, at least 10, at most all."""
    return min(carried, max(MIN_RECHECKS, math.ceil(RECHECK_SHARE * carried)))


@dataclass(frozen=True, slots=True)
class Drift:
    """Mean change from carried to repeated ratings with its interval, over so many rechecked answers."""

    value: float
    low: float
    high: float
    rechecked: int

    @property
    def shown(self) -> bool:
        """Return whether the interval excludes 0: experts rate differently today."""
        return self.low > 0.0 or self.high < 0.0


def recheck_drift(differences: Sequence[float], group: Indices, width: float, confidence: float = 0.95) -> Drift | None:
    """Change of the experts since the carried ratings, pooled over releases.

    ``differences`` are new minus carried ratings on a scale of this ``width``; ``group`` numbers dependent ones from 0,
    such as rechecks of one question in several releases. Student's t over groups. If all differences are equal, the
    interval allows for the largest rate of other differences of which none is seen. ``None`` below two groups."""
    values = np.array(differences, dtype=np.float64)
    groups = len(np.unique(group))
    if groups < 2:
        return None
    mean = float(values.mean())
    variance, group_sizes = clustered_variance((values - mean) / len(values), group)
    half_width = t_quantile(0.5 + confidence / 2.0, group_freedom(group_sizes)) * math.sqrt(variance)
    if variance <= (ROUNDING * width) ** 2:
        half_width = unseen_rate(groups, confidence) * width
    return Drift(mean, max(mean - half_width, -width), min(mean + half_width, width), len(values))
