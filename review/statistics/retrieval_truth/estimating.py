"""What the figures would be if the experts had rated the whole pool, with intervals."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Array
from review.statistics.correction.outcome import (
    Deviation,
    Method,
    Target,
    WithheldReason,
    clustered_variance,
    group_freedom,
    t_quantile,
)
from review.statistics.retrieval_truth.drawing import LEAST_DOUBT, PassageDraw
from review.statistics.retrieval_truth.pool import (
    Figures,
    Mask,
    Metric,
    Pool,
    Ratio,
    figures,
    ideal_gain,
    pairs,
    ratios,
    with_pairs,
)

LEAST_RATED = 20
MOST_UNANSWERED = 0.1
UNSEEN = 0.75  # of the variance that the guess expects is added to what the ratings show


@dataclass(frozen=True, slots=True)
class Corrected:
    """A figure of a system (``other`` is ``None``), or of ``system`` minus ``other``, by number; the interval is about
    this pool of these questions. Without a value ``withheld`` says why."""

    metric: Metric
    system: int
    other: int | None
    value: float | None
    low: float | None
    high: float | None
    method: Method | None
    withheld: WithheldReason | None = None

    @property
    def target(self) -> Target:
        """What the interval is about."""
        return Target.THIS_RUN


@dataclass(frozen=True, slots=True)
class Repaired:
    """The figures, and what they rest on: passages without a label before the draw, drawn, rated, and the questions
    that recall and nDCG are about (those with a passage known to be relevant)."""

    figures: Sequence[Corrected]
    unlabelled: int
    drawn: int
    rated: int
    questions: int
    with_relevant: int


def estimate(pool: Pool, drawn: PassageDraw, rated: Array, confidence: float = 0.95, *, cannot: int = 0) -> Repaired:
    """Correct the figures by ratings (relevance from 0 to 1 aligned with the pool, NaN where none).

    A difference estimator: every unlabelled passage enters with its guess ``g``, and each rated one adds
    ``(y - g) / p`` (D. G. Horvitz, D. J. Thompson, 1952, JASA 47; C. E. Särndal, 1980, Biometrika 67), ``p`` its stored
    probability times rated / drawn: passages are served in random order. Recall and nDCG are ratios of such sums in
    each question, linearised for the variance, which is Hájek's for unequal probabilities and a fixed size, plus 3/4
    of what the guess expects: a sample without a surprise says little about how large one would be. Student's t with
    one degree of freedom less than ratings of probability below 1. Those of recall and
    nDCG reach further where few passages are relevant (:func:`_intervals`). Withheld below 20 ratings, unless all are
    rated, and where ``cannot`` (passages that experts could not judge) is above a tenth of those reached.
    """
    found = _corrected(pool, drawn, rated, cannot)
    if found.withheld:
        why = found.withheld
        told = [Corrected(metric, *cell, None, None, None, None, why) for metric in Metric for cell in _cells(pool)]
    else:
        intervals = _intervals(pool, found, t_quantile(0.5 + confidence / 2.0, found.freedom))
        told = _told(pool, intervals, found.method, found.counted)
    drawn_ones, count = int((np.isnan(pool.known) & drawn.sampled).sum()), int(found.has.sum())
    return Repaired(told, len(pool.unlabelled), drawn_ones, count, pool.questions, int(found.counted.sum()))


Told = tuple[float, Deviation | None]  # a value, and how it deviates by group; nothing where it does not vary


def for_questions_like_these(
    pool: Pool, drawn: PassageDraw, rated: Array, groups: Sequence[Hashable], *, cannot: int = 0
) -> dict[tuple[Metric, int, int | None], Told | WithheldReason]:
    """The same figures, each with its deviation for questions like these: ``groups`` has the group of each question.

    Questions are clusters of a first stage: what varies between their estimates, by group, holds their own variation
    and that of the draw (M. H. Hansen, W. N. Hurwitz, W. G. Madow, 1953, Sample Survey Methods and Theory; draws of
    fixed size hang together between questions only so far as widens it). 3/4 of the variance that the guess expects is
    added as above. Student's t by the groups.
    """
    found = _corrected(pool, drawn, rated, cannot)
    told: dict[tuple[Metric, int, int | None], Told | WithheldReason] = {}
    numbers = {name: at for at, name in enumerate(dict.fromkeys(groups))}
    group, everywhere = np.array([numbers[one] for one in groups], dtype=np.intp), np.ones(pool.questions, dtype=bool)
    for row, metric in enumerate(Metric):
        counts = everywhere if metric is Metric.PRECISION else found.counted
        for column, cell in enumerate(_cells(pool)):
            if found.withheld or not counts.any():
                told[metric, *cell] = found.withheld or WithheldReason.NO_VALUES
                continue
            shares = found.figures.deviation[row, column]
            variance, sizes = clustered_variance(shares[counts], group[counts])
            error = float(np.sqrt(variance + UNSEEN * found.expected[row, column]))
            sums = np.bincount(group, weights=shares)
            of_group = {name: float(sums[at]) for name, at in numbers.items() if counts[group == at].any()}
            varies = len(sizes) > 1 and error > NO_ERROR
            value = float(found.figures.value[row, column])
            told[metric, *cell] = value, Deviation(value, error, group_freedom(sizes), of_group) if varies else None
    return told


NO_ERROR = 1e-9


@dataclass(frozen=True, slots=True)
class _Open:
    """The pool while passages are unrated: ``relevance`` as estimated (``total`` by question), ``known`` with 0 where
    nobody knows, the passages ``left`` to rate, and the ``variance`` of each one's estimate."""

    relevance: Array
    total: Array
    known: Array
    left: Mask
    variance: Array


