"""Inputs of all figures of a run: evidence, judge and reviewed sides, their scores, and labels for correction.

Correction estimates blind expert ratings of all answers (``docs/correction.md``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any

import numpy as np

from evaluation.core.metric_specs import MetricKind
from evaluation.core.samples import Status
from evaluation.core.scales import Scale, ScaleKind
from evaluation.models import MetricDefinition, Run
from evaluation.profiles.arithmetic import unit_scale
from evaluation.profiles.spec import FailureRule, OverallUnit, ProfileSpec
from review.decisions.assumptions import Acceptance, current_acceptance
from review.evidence.answers import RunAnswer
from review.evidence.effective import RunEvidence, effective_values_from, load_evidence, run_samples
from review.evidence.experts import ExpertRating
from review.evidence.sampling import SampleRound, SampleRounds, Samples
from review.evidence.scorers import JudgedValue
from review.reports.figure import Figure, Withheld, add_constant, to_figure, withheld
from review.reports.provenance import with_relations
from review.reports.scores import (
    Sides,
    SideScore,
    column,
    score_side,
    sides_of,
)
from review.statistics.agreement.statistic import Indices, consensus, factorize
from review.statistics.correction.any_time import RatingStream, any_time_interval
from review.statistics.correction.corrected import MAX_NON_RESPONSE, corrected_component, corrected_overall
from review.statistics.correction.frame import Component, EarlierRound, ReviewState, SamplingFrame
from review.statistics.correction.outcome import Target, WithheldReason
from review.statistics.sampling.draw import STANDING
from review.statistics.sampling.member import NO_INCLUSION, Inclusion


@dataclass(frozen=True, slots=True)
class MetricLabels:
    """Blind first ratings of a metric (answer -> mean, by time of rating) and how answers were sampled, by round.

    ``silent`` answers were served but got no usable rating. ``carried`` answers have the rating of an equal answer.
    ``built`` answers were used to write the judge's prompt."""

    means: dict[int, float]
    samples: SampleRounds
    silent: frozenset[int]
    carried: frozenset[int] = frozenset()
    built: frozenset[int] = frozenset()

    @property
    def has_ratings(self) -> bool:
        return bool(self.means)

    def empty_frames(self, evidence: RunEvidence) -> list[SamplingFrame]:
        """Build the frame of each round over all answers of the run, without values.

        A sampled answer lacks a rating if nobody was served it yet, or if the reviewer gave no usable one (skipped,
        flagged, cannot judge, not blind)."""
        keys, (group, groups) = evidence.keys, evidence.groups
        silent = np.array([key in self.silent for key in keys], dtype=np.bool_)
        state = np.where(silent, ReviewState.NO_RESPONSE, ReviewState.NOT_REACHED)
        missing = np.full(len(keys), np.nan)
        in_prompt = np.array([key in self.built for key in keys], dtype=np.bool_)
        frames = []
        for sample_round in self.samples.rounds:
            places = [sample_round.inclusions.get(key, NO_INCLUSION) for key in keys]
            sampled = np.array([place.sampled for place in places], dtype=np.bool_)
            strata = [place.stratum for place in places]
            frames.append(
                SamplingFrame(
                    key=np.arange(len(keys)),
                    names=keys,
                    judge=missing,
                    rating=missing,
                    state=np.where(sampled, state, ReviewState.NOT_SAMPLED),
                    probability=column(place.probability for place in places),
                    stratum=factorize(strata),
                    strata=list(dict.fromkeys(strata)),
                    group=group,
                    groups=groups,
                    in_prompt=in_prompt,
                )
            )
        return frames


