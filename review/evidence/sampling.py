"""Sampling probabilities of ratings, and the weighted blind first ratings for agreement."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import pairwise
from typing import Any

from django.utils import timezone

from evaluation.core.samples import Status
from evaluation.core.scales import Scale, ScaleKind
from evaluation.models import MetricDefinition
from review.evidence.answers import RunAnswer
from review.evidence.experts import ExpertRating
from review.evidence.scorers import JudgedValue
from review.models import Assignment, FrameMember, QueueMetric, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.pair import ConstantGuess, best_constant_guess
from review.statistics.agreement.statistic import Rating, consensus, period_names
from review.statistics.correction.rounds import RoundSize, round_weights
from review.statistics.sampling.member import NO_INCLUSION, Inclusion, Inclusions, union_probability, unite_draws
from review.statistics.sampling.rotation import STRATUM_JOINER

IMPORTED = "import"
# Minimum per stratum, as for a corrected score.
MIN_SERVED = 2


@dataclass(frozen=True, slots=True)
class QueueDraw:
    """Inclusion of every answer in a draw of a queue, for one metric or (``None``) for all of the queue.

    ``looks`` and ``round_number`` are those of the queue: the planned number of rounds, and the round of its plan."""

    queue_id: int
    metric_id: int | None
    planned_after_results: bool
    members: dict[int, Inclusion]
    looks: int = 1
    round_number: int = 1

    @property
    def takes_all(self) -> bool:
        """Return whether the draw takes every answer of its frame."""
        return all(_is_probability_sampled(inclusion) for inclusion in self.members.values())


@dataclass(frozen=True, slots=True)
class SampleRound:
    """Round of the review of a metric: the inclusion of every answer in any frame, with answers of earlier rounds as
    certain. ``planned``: its size was fixed before the ratings of earlier rounds were read."""

    inclusions: Mapping[int, Inclusion]
    planned: bool = True


@dataclass(frozen=True, slots=True)
class SampleRounds:
    """Rounds of the review of a metric, in order, and the planned number of ``looks`` that share the error of a
    verdict."""

    rounds: tuple[SampleRound, ...]
    looks: int = 1


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples behind the ratings of a run's answers.

    ``unanswered`` are answers that were served in a queue and skipped or flagged, by queue. ``withheld`` are ratings
    without values that the reader may not see. Their answers count as served, and as neither rated nor unanswered."""

    draws: Sequence[QueueDraw]
    queues_by_metric: Mapping[int, frozenset[int]]
    unanswered: Mapping[int, frozenset[int]]
    answers: Sequence[int]
    withheld: Sequence[ExpertRating] = ()
    _rounds: dict[int, SampleRounds] = field(default_factory=dict, compare=False)

    def inclusions(self, metric_id: int, ratings: Iterable[ExpertRating]) -> Mapping[int, Inclusion]:
        """Inclusion of every answer in any frame of the last round, for the metric."""
        return self.rounds(metric_id, ratings).rounds[-1].inclusions

    def rounds(self, metric_id: int, ratings: Iterable[ExpertRating]) -> SampleRounds:
        """Rounds that the ratings of the metric belong to, at least one.

        In ``ratings`` all imported rows count for imported samples, also those that could not judge."""
        if metric_id not in self._rounds:
            all_ratings = (*ratings, *self.withheld)
            self._rounds[metric_id] = self._load_rounds(
                metric_id, [row for row in all_ratings if row.metric_id == metric_id]
            )
        return self._rounds[metric_id]

    def _load_rounds(self, metric_id: int, rows: Sequence[ExpertRating]) -> SampleRounds:
        draws = self._metric_draws(metric_id)
        imported = _imported_draws([row for row in rows if row.imported], self.answers, is_only_source=not draws)
        looks = max((draw.looks for draw in draws if not draw.planned_after_results), default=1)
        rounds = [
            SampleRound(
                _united_inclusions([*(draw.members for draw in batch.draws), *imported]), batch.is_planned(looks)
            )
            for batch in _begun_batches(draws, self._served_answers(metric_id, rows))
        ]
        return SampleRounds(tuple(rounds) or (SampleRound(_united_inclusions(imported)),), looks)

    def with_queue(self, draws: Sequence[QueueDraw], metric_ids: Iterable[int]) -> Samples:
        """Copy with the draws of one more queue that asks these metrics."""
        queue_ids = frozenset(draw.queue_id for draw in draws)
        queues_by_metric = dict(self.queues_by_metric)
        for metric_id in metric_ids:
            queues_by_metric[metric_id] = queues_by_metric.get(metric_id, frozenset()) | queue_ids
        return Samples([*self.draws, *draws], queues_by_metric, self.unanswered, self.answers, self.withheld)

    @property
    def drawn_answers(self) -> frozenset[int]:
        """Answers taken by any draw with probabilities."""
        return frozenset(
            answer
            for draw in self.draws
            for answer, inclusion in draw.members.items()
            if _is_probability_sampled(inclusion)
        )

    def unserved_answers(self, metric_id: int, ratings: Iterable[ExpertRating]) -> set[int]:
        """Answers that a draw for the metric took and that were not served yet."""
        drawn_answers = {
            key
            for draw in self._metric_draws(metric_id)
            for key, inclusion in draw.members.items()
            if _is_probability_sampled(inclusion)
        }
        return drawn_answers - self._served_answers(metric_id, [row for row in ratings if row.metric_id == metric_id])

    def _metric_draws(self, metric_id: int) -> list[QueueDraw]:
        queues = self.queues_by_metric.get(metric_id, frozenset())
        return [draw for draw in self.draws if draw.queue_id in queues and draw.metric_id in {None, metric_id}]

    def _served_answers(self, metric_id: int, rows: Iterable[ExpertRating]) -> frozenset[int]:
        withheld = (row for row in self.withheld if row.metric_id == metric_id)
        return self.unanswered_for(metric_id) | {row.answer_id for row in (*rows, *withheld)}

    def unanswered_for(self, metric_id: int) -> frozenset[int]:
        """Answers that a reviewer was served for the metric and did not rate."""
        queues = self.queues_by_metric.get(metric_id, frozenset())
        unanswered = frozenset[int]().union(*(self.unanswered.get(queue, frozenset()) for queue in queues))
        return unanswered.difference(row.answer_id for row in self.withheld)


