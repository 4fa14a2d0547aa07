"""What the figures would be if the experts had rated the whole pool, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Array
from review.statistics.correction.outcome import Method, Target, WithheldReason, t_quantile
from review.statistics.retrieval_truth.drawing import LEAST_DOUBT, PassageDraw
from review.statistics.retrieval_truth.pool import Mask, Metric, Pool, figures, pairs

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
    one degree of freedom less than ratings of probability below 1. Withheld below 20 ratings,
    unless all are rated, and where ``cannot`` (passages that experts could not judge) is above a tenth of those
    reached.
    """
    open_ones = np.isnan(pool.known)
    has = open_ones & drawn.sampled & ~np.isnan(rated)
    complete = not (open_ones & np.isnan(rated)).any()
    if complete:
        has = open_ones
    known = np.where(has, np.where(np.isnan(rated), 0.0, rated), np.where(open_ones, 0.0, pool.known))
    relevant = pool.sums(known)
    counted = relevant > 0
    count = int(has.sum())
    said = (int(open_ones.sum()), int((open_ones & drawn.sampled).sum()), count, pool.questions, int(counted.sum()))
    if count < LEAST_RATED and not complete:
        return Repaired(_withheld(pool, WithheldReason.TOO_FEW_LABELS), *said)
    if cannot > MOST_UNANSWERED * (count + cannot):
        return Repaired(_withheld(pool, WithheldReason.NON_RESPONSE), *said)
    if complete:
        exact = figures(pool, known, np.where(counted, relevant, 1.0), counted).value
        return Repaired(_told(pool, exact, np.zeros_like(exact), Method.CENSUS, counted), *said)
    share = count / max(1, int((open_ones & drawn.sampled).sum()))
    inclusion = np.where(has, drawn.probability * share, 1.0)
    surprise = np.where(has, (rated - drawn.guess) / inclusion, 0.0)
    surprise = np.where(np.isnan(surprise), 0.0, surprise)
    least = np.maximum(relevant, 1.0)
    found = figures(pool, np.where(open_ones, drawn.guess + surprise, pool.known), least, counted)
    guessed = figures(pool, np.where(has | ~open_ones, known, drawn.guess), least, counted)
    chance = np.where(open_ones, drawn.probability * share, 1.0)
    doubt = np.where(open_ones, np.maximum(drawn.guess * (1.0 - drawn.guess), LEAST_DOUBT), 0.0)
    expected = (guessed.influence**2 * (doubt * (1.0 - chance) / chance)).sum(axis=2)
    seen = _variance(found.influence[:, :, has] * surprise[has], 1.0 - inclusion[has])
    freedom = max(1, int((inclusion < 1.0).sum()) - 1)
    half = t_quantile(0.5 + confidence / 2.0, freedom) * np.sqrt(seen + UNSEEN * expected)
    return Repaired(_told(pool, found.value, half, Method.REGRESSION, counted), *said)


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


def _withheld(pool: Pool, why: WithheldReason) -> list[Corrected]:
    return [Corrected(metric, *cell, None, None, None, None, why) for metric in Metric for cell in _cells(pool)]


def _told(pool: Pool, value: Array, half: Array, method: Method, counted: Mask) -> list[Corrected]:
    told = []
    for row, metric in enumerate(Metric):
        for column, (one, other) in enumerate(_cells(pool)):
            if metric is not Metric.PRECISION and not counted.any():
                told.append(Corrected(metric, one, other, None, None, None, None, WithheldReason.NO_VALUES))
                continue
            least = 0.0 if other is None else -1.0
            middle, reach = float(value[row, column]), float(half[row, column])
            shown, low, high = (min(max(end, least), 1.0) for end in (middle, middle - reach, middle + reach))
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