def labels_by_metric(evidence: RunEvidence, samples: Samples) -> dict[int, MetricLabels]:
    """Labels of every rated metric with numbers."""
    labels: dict[int, MetricLabels] = {}
    standing_metrics = {metric for _, metric in evidence.standing if metric in evidence.metrics}
    for pk in sorted(evidence.ratings_by_metric.keys() | standing_metrics):
        scale = evidence.metrics[pk].read_scale()
        if scale.labels:
            continue
        means: dict[int, float] = {}
        blind, rated = evidence.blind_by_metric.get(pk, {}), evidence.ratings_by_metric.get(pk, [])
        for answer_id, rows in sorted(blind.items(), key=lambda pair: min((row.at, row.pk) for row in pair[1])):
            means[answer_id] = _mean_rating(rows, scale)
        standing = {answer: equal.blind for (answer, metric), equal in evidence.standing.items() if metric == pk}
        rounds = _census(evidence, pk, means, _with_standing(evidence, pk, standing, samples.rounds(pk, rated)))
        silent = samples.unanswered_for(pk) | {row.answer_id for row in rated}
        silent -= means.keys()
        equal = {answer for answer, blind in standing.items() if blind and answer not in means}
        places, served = rounds.rounds[-1].inclusions, means.keys() | silent | evidence.sealed
        carried = _carried_labels(equal - silent, places, served)
        carried |= {answer for answer in equal if places.get(answer, NO_INCLUSION).stratum == STANDING}
        means |= {answer: _mean_rating(standing[answer], scale) for answer in sorted(carried)}
        silent -= carried
        built = frozenset(answer for answer, metric in evidence.prompt_labels if metric == pk)
        labels[pk] = MetricLabels(means, rounds, frozenset(silent), carried, built)
    return labels


def _mean_rating(rows: Sequence[ExpertRating], scale: Scale) -> float:
    return float(consensus([v for row in rows if (v := row.value) is not None], scale) or 0.0)


def _with_standing(evidence: RunEvidence, pk: int, standing: Collection[int], rounds: SampleRounds) -> SampleRounds:
    """Count the answers that had a standing rating when a round was drawn as taken with certainty: they represent only
    themselves. Without any sample, all answers that the metric applies to must have one."""
    if not standing:
        return rounds
    scored = evidence.scored.get(pk, {})
    frame = [key for key, answer in evidence.answers.items() if applies(answer, scored.get(key))]
    is_sampled = any(place.sampled for place in rounds.rounds[-1].inclusions.values())
    is_census = not is_sampled and all(answer in standing for answer in frame)
    certain = Inclusion(1.0, STANDING, True)
    with_standing = []
    for sample_round in rounds.rounds:
        marked = [answer for answer, place in sample_round.inclusions.items() if place.stratum == STANDING]
        inclusions = {**sample_round.inclusions, **dict.fromkeys(frame if is_census else marked, certain)}
        with_standing.append(dataclasses.replace(sample_round, inclusions=inclusions))
    return dataclasses.replace(rounds, rounds=tuple(with_standing))


def _carried_labels(equal: Collection[int], places: Mapping[int, Inclusion], served: Collection[int]) -> frozenset[int]:
    """Select answers whose ratings became known after the draw: sampled answers in fully served strata.

    In an unfinished stratum they would represent answers that, unlike them, are new."""
    sampled = {answer: place.stratum for answer, place in places.items() if place.sampled}
    waiting = {stratum for answer, stratum in sampled.items() if answer not in served and answer not in equal}
    return frozenset(answer for answer in equal if answer in sampled and sampled[answer] not in waiting)


def applies(answer: RunAnswer, judged: JudgedValue | None) -> bool:
    """Return whether an answer belongs to a metric's frame: the system gave it, and the metric applies to it, whether
    or not the judge failed on it."""
    return not answer.failed and judged is not None and judged.status is not Status.NOT_APPLICABLE


