"""Variance components of a run's values, and consistency of the reviewers of a queue.

Only blind first ratings count. The variance of ratings and judge scores is split into answers, judge, reviewers and
residual. A reviewer's value is compared with the mean of all others on the same answer; ``bias`` is leniency, own minus
others. Self-consistency compares a hidden repeat with the first occasion."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.core.metric_specs import Bilingual
from evaluation.core.scales import Scale
from evaluation.models import MetricDefinition
from review.evidence.effective import RunEvidence
from review.evidence.experts import ExpertRating, agreement_ratings, is_standing, read_ratings
from review.evidence.scorers import RULES, AnswerMetricKey, Scorer, metric_title
from review.evidence.seals import readable
from review.models import Rating, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.statistics.agreement.pair import PairAgreement, compare
from review.statistics.agreement.statistic import consensus
from review.statistics.agreement.variance import Observation, VarianceSource, VarianceSplit, variance_split
from review.statistics.precision import SpendingAdvice, SpendOption, spending_advice


@dataclass(frozen=True, slots=True)
class VariationMeasure:
    """Variance components of one metric in squared units of its ``scale``, unweighted, with spending advice.

    ``judge`` is the scorer whose part is reported, empty if no judge scored the metric."""

    metric: str
    title: Bilingual
    scale: Scale
    judge: str
    split: VarianceSplit
    advice: SpendingAdvice

    @property
    def shares(self) -> dict[VarianceSource, float]:
        """Share of each known source in the sum of the known ones; empty if nothing varies."""
        total = sum(self.split.variances.values())
        return {source: value / total for source, value in self.split.variances.items()} if total > 0 else {}

    @property
    def unmeasured(self) -> tuple[SpendOption, ...]:
        """Options that the advice leaves out, because their source cannot be told from the others."""
        return tuple(
            spend
            for spend, sources in OPTION_SOURCES.items()
            if any(source in self.split.missing for source in sources)
        )

    def to_dict(self) -> dict[str, Any]:
        """``{"variance": {source: value}, "share", "missing": {source: reason}, "design", "next"}``."""
        design, first = self.split.design, self.advice.first
        return {
            "title": {"en": self.title.en, "ko": self.title.ko},
            "scale": str(self.scale),
            "judge": self.judge,
            "variance": {str(source): value for source, value in self.split.variances.items()},
            "share": {str(source): value for source, value in self.shares.items()},
            "missing": {str(source): str(gap) for source, gap in self.split.missing.items()},
            "design": {
                "answers": design.answers,
                "reviewers": design.reviewers,
                "ratings_per_answer": design.ratings,
                "judged": design.judged,
                "judge_repeats": design.repeats,
            },
            "next": {
                "spend_on": None if first is None else str(first),
                "share": {str(spend): share for spend, share in self.advice.shares.items()},
                "untold": [str(spend) for spend in self.unmeasured],
            },
        }


OPTION_SOURCES: Mapping[SpendOption, tuple[VarianceSource, ...]] = {
    SpendOption.QUESTIONS: (VarianceSource.ANSWERS,),
    SpendOption.REVIEWERS: (VarianceSource.REVIEWERS,),
    SpendOption.RATINGS: (VarianceSource.JUDGE, VarianceSource.INTERACTION),
    SpendOption.REPEATS: (VarianceSource.NOISE,),
}


def variation_measures(evidence: RunEvidence) -> tuple[VariationMeasure, ...]:
    """Variance components of every numeric metric with blind ratings, by name; no query, no resampling.

    Overlap separates reviewers from answers, hidden repeats separate interaction from residual, and repeated judgements
    show the judge's noise."""
    repeats = _hidden_repeats(evidence.ratings, {row.pk for rows in evidence.blind.values() for row in rows})
    measures = []
    for pk, ratings_by_answer in sorted(
        evidence.blind_by_metric.items(), key=lambda metric_ratings: evidence.names[metric_ratings[0]]
    ):
        metric = evidence.metrics[pk]
        if not metric.read_scale().labels:
            rows = [row for answer_ratings in ratings_by_answer.values() for row in answer_ratings]
            measures.append(_measure(evidence, metric, [*rows, *(row for row in repeats if row.metric_id == pk)]))
    return tuple(measures)