@dataclass(frozen=True, slots=True)
class _Corrected:
    """Figures by metric and cell, with the variance that the ratings show (``seen``) and that the guess expects;
    ``open`` is ``None`` where nothing is estimated."""

    figures: Figures
    seen: Array
    expected: Array
    freedom: int
    has: Mask
    counted: Mask
    method: Method
    withheld: WithheldReason | None = None
    open: _Open | None = None


def _corrected(pool: Pool, drawn: PassageDraw, rated: Array, cannot: int) -> _Corrected:
    open_ones = np.isnan(pool.known)
    has = open_ones & drawn.sampled & ~np.isnan(rated)
    complete = not (open_ones & np.isnan(rated)).any()
    if complete:
        has = open_ones
    known = np.where(has, np.where(np.isnan(rated), 0.0, rated), np.where(open_ones, 0.0, pool.known))
    relevant = pool.sums(known)
    counted, least = np.asarray(relevant > 0), np.maximum(relevant, 1.0)
    count = int(has.sum())
    why = WithheldReason.NON_RESPONSE if cannot > MOST_UNANSWERED * (count + cannot) else None
    if count < LEAST_RATED and not complete:
        why = WithheldReason.TOO_FEW_LABELS
    if complete or why:
        exact = figures(pool, known, np.where(counted, relevant, 1.0), counted)
        nothing = np.zeros_like(exact.value)
        return _Corrected(exact, nothing, nothing, 1, has, counted, Method.CENSUS, why)
    share = count / int((open_ones & drawn.sampled).sum())
    inclusion = np.where(has, drawn.probability * share, 1.0)
    surprise = np.where(has, (rated - drawn.guess) / inclusion, 0.0)
    surprise = np.where(np.isnan(surprise), 0.0, surprise)
    relevance = np.where(open_ones, drawn.guess + surprise, pool.known)
    found = figures(pool, relevance, least, counted)
    guessed = figures(pool, np.where(has | ~open_ones, known, drawn.guess), least, counted)
    chance = np.where(open_ones, drawn.probability * share, 1.0)
    doubt = np.where(open_ones, np.maximum(drawn.guess * (1.0 - drawn.guess), LEAST_DOUBT), 0.0)
    unseen = doubt * (1.0 - chance) / chance
    expected = (guessed.influence**2 * unseen).sum(axis=2)
    seen = _variance(found.influence[:, :, has] * surprise[has], 1.0 - inclusion[has])
    freedom = max(1, int((inclusion < 1.0).sum()) - 1)
    variance = (1.0 - inclusion) * surprise**2 + UNSEEN * unseen
    still_open = _Open(relevance, np.maximum(pool.sums(relevance), least), known, open_ones & ~has, variance)
    return _Corrected(found, seen, expected, freedom, has, counted, Method.REGRESSION, open=still_open)


def _intervals(pool: Pool, found: _Corrected, quantile: float) -> tuple[Array, Array, Array]:
    """Value, low and high by metric and cell.

    Few relevant passages make a ratio skewed: one that was drawn by chance counts as several, which lowers recall and
    the variance around it. So the interval of recall and nDCG also holds, in each question, the ratios that a t test of
    ``gain - ratio x perfect`` does not reject (E. C. Fieller, 1954, Journal of the Royal Statistical Society B 16).
    Over questions the distances are added as squares (G. Y. Zou, A. Donner, 2008, Statistics in Medicine 27). Nothing
    goes further than unrated passages can bring it.
    """
    half = quantile * np.sqrt(found.seen + UNSEEN * found.expected)
    value = found.figures.value.copy()
    low, high = value - half, value + half
    if found.open is None or not found.counted.any():
        return value, low, high
    on, counted = int(found.counted.sum()), found.counted
    for row, (metric, ratio) in enumerate(ratios(pool, found.open.total).items(), start=1):
        least, most = (bound[:, counted] for bound in _possible(pool, found.open, metric, ratio.gain))
        middle, below, above = (end[:, counted] for end in _interval_by_question(pool, found.open, ratio, quantile))
        below, above = middle - np.clip(below, least, most), np.clip(above, least, most) - middle
        reach = [np.sqrt(np.square(np.maximum(one, 0.0)).sum(axis=1)) / on for one in (below, above)]
        ends = (value[row], np.minimum(low[row], value[row] - reach[0]), np.maximum(high[row], value[row] + reach[1]))
        value[row], low[row], high[row] = (np.clip(end, least.mean(axis=1), most.mean(axis=1)) for end in ends)
    return value, low, high


