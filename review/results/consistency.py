"""How far each reviewer of a queue agrees with the others and with themselves, and whether they are lenient.

Blind first ratings alone. With others: the person's value against the mean of everybody else's on the same answer;
``bias`` is leniency, own minus others. With themselves: a hidden repeat against the first occasion.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from evaluation.core.registry import Scale
from evaluation.models import MetricDefinition
from review.evidence.experts import ExpertRating, agreement_ratings, read
from review.evidence.judged import Key
from review.models import Rating, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.statistics.agreement.pair import PairAgreement, compare
from review.statistics.agreement.rating import consensus

Value = float | str


@dataclass(frozen=True, slots=True)
class Consistency:
    """One reviewer on one metric. ``peers`` and ``oneself`` are ``None`` without an answer that tells; leniency is
    ``peers.statistics["bias"]``, in levels of the scale."""

    reviewer_id: int
    metric: MetricDefinition
    peers: PairAgreement | None
    oneself: PairAgreement | None


def consistency(queue: ReviewQueue) -> list[Consistency]:
    """Every reviewer and metric with anything to compare, by reviewer. Two queries."""
    rows = read(Rating.objects.filter(assignment__item__queue=queue, phase="initial", blind=True))
    metrics = [row.metric for row in queue.metrics.select_related("metric").order_by("position", "pk")]
    first = agreement_ratings(rows)
    found = []
    for rater in sorted({row.rater for row in rows}):
        for metric in metrics:
            scale = metric.read_scale()
            peers = _with_peers(first, rater, metric.pk, scale)
            oneself = _with_oneself(rows, rater, metric.pk, scale)
            if peers or oneself:
                found.append(Consistency(_person(rater), metric, peers, oneself))
    return found


def _with_peers(
    first: Mapping[Key, Sequence[ExpertRating]], rater: str, metric_id: int, scale: Scale
) -> PairAgreement | None:
    own, others = [], []
    for (_, metric), ratings in first.items():
        if metric != metric_id:
            continue
        mine = [row.answer for row in ratings if row.rater == rater]
        rest = [row.answer for row in ratings if row.rater != rater]
        if mine and rest:
            own.append(mine[0])
            others.append(consensus([said for said in rest if said is not None], scale))
    return compare(own, others, scale) if own else None


def _with_oneself(rows: Iterable[ExpertRating], rater: str, metric_id: int, scale: Scale) -> PairAgreement | None:
    """The last word of each occasion, a repeat against the first."""
    said: dict[tuple[int, bool], Value | None] = {}
    for row in rows:
        if row.rater == rater and row.metric_id == metric_id and row.blind:
            said[row.answer_id, row.occasion == FIRST_OCCASION] = row.answer
    pairs = [
        (again, said[answer, True])
        for (answer, first), again in said.items()
        if not first and again is not None and said.get((answer, True)) is not None
    ]
    return compare([again for again, _ in pairs], [before for _, before in pairs], scale) if pairs else None


def _person(rater: str) -> int:
    return int(rater.rpartition("_")[2])