def _census(evidence: RunEvidence, pk: int, means: dict[int, float], rounds: SampleRounds) -> SampleRounds:
    """Treat the last round of a metric as a census if every applicable answer is rated, however answers were chosen."""
    scored = evidence.scored.get(pk, {}) if means else {}
    frame = [key for key, answer in evidence.answers.items() if applies(answer, scored.get(key))]
    rated = means.keys() | {row.answer_id for row in evidence.withheld if row.metric_id == pk}
    if not frame or not all(answer in rated for answer in frame):
        return rounds
    *earlier, last = rounds.rounds
    all_inclusions = {**last.inclusions, **dict.fromkeys(frame, Inclusion(1.0, "all", True))}
    return dataclasses.replace(rounds, rounds=(*earlier, dataclasses.replace(last, inclusions=all_inclusions)))


def _given_share(profile: ProfileSpec, given: Iterable[bool]) -> float:
    """Share of the answers that the system gave, if the profile counts the others as 0; else 1, since they are left
    out."""
    if profile.on_failure is not FailureRule.ZERO:
        return 1.0
    flags = list(given)
    return sum(flags) / len(flags) if flags else 0.0


# Subtrahend and divisor.
UnitTransform = tuple[float, float]
_IDENTITY: UnitTransform = 0.0, 1.0
_UNRATED = MetricLabels({}, SampleRounds((SampleRound({}),)), frozenset())


