"""Why values of a run vary: ratings and the judge's scores split into answers, judge, reviewers and rest; and how far
each reviewer of a queue agrees with the others and with themselves, and whether they are lenient.

Blind first ratings alone. With others: the person's value against the mean of everybody else's on the same answer;
``bias`` is leniency, own minus others. With themselves: a hidden repeat against the first occasion."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.core.metric_specs import Bilingual
from evaluation.core.scales import Scale
from evaluation.models import MetricDefinition
from review.evidence.effective import Said
from review.evidence.experts import ExpertRating, agreement_ratings, read
from review.evidence.scorers import RULES, Key, Scorer, title_of
from review.evidence.seals import readable
from review.models import Rating, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.statistics.agreement.pair import PairAgreement, compare
from review.statistics.agreement.statistic import consensus
from review.statistics.agreement.variance import Observation, Source, VarianceSplit, variance_split
from review.statistics.precision import Advice, Spend, what_next


@dataclass(frozen=True, slots=True)
class VariationMeasure:
    """One metric's variances in squared units of its ``scale``, unweighted, and what to spend next on. ``judge`` is the
    scorer whose part is told, empty where no judge scored the metric."""

    metric: str
    title: Bilingual
    scale: Scale
    judge: str
    split: VarianceSplit
    advice: Advice

    @property
    def shares(self) -> dict[Source, float]:
        """Each known source's share of the sum of the known ones; empty where nothing varies."""
        total = sum(self.split.variances.values())
        return {source: value / total for source, value in self.split.variances.items()} if total > 0 else {}

    @property
    def untold(self) -> tuple[Spend, ...]:
        """What advice had to leave out, because its source cannot be told from the others."""
        return tuple(spend for spend, sources in SOURCES.items() if any(one in self.split.missing for one in sources))

    def to_dict(self) -> dict[str, Any]:
        """``{"variance": {source: value}, "share", "missing": {source: what it needs}, "design", "next"}``."""
        design, first = self.split.design, self.advice.first
        return {
            "title": {"en": self.title.en, "ko": self.title.ko},
            "scale": str(self.scale),
            "judge": self.judge,
            "variance": {str(source): value for source, value in self.split.variances.items()},
            "share": {str(source): value for source, value in self.shares.items()},
            "missing": {str(source): str(why) for source, why in self.split.missing.items()},
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
                "untold": [str(spend) for spend in self.untold],
            },
        }


SOURCES: Mapping[Spend, tuple[Source, ...]] = {
    Spend.QUESTIONS: (Source.ANSWERS,),
    Spend.REVIEWERS: (Source.REVIEWERS,),
    Spend.RATINGS: (Source.JUDGE, Source.TASTE),
    Spend.REPEATS: (Source.NOISE,),
}


def variation_from(said: Said) -> tuple[VariationMeasure, ...]:
    """The split of every metric with numbers that anybody rated blind, by name; no query, no resampling.

    Overlap tells reviewers from answers, hidden repeats taste from the rest, repeated judgements the judge's noise.
    """
    repeats = _hidden_repeats(said.ratings, {row.pk for rows in said.blind.values() for row in rows})
    found = []
    for pk, of_answers in sorted(said.blind_by_metric.items(), key=lambda one: said.names[one[0]]):
        metric = said.metrics[pk]
        if not metric.read_scale().labels:
            rows = [row for several in of_answers.values() for row in several]
            found.append(_measure(said, metric, [*rows, *(row for row in repeats if row.metric_id == pk)]))
    return tuple(found)


def _measure(said: Said, metric: MetricDefinition, rows: Sequence[ExpertRating]) -> VariationMeasure:
    judge = next((one for one in said.scorers if one.primary and _judges(one, metric)), None)
    observed = [Observation(row.answer_id, row.rater, row.value) for row in rows if row.value is not None]
    split = variance_split(observed, _scores(judge, metric) if judge else None)
    author = judge.author if judge else ""
    return VariationMeasure(
        said.names[metric.pk], title_of(metric), metric.read_scale(), author, split, what_next(split)
    )


def _judges(scorer: Scorer, metric: MetricDefinition) -> bool:
    return scorer.author != RULES and metric.pk in scorer.said


def _scores(judge: Scorer, metric: MetricDefinition) -> dict[Any, Sequence[float]]:
    """Answer -> the values of the judge's repeats."""
    said = judge.said[metric.pk]
    return {answer: one.each or (one.value,) for answer, one in said.items() if one.value is not None}


def _hidden_repeats(rows: Iterable[ExpertRating], firsts: Collection[int]) -> list[ExpertRating]:
    """Blind words on later occasions, the last one of each occasion; ``firsts`` are those that count as first ones."""
    last: dict[tuple[Key, str, int], ExpertRating] = {}
    again = (row for row in rows if row.occasion != FIRST_OCCASION and row.phase == "initial")
    for row in sorted(again, key=lambda one: one.pk):
        last[row.key, row.rater, row.assignment_id] = row
    return [row for row in last.values() if row.blind and not row.cannot_judge and row.pk not in firsts]


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
    rows = read(readable(Rating.objects.filter(assignment__item__queue=queue, phase="initial", blind=True)))
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