def _interval_by_question(pool: Pool, still_open: _Open, ratio: Ratio, quantile: float) -> tuple[Array, Array, Array]:
    """Value, low and high of a ratio by cell and question; infinite ends where the test rejects no ratio there."""
    gain, variance, perfect = with_pairs(pool, ratio.gain), still_open.variance, ratio.perfect
    sums = pool.sums(gain * still_open.relevance)
    of_gain, crossed = pool.sums(gain**2 * variance), ratio.slope * pool.sums(gain * variance)
    square = perfect**2 - quantile**2 * ratio.slope**2 * pool.sums(variance)
    middle = sums * perfect - quantile**2 * crossed
    root = np.sqrt(np.maximum(middle**2 - square * (sums**2 - quantile**2 * of_gain), 0.0))
    bounded = square > NO_ERROR * perfect**2
    divisor = np.where(bounded, square, 1.0)
    low = np.where(bounded, (middle - root) / divisor, -np.inf)
    high = np.where(bounded, (middle + root) / divisor, np.inf)
    return sums / perfect, low, high


def _possible(pool: Pool, still_open: _Open, metric: Metric, gain: Array) -> tuple[Array, Array]:
    """Bounds of a ratio once all passages are rated, by cell and question."""
    count, have = pool.sums(still_open.known), pool.sums(gain * still_open.known)
    more, left = pool.sums(gain * still_open.left), pool.sums(still_open.left.astype(np.float64))
    every = np.maximum(count + left, 1.0)
    if metric is Metric.RECALL:
        least, most = have / every, (have + more) / np.maximum(count + more, 1.0)
    else:
        found = np.maximum(count, 1.0)
        least, most = have / ideal_gain(every, pool.k)[0], (have + more) / ideal_gain(found, pool.k)[0]
        most = np.minimum(most, 1.0)
    one, other = (np.array([pair[at] for pair in pairs(pool.systems)], dtype=int) for at in (0, 1))
    ends = ((least, least[one] - most[other]), (most, most[one] - least[other]))
    return np.concatenate(ends[0]), np.concatenate(ends[1])


def _variance(parts: Array, left: Array) -> Array:
    """``n / (n - 1) sum (1 - p) (z - a)^2`` with ``a`` the mean of ``z`` by ``1 - p`` (J. Hájek, 1964, Annals of
    Mathematical Statistics 35)."""
    weight = float(left.sum())
    if weight <= 0:
        return np.zeros(parts.shape[:-1])
    middle = (parts * left).sum(axis=-1, keepdims=True) / weight
    varying = max(2, int((left > 0).sum()))
    return np.asarray(varying / (varying - 1) * (left * (parts - middle) ** 2).sum(axis=-1))


def _cells(pool: Pool) -> list[tuple[int, int | None]]:
    return [*((one, None) for one in range(pool.systems)), *pairs(pool.systems)]


def _told(pool: Pool, intervals: tuple[Array, Array, Array], method: Method, counted: Mask) -> list[Corrected]:
    told = []
    for row, metric in enumerate(Metric):
        for column, (one, other) in enumerate(_cells(pool)):
            if metric is not Metric.PRECISION and not counted.any():
                told.append(Corrected(metric, one, other, None, None, None, None, WithheldReason.NO_VALUES))
                continue
            least = 0.0 if other is None else -1.0
            shown, low, high = (min(max(float(end[row, column]), least), 1.0) for end in intervals)
            told.append(Corrected(metric, one, other, shown, low, high, method))
    return told


@dataclass(frozen=True, slots=True)
class First:
    """Hit and reciprocal rank of a system, means over the questions: known exactly, or ``undecided`` questions have a
    passage without a label above the first one known to be relevant."""

    system: int
    hit: float | None
    reciprocal_rank: float | None
    undecided: int


def first_relevant(pool: Pool, rated: Array) -> list[First]:
    """Hit@k and MRR, which are no sums over passages and have no estimate: told where nothing is left to rate above the
    first relevant passage of any question. Means over all questions; half relevant is not."""
    relevance = np.where(np.isnan(pool.known), rated, pool.known)
    found = []
    for system, ranks in enumerate(pool.ranks):
        within = (ranks > 0) & (ranks <= pool.k)
        first, unknown = (np.full(pool.questions, pool.k + 1) for _ in range(2))
        for at, which in ((first, relevance > 0.5), (unknown, np.isnan(relevance))):
            places = np.flatnonzero(within & which)
            np.minimum.at(at, pool.question[places], ranks[places])
        undecided = int((unknown < first).sum())
        if undecided:
            found.append(First(system, None, None, undecided))
        else:
            hit = first <= pool.k
            found.append(First(system, float(hit.mean()), float(np.where(hit, 1.0 / first, 0.0).mean()), 0))
    return found