def _measure(evidence: RunEvidence, metric: MetricDefinition, rows: Sequence[ExpertRating]) -> VariationMeasure:
    judge = next((scorer for scorer in evidence.scorers if scorer.primary and _scored_metric(scorer, metric)), None)
    observations = [Observation(row.answer_id, row.rater, row.value) for row in rows if row.value is not None]
    split = variance_split(observations, _repeat_scores(judge, metric) if judge else None)
    author = judge.author if judge else ""
    return VariationMeasure(
        evidence.names[metric.pk], metric_title(metric), metric.read_scale(), author, split, spending_advice(split)
    )


def _scored_metric(scorer: Scorer, metric: MetricDefinition) -> bool:
    return scorer.author != RULES and metric.pk in scorer.values


def _repeat_scores(judge: Scorer, metric: MetricDefinition) -> dict[Any, Sequence[float]]:
    """Values of the judge's repeats, by answer."""
    values = judge.values[metric.pk]
    return {
        answer: judged.repeat_values or (judged.value,) for answer, judged in values.items() if judged.value is not None
    }


def _hidden_repeats(rows: Iterable[ExpertRating], first_ids: Collection[int]) -> list[ExpertRating]:
    """Blind ratings on later occasions, the last one of each; ``first_ids`` are the first ratings."""
    last_of_occasion: dict[tuple[AnswerMetricKey, str, int], ExpertRating] = {}
    repeats = (row for row in rows if row.occasion != FIRST_OCCASION and row.phase == "initial")
    for row in sorted(repeats, key=lambda rating: rating.pk):
        last_of_occasion[row.key, row.rater, row.assignment_id] = row
    return [row for row in last_of_occasion.values() if row.blind and not row.cannot_judge and row.pk not in first_ids]


Value = float | str


@dataclass(frozen=True, slots=True)
class Consistency:
    """Consistency of one reviewer on one metric.

    ``peers`` and ``oneself`` are ``None`` without a comparable answer. Leniency is ``peers.statistics["bias"]``, in
    levels of the scale."""

    reviewer_id: int
    metric: MetricDefinition
    peers: PairAgreement | None
    oneself: PairAgreement | None


def reviewer_consistency(queue: ReviewQueue) -> list[Consistency]:
    """Consistency of every reviewer and metric with a comparable answer, by reviewer. Two queries."""
    rows = read_ratings(
        readable(Rating.objects.filter(is_standing(), assignment__item__queue=queue, phase="initial", blind=True))
    )
    metrics = [row.metric for row in queue.metrics.select_related("metric").order_by("position", "pk")]
    first_ratings = agreement_ratings(rows)
    reviewers = []
    for rater in sorted({row.rater for row in rows}):
        for metric in metrics:
            scale = metric.read_scale()
            peers = _with_peers(first_ratings, rater, metric.pk, scale)
            oneself = _with_oneself(rows, rater, metric.pk, scale)
            if peers or oneself:
                reviewers.append(Consistency(_reviewer_id(rater), metric, peers, oneself))
    return reviewers


def _with_peers(
    first_ratings: Mapping[AnswerMetricKey, Sequence[ExpertRating]], rater: str, metric_id: int, scale: Scale
) -> PairAgreement | None:
    own, peer_means = [], []
    for (_, metric), ratings in first_ratings.items():
        if metric != metric_id:
            continue
        own_values = [row.value_or_label for row in ratings if row.rater == rater]
        peer_values = [row.value_or_label for row in ratings if row.rater != rater]
        if own_values and peer_values:
            own.append(own_values[0])
            peer_means.append(consensus([value for value in peer_values if value is not None], scale))
    return compare(own, peer_means, scale) if own else None


def _with_oneself(rows: Iterable[ExpertRating], rater: str, metric_id: int, scale: Scale) -> PairAgreement | None:
    """Agreement of the last rating of each repeat with the first occasion."""
    value_by_occasion: dict[tuple[int, bool], Value | None] = {}
    for row in rows:
        if row.rater == rater and row.metric_id == metric_id and row.blind:
            value_by_occasion[row.answer_id, row.occasion == FIRST_OCCASION] = row.value_or_label
    pairs = [
        (repeat_value, value_by_occasion[answer, True])
        for (answer, is_first), repeat_value in value_by_occasion.items()
        if not is_first and repeat_value is not None and value_by_occasion.get((answer, True)) is not None
    ]
    return (
        compare([repeat_value for repeat_value, _ in pairs], [first_value for _, first_value in pairs], scale)
        if pairs
        else None
    )


def _reviewer_id(rater: str) -> int:
    return int(rater.rpartition("_")[2])