def load_samples(answer_set_id: int, answers: Sequence[int], withheld: Sequence[ExpertRating] = ()) -> Samples:
    """Load the samples over the answers of a set. Three queries.

    Only blind queues count, because assisted ratings are no sample of blind opinions. Draws of changed questions are
    left out: they are samples of differences."""
    blind = ReviewQueue.Mode.BLIND
    frame_members = FrameMember.objects.filter(
        answer__answer_set_id=answer_set_id, draw__queue__mode=blind, draw__baseline=None
    )
    draws: dict[int, QueueDraw] = {}
    # Tens of thousands of answers have few different inclusions.
    inclusion = cache(Inclusion)
    of_draw = ("draw__queue_id", "draw__metric_id", "draw__planned_after_looking")
    of_queue = ("draw__queue__looks", "draw__queue__round_number")
    columns = ("draw_id", *of_draw, *of_queue, "answer_id", "probability", "stratum", "sampled")
    for row in frame_members.order_by("draw_id").values_list(*columns).iterator():
        draw_id, queue_id, metric_id, planned_after_results, looks, round_number, answer_id, *of_answer = row
        if draw_id not in draws:
            draws[draw_id] = QueueDraw(queue_id, metric_id, planned_after_results, {}, looks, round_number)
        draws[draw_id].members[answer_id] = inclusion(*of_answer)
    queues = {draw.queue_id for draw in draws.values()}
    return Samples(
        list(draws.values()), _queues_by_metric(queues), _unanswered_by_queue(queues), list(answers), withheld
    )


def _queues_by_metric(queues: Collection[int]) -> dict[int, frozenset[int]]:
    queues_by_metric: dict[int, set[int]] = {}
    for metric_id, queue_id in QueueMetric.objects.filter(queue_id__in=queues).values_list("metric_id", "queue_id"):
        queues_by_metric.setdefault(metric_id, set()).add(queue_id)
    return {metric_id: frozenset(ids) for metric_id, ids in queues_by_metric.items()}


def _unanswered_by_queue(queues: Collection[int]) -> dict[int, frozenset[int]]:
    states = [Assignment.State.SKIPPED, Assignment.State.FLAGGED]
    rows = Assignment.objects.filter(item__queue_id__in=queues, item__occasion=FIRST_OCCASION, state__in=states)
    answers_by_queue: dict[int, set[int]] = {}
    for queue_id, answer_id in rows.values_list("item__queue_id", "item__answer_id"):
        answers_by_queue.setdefault(queue_id, set()).add(answer_id)
    return {queue_id: frozenset(ids) for queue_id, ids in answers_by_queue.items()}


def _is_probability_sampled(inclusion: Inclusion) -> bool:
    """Return whether a draw with probabilities took the answer."""
    return inclusion.sampled and inclusion.probability is not None


