"""Differences of judge values and of ratings on changed questions, by part of the score."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from django.db.models import Q

from evaluation.core.metric_specs import MetricKind
from evaluation.models import MetricDefinition
from evaluation.profiles.arithmetic import unit_scale
from evaluation.profiles.spec import OverallUnit, ProfileSpec
from review.evidence.answers import RunAnswer
from review.evidence.experts import ExpertRating, agreement_ratings
from review.models import Assignment, Draw
from review.releases.changes import AnsweredQuestion
from review.reports.inputs import ReportInputs, applies
from review.reports.scores import SideScore, column
from review.statistics.correction.frame import Component, ReviewState, SamplingFrame
from review.statistics.release_difference import PairedPart
from review.statistics.sampling.draw import CERTAIN
from review.statistics.sampling.member import NO_INCLUSION, Inclusion

# Value on the metric's scale -> contribution to the score.
Contribution = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class PairDraw:
    """Newest draw among the changed questions of two runs.

    ``members`` holds the inclusion of each answer, ``unanswered`` the answers that a reviewer skipped or flagged in its
    queue. It is the ``number``-th of these runs, of which the first planned ``looks``."""

    queue_id: int
    number: int
    looks: int
    members: Mapping[int, Inclusion]
    unanswered: frozenset[int]


def newest_pair_draw(current: ReportInputs, baseline: ReportInputs) -> PairDraw | None:
    """Newest draw among the changed answers of these answer sets. Three queries, or one."""
    draws = Draw.objects.filter(
        run__answer_set=current.run.answer_set_id, baseline__answer_set=baseline.run.answer_set_id
    )
    if not (earlier := list(draws.order_by("pk"))) or (queue_id := earlier[-1].queue_id) is None:
        return None
    draw = earlier[-1]
    rows = draw.frame.values_list("answer_id", "probability", "stratum", "sampled")
    silent = Assignment.objects.filter(
        Q(state=Assignment.State.SKIPPED) | Q(state=Assignment.State.FLAGGED), queue=queue_id
    )
    return PairDraw(
        queue_id,
        len(earlier),
        int(earlier[0].params["looks"]),
        {answer_id: Inclusion(probability, stratum, sampled) for answer_id, probability, stratum, sampled in rows},
        frozenset(silent.values_list("item__answer_id", flat=True)),
    )


@dataclass(frozen=True, slots=True)
class Release:
    """One of the two compared runs, scored under the profile of the comparison."""

    basis: ReportInputs
    score: SideScore


class PairLabels:
    """Ratings of changed answers that count for the difference.

    Questions of the newest draw count with the ratings of its queue, because reviewers drift; all others only if both
    answers have standing ratings by the same reviewers (certain)."""

    def __init__(self, new: Release, old: Release, draw: PairDraw | None) -> None:
        self._draw = draw
        self._standing: dict[tuple[int, int], Sequence[ExpertRating]] = {}
        self._in_queue: dict[tuple[int, int], Sequence[ExpertRating]] = {}
        self._served: set[tuple[int, int]] = set()
        for release in (new, old):
            evidence = release.basis.evidence
            self._standing |= {key: carried.blind for key, carried in evidence.carried.items()}
            self._standing |= evidence.blind
            queue_rows = [row for row in evidence.ratings if draw and row.queue_id == draw.queue_id]
            self._in_queue |= agreement_ratings(queue_rows)
            self._served |= {row.key for row in queue_rows}
        by_answer = (*self._standing.items(), *self._in_queue.items())
        self._rated = {answer for (answer, _metric), rows in by_answer if rows}

    def inclusion(self, question: AnsweredQuestion) -> Inclusion:
        """Inclusion of the question in the newest draw."""
        members = self._draw.members if self._draw else {}
        return next(
            (members[answer.answer_id] for answer in question.answers if answer.answer_id in members), NO_INCLUSION
        )

    def is_certain(self, question: AnsweredQuestion) -> bool:
        """Return whether standing ratings count: the question was rated before the newest draw, or there is none."""
        return self.inclusion(question).stratum in {CERTAIN, NO_INCLUSION.stratum}

    def values(
        self, question: AnsweredQuestion, metric_id: int, answers: Sequence[RunAnswer]
    ) -> list[dict[int, float]]:
        """Values by answer, one dictionary for each reviewer who rated all of the answers."""
        ratings = self._standing if self.is_certain(question) else self._in_queue
        by_rater: dict[str, dict[int, float]] = {}
        for answer in answers:
            for row in ratings.get((answer.answer_id, metric_id), ()):
                if row.value is not None:
                    by_rater.setdefault(row.rater, {})[answer.answer_id] = row.value
        return [values for values in by_rater.values() if len(values) == len(answers)]

    def is_unanswered(self, question: AnsweredQuestion, metric_id: int, answers: Sequence[RunAnswer]) -> bool:
        """Return whether a sampled question was served and lacks a usable pair of ratings."""
        keys = [answer.answer_id for answer in answers]
        skipped = self._draw is not None and not self._draw.unanswered.isdisjoint(keys)
        unusable = any((key, metric_id) in self._served and (key, metric_id) not in self._in_queue for key in keys)
        return skipped or unusable or all((key, metric_id) in self._served for key in keys)

    def rated_answers(self, question: AnsweredQuestion) -> int:
        """Number of the question's changed answers that anybody rated blind, equal answers of other runs included."""
        return sum(answer.answer_id in self._rated for answer in question.answers)