@dataclass(frozen=True, slots=True)
class Correction:
    """Labels of a run, ready to correct metrics and the overall score.

    ``acceptance`` concerns the assumption about unrated judged parts of the overall score. It does not apply to
    categories and comparisons. ``slopes`` are slopes of expert on judge that earlier ratings give, by metric."""

    evidence: RunEvidence
    labels: Mapping[int, MetricLabels]
    acceptance: Acceptance | None = None
    slopes: Mapping[int, float] = field(default_factory=dict)
    _unfilled: dict[int, list[SamplingFrame]] = field(default_factory=dict, compare=False)
    _frames: dict[tuple[int, UnitTransform], list[SamplingFrame]] = field(default_factory=dict, compare=False)

    @property
    def rated_blind(self) -> bool:
        return any(labels.has_ratings for labels in self.labels.values())

    def of_metric(
        self, metric: MetricDefinition, category: str | None = None, target: Target = Target.QUESTIONS_LIKE_THESE
    ) -> Figure:
        """Corrected mean of a metric, on its own scale, over the run or one category."""
        labels = self.labels.get(metric.pk)
        if labels is None or not labels.has_ratings:
            return withheld(self._unrated_reason(metric))
        component = self._component(metric, labels, _IDENTITY, category)
        if component is None:
            return withheld(Withheld.NO_VALUES)
        if not component.labels:
            return withheld(WithheldReason.NO_PROBABILITY, len(component.frame))
        figure = to_figure(corrected_component(component, target, is_subset=category is not None))
        extra: dict[str, Any] = {}
        if built := int((component.frame.in_prompt & component.frame.labelled).sum()):
            extra["built_on"] = built
        if sealed := len({row.answer_id for row in self.evidence.withheld if row.metric_id == metric.pk}):
            extra["sealed"] = sealed
        if category is None and (ends := _any_time_interval(component, labels)):
            extra["any_time"] = ends
        if carried := sum(key in labels.carried for key in component.frame.keys):
            extra["carried"] = carried
        return dataclasses.replace(figure, extra={**figure.extra, **extra})

    def overall(
        self,
        profile: ProfileSpec,
        machine: SideScore,
        target: Target = Target.QUESTIONS_LIKE_THESE,
        category: str | None = None,
        confidence: float = 0.95,
    ) -> Figure:
        """Corrected overall score of the run or one category. ``machine`` holds the weights in use."""
        components = self.components(profile, machine, category)
        if not components:
            return withheld(Withheld.NO_VALUES)
        if not any(component.labels for component in components):
            rated = any(self._rated(component.name) for component in components)
            metrics = [self._metric_named(component.name) for component in components]
            return withheld(WithheldReason.NO_PROBABILITY if rated else self._unrated_reason(*metrics))
        acceptance = self.acceptance if category is None else None
        outcome = corrected_overall(
            components, target, confidence, is_subset=category is not None, unrated_like_rated=acceptance is not None
        )
        figure = add_constant(to_figure(outcome), profile.constant)
        if any(self.is_only_carried(name) for name in figure.partly_corrected):
            figure = dataclasses.replace(
                figure, extra={**figure.extra, "warnings": [*figure.extra.get("warnings", ()), "rated_as_equal"]}
            )
        if acceptance is None or "assumed_bias" not in figure.extra:
            return figure
        assumption = {"by": acceptance.by, "at": acceptance.at.isoformat(), "bias": figure.extra["assumed_bias"]}
        extra = {key: value for key, value in figure.extra.items() if key != "assumed_bias"}
        return dataclasses.replace(figure, extra={**extra, "assumption": assumption})

    def components(self, profile: ProfileSpec, machine: SideScore, category: str | None = None) -> list[Component]:
        """Summands of the overall score of the run or one category.

        Run-mean profiles: weight times mean of each part. Per-answer profiles: each part's contribution to the answers'
        own scores, stored weight times value."""
        if profile.unit is OverallUnit.PER_ANSWER:
            names = dict.fromkeys(name for answer in machine.answers for name in answer.weights_used)
            numbered_answers = enumerate(self.evidence.answers.values())
            places = np.array(
                [index for index, answer in numbered_answers if category in {None, answer.category}], dtype=np.int64
            )
            parts = (self._contribution(profile, name, machine, places) for name in names)
        else:
            weights = machine.outcome.weights_used.items()
            parts = (self._part_component(profile, name, weight, category) for name, weight in weights)
        return [component for component in parts if component is not None]

    def metric_component(self, metric: MetricDefinition) -> Component | None:
        """A metric's component on its own scale, or ``None`` without labels of known probability."""
        labels = self.labels.get(metric.pk, _UNRATED)
        component = self._component(metric, labels, _IDENTITY) if labels.has_ratings else None
        return component if component and component.labels else None

    def _part_component(self, profile: ProfileSpec, name: str, weight: float, category: str | None) -> Component | None:
        """A part on the unit scale, with its weight in the run."""
        if (metric := self._metric_named(name)) is None:
            return None
        scored = self.evidence.scored.get(metric.pk, {})
        given = (
            not answer.failed
            for key, answer in self.evidence.answers.items()
            if category in {None, answer.category}
            and (judged := scored.get(key))
            and judged.status is not Status.NOT_APPLICABLE
        )
        if not (share := _given_share(profile, given)):
            return None
        zero, width = _unit_scale(profile, metric)
        # The mean of given answers times their share is the mean with 0 for the others.
        labels, unit = self.labels.get(metric.pk, _UNRATED), (zero / share, width)
        component = self._component(metric, labels, unit, category)
        return component and dataclasses.replace(component, weight=weight * share)

    def _component(
        self, metric: MetricDefinition, labels: MetricLabels, unit: UnitTransform, category: str | None = None
    ) -> Component | None:
        """The metric's component over the run or one category, on the ``unit`` scale. ``None`` if it applies
        nowhere."""
        if (metric.pk, unit) not in self._frames:
            self._frames[metric.pk, unit] = self._frames_of(metric, labels, unit)
        frames = self._frames[metric.pk, unit]
        if category is not None:
            numbers, names = self.evidence.categories
            places = np.flatnonzero(numbers[frames[-1].key] == names.get(category, -1))
            frames = [frame.take(places) for frame in frames]
        if not len(frames[-1]):
            return None
        scale, (zero, width) = metric.read_scale(), unit
        low, high = (scale.low - zero) / width, (scale.high - zero) / width
        yes_no = scale.kind is ScaleKind.YES_NO
        return Component(
            metric.name,
            low=low,
            high=high,
            yes_no=yes_no,
            judged=not _is_exact(metric),
            slope=self.slopes.get(metric.pk),
            **_review(frames, labels),
        )

    def _frames_of(self, metric: MetricDefinition, labels: MetricLabels, unit: UnitTransform) -> list[SamplingFrame]:
        """Frame of each round over the answers that the metric applies to."""
        judged_values = list(map(self.evidence.scored.get(metric.pk, {}).get, self.evidence.answers))
        judge, rating = (
            column(judged and judged.value for judged in judged_values),
            column(map(labels.means.get, self.evidence.answers)),
        )
        zero, width = unit
        answers = self.evidence.answers.values()
        applying = np.flatnonzero([applies(*pair) for pair in zip(answers, judged_values, strict=True)])
        frames = [
            frame.with_values((judge - zero) / width, (rating - zero) / width)
            for frame in self._sampled_frames(metric, labels)
        ]
        return frames if len(applying) == len(answers) else [frame.take(applying) for frame in frames]

    def _sampled_frames(self, metric: MetricDefinition, labels: MetricLabels) -> list[SamplingFrame]:
        """All answers of the run with the metric's sampling design, by round."""
        if metric.pk not in self._unfilled:
            self._unfilled[metric.pk] = labels.empty_frames(self.evidence)
        return self._unfilled[metric.pk]

    def _contribution(self, profile: ProfileSpec, name: str, machine: SideScore, places: Indices) -> Component | None:
        """A part's contribution to the scores of the answers at ``places``: stored weight times unit-scale value."""
        if (metric := self._metric_named(name)) is None:
            return None
        labels = self.labels.get(metric.pk, _UNRATED)
        zero, width = _unit_scale(profile, metric)
        rated = frozenset(answer for metric_labels in self.labels.values() for answer in metric_labels.means)
        answers = list(self.evidence.answers.values())
        given = [not answers[place].failed for place in places.tolist()]
        share, scores, places = _given_share(profile, given), list(compress(machine.answers, given)), places[given]
        if not scores:
            return None
        keys = [answers[place].answer_id for place in places.tolist()]
        weight = np.array([score.weights_used.get(name, 0.0) for score in scores], dtype=np.float64)
        # An inapplicable part contributes exactly 0, for judge and experts alike.
        inapplicable = np.array([name in score.zeroed for score in scores], dtype=np.bool_) | (weight == 0.0)
        judged_values = map(self.evidence.scored.get(metric.pk, {}).get, keys)
        judge, rating = column(judged and judged.value for judged in judged_values), column(map(labels.means.get, keys))
        known = np.where([key in rated for key in keys], 0.0, np.nan)
        frames = [
            frame.take(places).with_values(
                np.where(inapplicable, 0.0, weight * ((judge - zero) / width)),
                np.where(inapplicable, known, weight * ((rating - zero) / width)),
            )
            for frame in self._sampled_frames(metric, labels)
        ]
        if not (max_weight := float(weight.max())):
            return None
        applied_weights = np.where(inapplicable, 0.0, weight).tolist()
        return Component(
            name,
            low=0.0,
            high=max_weight,
            weight=share,
            judged=not _is_exact(metric),
            most=sum(applied_weights) / len(applied_weights),
            slope=self.slopes.get(metric.pk),
            **_review(frames, labels),
        )

    def _unrated_reason(self, *metrics: MetricDefinition | None) -> Withheld:
        """Reason for missing labels: only equal answers were rated, or none."""
        carried = {metric for _, metric in self.evidence.carried}
        return Withheld.CARRIED if any(metric and metric.pk in carried for metric in metrics) else Withheld.NOT_REVIEWED

    def is_only_carried(self, name: str) -> bool:
        """Return whether experts rated the metric only for equal answers of earlier answer sets."""
        metric = self._metric_named(name)
        return metric is not None and not self._rated(name) and self._unrated_reason(metric) is Withheld.CARRIED

    def _rated(self, name: str) -> bool:
        metric = self._metric_named(name)
        return metric is not None and self.labels.get(metric.pk, _UNRATED).has_ratings

    def _metric_named(self, name: str) -> MetricDefinition | None:
        return next(
            (self.evidence.metrics[pk] for pk in self.evidence.computed if self.evidence.metrics[pk].name == name), None
        )