@dataclass(frozen=True, slots=True)
class _Batch:
    """Draws of a round. ``number`` counts the rounds of a metric from 1."""

    number: int
    draws: Sequence[QueueDraw]

    def is_planned(self, looks: int) -> bool:
        """Return whether the size of the round was fixed before earlier ratings were read.

        A round of all remaining answers leaves no choice of size. It counts as planned while looks remain."""
        later_draws = [draw for draw in self.draws if draw.planned_after_results]
        return all(draw.round_number > 1 or (draw.takes_all and self.number <= looks) for draw in later_draws)


def _begun_batches(draws: Sequence[QueueDraw], served: Collection[int]) -> list[_Batch]:
    """Rounds that have ratings in every stratum, else the last one.

    A draw planned after ratings were seen begins a round. Its weights are never pooled with those of the draws before
    it. A round counts only once every stratum has served answers: until then its few ratings would stand for all
    others. This depends on the number of answers ``served``, never on their ratings."""
    starts = [position for position, draw in enumerate(draws) if draw.planned_after_results]
    bounds = pairwise([0, *starts, len(draws)])
    batches = [draws[start:end] for start, end in bounds if start < end]
    numbered = [_Batch(number, batch) for number, batch in enumerate(batches, 1)]
    return [batch for batch in numbered if _covers_every_stratum(batch.draws, served)] or numbered[-1:]


def _united_inclusions(draws: Sequence[Inclusions]) -> dict[int, Inclusion]:
    """Inclusion of every answer in any frame of independent draws."""
    united_draws = _unite_by_frame(draws)
    joint_inclusion = cache(_joint_inclusion)
    return {
        answer: joint_inclusion(
            tuple([draw_members[answer] for draw_members in united_draws if answer in draw_members])
        )
        for answer in _covered_answers(united_draws)
    }


def _covers_every_stratum(draws: Sequence[QueueDraw], served: Collection[int]) -> bool:
    """Return whether two answers of every stratum, or all that were drawn of it, were served.

    Draws over the same answers count as one."""
    drawn_counts: Counter[tuple[int, str]] = Counter()
    served_counts: Counter[tuple[int, str]] = Counter()
    for frame_number, members in enumerate(_unite_by_frame([draw.members for draw in draws])):
        for answer, inclusion in members.items():
            if _is_probability_sampled(inclusion):
                drawn_counts[frame_number, inclusion.stratum] += 1
                served_counts[frame_number, inclusion.stratum] += answer in served
    return bool(drawn_counts) and all(
        served_counts[stratum] >= min(MIN_SERVED, count) for stratum, count in drawn_counts.items()
    )


def _imported_draws(rows: Sequence[ExpertRating], answers: Sequence[int], *, is_only_source: bool) -> list[Inclusions]:
    """Imported ratings as draws: ``all``, ``uniform`` (n of N), or each row's own probability.

    ``is_only_source``: there are no draws in Concord."""
    draws: list[Inclusions] = []
    if any(row.sampling == "all" for row in rows):
        draws.append(dict.fromkeys(answers, Inclusion(1.0, IMPORTED, True)))
    uniform_answers = {row.answer_id for row in rows if row.sampling == "uniform"}.intersection(answers)
    if uniform_answers:
        share = len(uniform_answers) / len(answers)
        taken_inclusion, other_inclusion = Inclusion(share, IMPORTED, True), Inclusion(share, IMPORTED, False)
        draws.append({answer: taken_inclusion if answer in uniform_answers else other_inclusion for answer in answers})
    weighted_inclusions = {
        row.answer_id: Inclusion(row.probability, IMPORTED, True)
        for row in rows
        if row.probability is not None and row.sampling not in {"all", "uniform"}
    }
    if weighted_inclusions and is_only_source and not draws and _can_represent(weighted_inclusions, len(answers)):
        other_weighted = Inclusion(len(weighted_inclusions) / len(answers), IMPORTED, False)
        weighted_inclusions = {answer: weighted_inclusions.get(answer, other_weighted) for answer in answers}
    return [*draws, weighted_inclusions] if weighted_inclusions else draws


MAX_DEVIATIONS = 4.0