def is_exact(metric: MetricDefinition) -> bool:
    """Return whether the metric is exact by definition, so that experts cannot correct it."""
    return metric.kind in {MetricKind.RULE, MetricKind.EMBEDDING}


class FrameRow(NamedTuple):
    """A changed question in the frame of a part."""

    judge: float
    rating: float
    state: ReviewState
    inclusion: Inclusion
    in_prompt: bool


class PartBuilder:
    """Builds the parts of the difference under one profile."""

    def __init__(self, profile: ProfileSpec, new: Release, old: Release, labels: PairLabels) -> None:
        self._profile = profile
        self._releases = (old, new)
        self._labels = labels
        self._units: dict[int, tuple[float, float]] = {}
        self._positions = [
            {key: position for position, key in enumerate(release.basis.evidence.answers)} for release in self._releases
        ]

    def part(self, metric: MetricDefinition, weight: float, questions: Sequence[AnsweredQuestion]) -> PairedPart | None:
        """Build the part of a metric; ``None`` if it applies to no changed question.

        In a run-mean profile it compares the questions to whose answers it applies in both runs."""
        applicable = [
            question
            for question in questions
            if all(
                self._contribution(side, metric, answer) is not None
                for side, answers in enumerate((question.old, question.new))
                for answer in answers
            )
        ]
        changed = [question for question in applicable if question.changed]
        width = self._width(metric)
        if not changed or not width:
            return None
        exact = is_exact(metric)
        frame = self._frame(metric, changed, exact=exact)
        component = Component(metric.name, frame, -width, width, weight=weight, judged=not exact)
        return PairedPart(component, len(applicable))

    def _frame(self, metric: MetricDefinition, changed: Sequence[AnsweredQuestion], *, exact: bool) -> SamplingFrame:
        scored = [release.basis.evidence.scored.get(metric.pk, {}) for release in self._releases]
        judged = {
            key: value.value for by_answer in scored for key, value in by_answer.items() if value.value is not None
        }
        built = {
            key
            for release in self._releases
            for key, metric_id in release.basis.evidence.prompt_labels
            if metric_id == metric.pk
        }
        rows = [self._row(metric, question, judged, built, exact=exact) for question in changed]
        return _frame_of([question.question_id for question in changed], rows)

    def _row(
        self,
        metric: MetricDefinition,
        question: AnsweredQuestion,
        judged: Mapping[int, float],
        built: Collection[int],
        *,
        exact: bool,
    ) -> FrameRow:
        rated = [
            answer
            for side, answers in enumerate((question.old, question.new))
            for answer in answers
            if not answer.failed and self._takes_value(side, metric, answer)
        ]
        keys = {answer.answer_id for answer in rated}
        judge = self._difference(metric, question, judged) if keys <= judged.keys() else math.nan
        if not rated:
            # The difference depends on nobody's opinion.
            return FrameRow(judge, judge, ReviewState.RATED, Inclusion(1.0, CERTAIN, True), False)
        values = [] if exact else self._labels.values(question, metric.pk, rated)
        inclusion = self._labels.inclusion(question)
        if exact or (self._labels.is_certain(question) and not inclusion.sampled):
            inclusion = Inclusion(1.0, CERTAIN, True) if values else NO_INCLUSION
        state = self._state(inclusion, bool(values), question, metric.pk, rated)
        if state is not ReviewState.RATED:
            return FrameRow(judge, math.nan, state, inclusion, False)
        rating = math.fsum(self._difference(metric, question, own) for own in values) / len(values)
        return FrameRow(judge, rating, state, inclusion, not keys.isdisjoint(built))

    def _state(
        self,
        inclusion: Inclusion,
        is_rated: bool,
        question: AnsweredQuestion,
        metric_id: int,
        rated: Sequence[RunAnswer],
    ) -> ReviewState:
        if not inclusion.sampled:
            return ReviewState.NOT_SAMPLED
        if is_rated:
            return ReviewState.RATED
        if inclusion.stratum == CERTAIN or self._labels.is_unanswered(question, metric_id, rated):
            return ReviewState.NO_RESPONSE
        return ReviewState.NOT_REACHED

    def _difference(self, metric: MetricDefinition, question: AnsweredQuestion, values: Mapping[int, float]) -> float:
        """Contribution of the question to the score, new minus old."""
        totals = []
        for side, answers in enumerate((question.old, question.new)):
            contributions = []
            for answer in answers:
                contribute = self._contribution(side, metric, answer)
                # A failed answer counts as 0 on the metric's scale, or in the answer's score.
                contributions.append(contribute(values.get(answer.answer_id, 0.0)) if contribute else 0.0)
            totals.append(math.fsum(contributions) / question.samples[side])
        return totals[1] - totals[0]

    def _takes_value(self, side: int, metric: MetricDefinition, answer: RunAnswer) -> bool:
        """Return whether the answer's contribution depends on its value of the metric."""
        return self._profile.unit is not OverallUnit.PER_ANSWER or self._answer_weight(side, metric, answer) > 0

    def _contribution(self, side: int, metric: MetricDefinition, answer: RunAnswer) -> Contribution | None:
        """Contribution of an answer by its value; ``None`` if the metric does not apply to it in a run-mean profile."""
        zero, width = self._unit(metric)
        if self._profile.unit is OverallUnit.PER_ANSWER:
            weight = 0.0 if answer.failed else self._answer_weight(side, metric, answer)
            return lambda value: weight * (value - zero) / width
        judged = self._releases[side].basis.evidence.scored.get(metric.pk, {}).get(answer.answer_id)
        if not answer.failed and not applies(answer, judged):
            return None
        return lambda value: (value - zero) / width

    def _answer_weight(self, side: int, metric: MetricDefinition, answer: RunAnswer) -> float:
        """Weight of the metric in the answer's score; 0 if it adds nothing."""
        score = self._releases[side].score.answers[self._positions[side][answer.answer_id]]
        return 0.0 if metric.name in score.zeroed else score.weights_used.get(metric.name, 0.0)

    def _unit(self, metric: MetricDefinition) -> tuple[float, float]:
        """Offset and divisor of the metric on the profile's unit scale."""
        if metric.pk not in self._units:
            self._units[metric.pk] = self._unit_of(metric)
        return self._units[metric.pk]

    def _unit_of(self, metric: MetricDefinition) -> tuple[float, float]:
        scale = metric.read_scale()
        part = next((part for part in self._profile.parts if part.metric == metric.name), None)
        return (scale.low, scale.width) if part is None else unit_scale(self._profile, part, scale.low, scale.high)

    def _width(self, metric: MetricDefinition) -> float:
        """Largest contribution of a question."""
        scale, (_, width) = metric.read_scale(), self._unit(metric)
        if self._profile.unit is not OverallUnit.PER_ANSWER:
            return scale.width / width
        weights = (
            score.weights_used.get(metric.name, 0.0) for release in self._releases for score in release.score.answers
        )
        return max(weights) * max(abs(end - self._unit(metric)[0]) for end in (scale.low, scale.high)) / width


def _frame_of(question_ids: Sequence[str], rows: Sequence[FrameRow]) -> SamplingFrame:
    strata = list(dict.fromkeys(row.inclusion.stratum for row in rows))
    positions = np.arange(len(question_ids))
    return SamplingFrame(
        key=positions,
        names=list(question_ids),
        judge=column(row.judge for row in rows),
        rating=column(row.rating for row in rows),
        state=np.array([row.state for row in rows], dtype=np.int64),
        probability=column(row.inclusion.probability for row in rows),
        stratum=np.array([strata.index(row.inclusion.stratum) for row in rows], dtype=np.int64),
        strata=strata,
        group=positions,
        groups=list(question_ids),
        in_prompt=np.array([row.in_prompt for row in rows], dtype=np.bool_),
    )