def _review(frames: Sequence[SamplingFrame], labels: MetricLabels) -> dict[str, Any]:
    """Fields of a component for its rounds of review; without ratings there are none."""
    rounds = labels.samples.rounds
    earlier = [EarlierRound(frame, sample_round.planned) for frame, sample_round in zip(frames, rounds, strict=True)][
        :-1
    ]
    looks = labels.samples.looks if labels.has_ratings else 1
    return {"frame": frames[-1], "earlier": tuple(earlier), "planned": rounds[-1].planned, "looks": looks}


def _any_time_interval(component: Component, labels: MetricLabels) -> dict[str, float] | None:
    """Interval that stays valid at every look while drawn answers wait to be rated.

    ``None`` if nothing is waiting, a stratum mixes probabilities, too few answers got ratings, ratings were carried
    over, or the judge's prompt was built on rated answers."""
    frame = component.frame
    nonresponse = int((frame.state == ReviewState.NO_RESPONSE).sum())
    waiting = (frame.state == ReviewState.NOT_REACHED).any()
    if (
        not waiting
        or labels.carried
        or labels.built
        or nonresponse > MAX_NON_RESPONSE * (component.labels + nonresponse)
    ):
        return None
    arrivals = []
    for stratum in dict.fromkeys(frame.stratum.tolist()):
        members = frame.take(np.flatnonzero(frame.stratum == stratum))
        # Missing probabilities (NaN) differ from every other.
        if (members.probability != members.probability[0]).any():
            return None
        index_by_answer = {
            members.names[members.key[index]]: index for index in np.flatnonzero(members.labelled).tolist()
        }
        ratings = [
            (index, float(members.rating[index]))
            for key in labels.means
            if (index := index_by_answer.get(key)) is not None
        ]
        arrivals.append(RatingStream(members.judge, ratings, int(members.sampled.sum())))
    low, high = any_time_interval(arrivals, component.low, component.high)
    return {"low": low, "high": high, "labels": component.labels}