def _can_represent(inclusions: Inclusions, size: int) -> bool:
    """Return whether a sample with known probabilities of its members only can represent all ``size`` answers.

    The sum of 1 / p estimates their number (D. G. Horvitz, D. J. Thompson, 1952, JASA 47). It must lie within four
    standard deviations of it, assuming independent draws. The probabilities of the other answers are not needed."""
    probabilities = [inclusion.probability for inclusion in inclusions.values() if inclusion.probability]
    deviation = math.sqrt(math.fsum((1.0 - p) / p**2 for p in probabilities))
    return abs(math.fsum(1.0 / p for p in probabilities) - size) <= MAX_DEVIATIONS * deviation + size * EQUAL_TOLERANCE


def _unite_by_frame(draws: Sequence[Inclusions]) -> list[Inclusions]:
    """Unite draws over the same answers."""
    draws_by_frame: dict[frozenset[int], list[Inclusions]] = {}
    for draw in draws:
        draws_by_frame.setdefault(frozenset(draw), []).append(draw)
    return [
        same_frame[0] if len(same_frame) == 1 else unite_draws(same_frame) for same_frame in draws_by_frame.values()
    ]


def _covered_answers(draws: Sequence[Inclusions]) -> list[int]:
    return list(dict.fromkeys(answer for draw in draws for answer in draw))


def _joint_inclusion(inclusions: Sequence[Inclusion]) -> Inclusion:
    """Joint inclusion of independent draws over different answers.

    It has the union probability and crossed strata, so that answers in the frames of only some draws stay separate.
    Hand-picking adds nothing."""
    known_inclusions = [inclusion for inclusion in inclusions if inclusion.probability is not None]
    if not known_inclusions:
        return NO_INCLUSION
    if len(inclusions) == 1:
        return known_inclusions[0]
    return Inclusion(
        probability=union_probability([known.probability for known in known_inclusions]),
        stratum=" & ".join(dict.fromkeys(known.stratum for known in known_inclusions)),
        sampled=any(known.sampled for known in known_inclusions),
    )


EQUAL_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True)
class Weighting:
    """Rated answers that are used together, with their weights; ``None`` if all are equal.

    ``sampling`` is ``weighted``, ``equal`` (one probability for all) or ``unknown``. ``left_out`` counts rated answers
    of unknown sampling, which are never mixed with a sample that has probabilities."""

    answers: tuple[int, ...]
    weights: tuple[float, ...] | None
    strata: tuple[str, ...]
    sampling: str
    left_out: int


def weight_answers(rated: Collection[int], samples: SampleRounds) -> Weighting:
    """Weights 1 / (probability x response rate of the stratum), averaged over the rounds as in a corrected score.

    The response rate is rated / sampled. It covers non-response and items that are not reached yet, whose order is
    random."""
    inclusions = samples.rounds[-1].inclusions
    usable = [answer for answer in rated if _usable(inclusions.get(answer, NO_INCLUSION))]
    if not usable:
        answers = tuple(rated)
        return Weighting(answers, None, ("",) * len(answers), "unknown", 0)
    weights_by_round = [_round_weights(usable, sample_round.inclusions) for sample_round in samples.rounds]
    sizes, seen_before = [], set[int]()
    for sample_round, weights_of_answers in zip(samples.rounds, weights_by_round, strict=True):
        sizes.append(RoundSize(len(weights_of_answers.keys() - seen_before), sample_round.planned))
        seen_before |= weights_of_answers.keys()
    shares = round_weights(len(inclusions), sizes, [bool(weights) for weights in weights_by_round])
    strata = tuple(
        STRATUM_JOINER.join(
            sample_round.inclusions.get(answer, NO_INCLUSION).stratum for sample_round in samples.rounds
        )
        for answer in usable
    )
    weights = tuple(
        math.fsum(
            share * weights_of_answers.get(answer, 0.0)
            for share, weights_of_answers in zip(shares, weights_by_round, strict=True)
        )
        for answer in usable
    )
    equal = max(weights) - min(weights) <= EQUAL_TOLERANCE * max(weights)
    return Weighting(
        tuple(usable), None if equal else weights, strata, "equal" if equal else "weighted", len(rated) - len(usable)
    )


def _round_weights(usable: Sequence[int], inclusions: Mapping[int, Inclusion]) -> dict[int, float]:
    """Weights of those of the rated answers that a round sampled."""
    sampled_counts = Counter(inclusion.stratum for inclusion in inclusions.values() if _usable(inclusion))
    rated = {answer: inclusions[answer] for answer in usable if _usable(inclusions.get(answer, NO_INCLUSION))}
    rated_counts = Counter(inclusion.stratum for inclusion in rated.values())
    return {
        answer: sampled_counts[inclusion.stratum] / ((inclusion.probability or 1.0) * rated_counts[inclusion.stratum])
        for answer, inclusion in rated.items()
    }


def _usable(inclusion: Inclusion) -> bool:
    return inclusion.sampled and inclusion.probability is not None


# Reason code of a judge's score off the metric's scale.
OFF_SCALE = "scale"


@dataclass(frozen=True)
class RatedMetric:
    """Ratings of one metric for a comparison. ``ratings`` and ``answers`` may hold more answers than ``weighting``
    uses."""

    metric: MetricDefinition
    name: str
    scale: Scale
    ratings: Mapping[int, list[ExpertRating]]
    weighting: Weighting
    answers: Mapping[int, RunAnswer]

    @cached_property
    def means(self) -> list[float | str | None]:
        """Experts' mean of each answer (classes: majority, ``None`` if tied)."""
        return [
            consensus(
                [value for rating in self.ratings[answer] if (value := rating.value_or_label) is not None], self.scale
            )
            for answer in self.weighting.answers
        ]

    @cached_property
    def groups(self) -> list[str]:
        return [self.answers[answer].group for answer in self.weighting.answers]

    @cached_property
    def single_ratings(self) -> list[Rating]:
        """Each expert's value separately."""
        return [
            Rating(answer, rating.rater, value)
            for answer in self.weighting.answers
            for rating in self.ratings[answer]
            if (value := rating.value_or_label) is not None
        ]

    def scorer_values(self, scores: Mapping[int, Mapping[int, JudgedValue]]) -> list[float | str | None]:
        """Scorer's value of each answer, by :func:`comparable_value`; ``scores`` is by metric and answer."""
        of_metric, to_comparable = scores.get(self.metric.pk, {}), cache(partial(comparable_value, scale=self.scale))
        return [to_comparable(of_metric.get(answer)) for answer in self.weighting.answers]

    def value_by_answer(self, scores: Mapping[int, Mapping[int, JudgedValue]]) -> dict[Any, float | str]:
        """Scorer's value by answer, for answers that have one."""
        of_metric = scores.get(self.metric.pk, {})
        return {
            answer: value
            for answer in self.weighting.answers
            if (judged := of_metric.get(answer)) is not None and (value := judged.value_or_label) is not None
        }

    def resampling(self, settings: Resampling | None) -> Resampling | None:
        """Resampling settings with the groups and strata of these answers."""
        if settings is None:
            return None
        return replace(settings, groups=self.groups, strata=self.weighting.strata)

    @cached_property
    def guess(self) -> ConstantGuess | None:
        """Best constant guess for these answers."""
        return best_constant_guess(self.means, self.scale, self.weighting.weights)

    def without(self, excluded: AbstractSet[int]) -> RatedMetric:
        """Copy without some answers; itself if none of them is used."""
        used = self.weighting.answers
        return (
            self
            if excluded.isdisjoint(used)
            else self._restricted([position for position, answer in enumerate(used) if answer not in excluded])
        )

    def split_by_category(self) -> dict[str, RatedMetric]:
        return self._split_by([self.answers[answer].category for answer in self.weighting.answers])

    def split_by_period(self) -> dict[str, RatedMetric]:
        """Split by the day, week or month of each answer's newest rating, in the site's time zone."""
        newest = [max(rating.at for rating in self.ratings[answer]) for answer in self.weighting.answers]
        return self._split_by(period_names([timezone.localtime(rated_at).date() for rated_at in newest]))

    def _split_by(self, names: list[str]) -> dict[str, RatedMetric]:
        positions_by_name: dict[str, list[int]] = {}
        for position, name in enumerate(names):
            positions_by_name.setdefault(name, []).append(position)
        return {name: self._restricted(positions_by_name[name]) for name in sorted(positions_by_name)}

    def _restricted(self, positions: Collection[int]) -> RatedMetric:
        weighting = self.weighting
        restricted = replace(
            weighting,
            answers=tuple(weighting.answers[position] for position in positions),
            weights=None if weighting.weights is None else tuple(weighting.weights[position] for position in positions),
            strata=tuple(weighting.strata[position] for position in positions),
        )
        return replace(self, weighting=restricted)


def comparable_value(judged: JudgedValue | None, scale: Scale) -> float | str | None:
    """Judge's value for a comparison.

    A value off the scale stays off the scale, so that it is counted as such. Everything else without a value is
    ``None``."""
    if judged is None:
        return None
    if judged.value is not None:
        return judged.value
    if judged.status is Status.FAILED and judged.reason.partition(":")[0] == OFF_SCALE:
        return "" if scale.kind is ScaleKind.CLASS else math.inf
    return judged.value_or_label