def _is_exact(metric: MetricDefinition) -> bool:
    """Return whether the metric is exact by definition, so that experts cannot correct it."""
    return metric.kind in {MetricKind.RULE, MetricKind.EMBEDDING}


def _unit_scale(profile: ProfileSpec, metric: MetricDefinition) -> UnitTransform:
    """Transform from a metric's scale to the profile's unit scale. Metrics outside the parts use their full range."""
    scale = metric.read_scale()
    part = next((candidate for candidate in profile.parts if candidate.metric == metric.name), None)
    return (scale.low, scale.width) if part is None else unit_scale(profile, part, scale.low, scale.high)


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """Inputs of a run's report and comparisons. ``machine`` and ``reviewed`` are the overall scores of the two
    sides."""

    run: Run
    profile: ProfileSpec
    evidence: RunEvidence
    samples: Samples
    sides: Sides
    machine: SideScore
    reviewed: SideScore
    correction: Correction


def load_inputs(run: Run) -> ReportInputs:
    """Load everything the figures of a run need, in a dozen queries."""
    run = with_relations(run)
    profile = ProfileSpec.model_validate(run.profile_version.spec)
    evidence = load_evidence(run)
    samples = run_samples(run, evidence)
    sides = sides_of(evidence, effective_values_from(evidence))
    return ReportInputs(
        run=run,
        profile=profile,
        evidence=evidence,
        samples=samples,
        sides=sides,
        machine=score_side(profile, sides.machine),
        reviewed=score_side(profile, sides.reviewed),
        correction=Correction(evidence, labels_by_metric(evidence, samples), current_acceptance(run)),
    )
