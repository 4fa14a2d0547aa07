"""Everything the figures of a run are made of, read once: what was said, both sides, their scores, and the labels with
which any figure is corrected: what the experts would have said, blind, of all answers (``docs/correction.md``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evaluation.core.metric_specs import Kind
from evaluation.core.samples import Status
from evaluation.core.scales import Scale, ScaleKind
from evaluation.models import MetricDefinition, Run
from evaluation.profiles.arithmetic import unit_of
from evaluation.profiles.spec import ProfileSpec, Unit
from review.decisions.assumptions import Acceptance, acceptance_of
from review.evidence.effective import Said, said_of, samples_behind, values_from
from review.evidence.experts import ExpertRating
from review.evidence.sampling import Samples
from review.evidence.scorers import Judged
from review.reports.figure import Figure, Withheld, as_figure, shifted, withheld
from review.reports.provenance import with_relations
from review.reports.scores import (
    Sides,
    SideScore,
    column,
    score_side,
    sides_of,
)
from review.statistics.agreement.statistic import Indices, consensus, numbered
from review.statistics.correction.any_time import Arriving, any_time_interval
from review.statistics.correction.corrected import MOST_NON_RESPONSE, corrected, corrected_overall
from review.statistics.correction.frame import Component, Frame, ReviewState
from review.statistics.correction.outcome import Target, WithheldReason
from review.statistics.sampling.member import NOWHERE, Place


@dataclass(frozen=True, slots=True)
class MetricLabels:
    """The blind first ratings of one metric: answer -> mean of the raters in the order in which they came, and how the
    answers were sampled. ``carried`` are those whose rating is that of an equal answer, ``built`` those
    that the prompt of the judge was worked out on."""

    means: dict[int, float]
    places: dict[int, Place]
    silent: frozenset[int]
    carried: frozenset[int] = frozenset()
    built: frozenset[int] = frozenset()

    @property
    def any(self) -> bool:
        """Whether anybody rated the metric blind."""
        return bool(self.means)

    def unfilled(self, said: Said) -> Frame:
        """All answers of the run without values of judge or experts. A rating is missing from a sampled answer because
        nobody was served it yet, or because whoever was gave no usable one (skipped, flagged, cannot judge, not blind).
        """
        keys, (group, groups) = said.keys, said.groups
        places = [self.places.get(key, NOWHERE) for key in keys]
        sampled = np.array([one.sampled for one in places], dtype=np.bool_)
        silent = np.array([key in self.silent for key in keys], dtype=np.bool_)
        state = np.where(silent, ReviewState.NO_RESPONSE, ReviewState.NOT_REACHED)
        strata = [one.stratum for one in places]
        nothing = np.full(len(keys), np.nan)
        return Frame(
            key=np.arange(len(keys)),
            names=keys,
            judge=nothing,
            rating=nothing,
            state=np.where(sampled, state, ReviewState.NOT_SAMPLED),
            probability=column(one.probability for one in places),
            stratum=numbered(strata),
            strata=list(dict.fromkeys(strata)),
            group=group,
            groups=groups,
            built=np.array([key in self.built for key in keys], dtype=np.bool_),
        )


def labels_by_metric(said: Said, samples: Samples) -> dict[int, MetricLabels]:
    """The labels of every metric that anybody rated and that has numbers."""
    found: dict[int, MetricLabels] = {}
    for pk in sorted(said.ratings_by_metric.keys() | {metric for _, metric in said.carried}):
        scale = said.metrics[pk].read_scale()
        if scale.labels:
            continue
        means: dict[int, float] = {}
        mine, rated = said.blind_by_metric.get(pk, {}), said.ratings_by_metric.get(pk, [])
        for answer_id, rows in sorted(mine.items(), key=lambda one: min((row.at, row.pk) for row in one[1])):
            means[answer_id] = _mean_of(rows, scale)
        places = _census(said, pk, means, samples.places(pk, rated))
        silent = samples.silent_for(pk) | {row.answer_id for row in rated}
        silent -= means.keys()
        equal = {key[0]: one.blind for key, one in said.carried.items() if key[1] == pk and one.blind}
        carried = _carried(equal.keys() - means.keys() - silent, places, means.keys() | silent | said.sealed)
        means |= {answer: _mean_of(equal[answer], scale) for answer in carried}
        built = frozenset(answer for answer, metric in said.built if metric == pk)
        found[pk] = MetricLabels(means, places, frozenset(silent), carried, built)
    return found


def _mean_of(rows: Sequence[ExpertRating], scale: Scale) -> float:
    return float(consensus([v for row in rows if (v := row.value) is not None], scale) or 0.0)


def _carried(equal: Collection[int], places: Mapping[int, Place], served: Collection[int]) -> frozenset[int]:
    """The answers with ratings of equal ones at which those are labels: sampled here, in a stratum of which nothing
    else is waiting. Before, they would stand for answers that differ from them in being new; answers that were served
    are a random part of the stratum."""
    sampled = {answer: place.stratum for answer, place in places.items() if place.sampled}
    waiting = {stratum for answer, stratum in sampled.items() if answer not in served and answer not in equal}
    return frozenset(answer for answer in equal if answer in sampled and sampled[answer] not in waiting)


def applies(said: Judged | None) -> bool:
    """Whether an answer belongs to a metric's frame: scored or failed, not inapplicable."""
    return said is not None and said.status is not Status.NOT_APPLICABLE


def _census(said: Said, pk: int, means: dict[int, float], places: dict[int, Place]) -> dict[int, Place]:
    """Where every answer the metric applies to was rated there is nothing to sample: a census, however the answers
    were chosen."""
    frame = [answer for answer, one in said.scored.get(pk, {}).items() if applies(one)] if means else []
    rated = means.keys() | {row.answer_id for row in said.withheld if row.metric_id == pk}
    if frame and all(answer in rated for answer in frame):
        return places | dict.fromkeys(frame, Place(1.0, "all", True))
    return places


OnUnit = tuple[float, float]  # what is taken off a value, and what the rest is divided by
_AS_IT_IS: OnUnit = 0.0, 1.0
_UNRATED = MetricLabels({}, {}, frozenset())


@dataclass(frozen=True, slots=True)
class Correction:
    """The labels of a run, ready to correct any of its metrics and its overall score; ``acceptance``: of the assumption
    about judged parts of the whole score that nobody rated, which categories and comparisons do not take over."""

    said: Said
    labels: Mapping[int, MetricLabels]
    acceptance: Acceptance | None = None
    _unfilled: dict[int, Frame] = field(default_factory=dict, compare=False)
    _frames: dict[tuple[int, OnUnit], Frame] = field(default_factory=dict, compare=False)

    @property
    def rated_blind(self) -> bool:
        """Whether anybody rated any metric blind."""
        return any(one.any for one in self.labels.values())

    def of_metric(
        self, metric: MetricDefinition, category: str | None = None, target: Target = Target.QUESTIONS_LIKE_THESE
    ) -> Figure:
        """One metric, on its own scale, over the run or one category."""
        labels = self.labels.get(metric.pk)
        if labels is None or not labels.any:
            return withheld(self._unrated_reason(metric))
        component = self._component(metric, labels, _AS_IT_IS, category)
        if component is None:
            return withheld(Withheld.NO_VALUES)
        if not component.labels:
            return withheld(WithheldReason.NO_PROBABILITY, len(component.frame))
        figure = as_figure(corrected(component, target, part=category is not None))
        more: dict[str, Any] = {}
        if built := int((component.frame.built & component.frame.labelled).sum()):
            more["built_on"] = built
        if sealed := len({row.answer_id for row in self.said.withheld if row.metric_id == metric.pk}):
            more["sealed"] = sealed
        if category is None and (ends := _any_time(component, labels)):
            more["any_time"] = ends
        if carried := sum(key in labels.carried for key in component.frame.keys):
            more["carried"] = carried
        return dataclasses.replace(figure, extra={**figure.extra, **more})

    def overall(
        self,
        profile: ProfileSpec,
        machine: SideScore,
        target: Target = Target.QUESTIONS_LIKE_THESE,
        category: str | None = None,
        confidence: float = 0.95,
    ) -> Figure:
        """The overall score of the run or one category: the sum of the corrected parts. ``machine`` holds the weights
        in use there."""
        components = self.components(profile, machine, category)
        if not components:
            return withheld(Withheld.NO_VALUES)
        if not any(one.labels for one in components):
            rated = any(self._rated(one.name) for one in components)
            metrics = [self._metric(one.name) for one in components]
            return withheld(WithheldReason.NO_PROBABILITY if rated else self._unrated_reason(*metrics))
        accepted = self.acceptance if category is None else None
        outcome = corrected_overall(
            components, target, confidence, part=category is not None, unrated_like_rated=accepted is not None
        )
        figure = shifted(as_figure(outcome), profile.constant)
        if any(self.carried_alone(name) for name in figure.partly_corrected):
            figure = dataclasses.replace(
                figure, extra={**figure.extra, "warnings": [*figure.extra.get("warnings", ()), "rated_as_equal"]}
            )
        if accepted is None or "assumed_bias" not in figure.extra:
            return figure
        said = {"by": accepted.by, "at": accepted.at.isoformat(), "bias": figure.extra["assumed_bias"]}
        rest = {key: value for key, value in figure.extra.items() if key != "assumed_bias"}
        return dataclasses.replace(figure, extra={**rest, "assumption": said})

    def components(self, profile: ProfileSpec, machine: SideScore, category: str | None = None) -> list[Component]:
        """What the overall score of the run or one category is the sum of.

        Run-mean profiles: weight x mean of each part. Per-answer profiles: over all answers, each part's contribution
        to the answer's own score, the stored weight times the value.
        """
        if profile.unit is Unit.PER_ANSWER:
            names = dict.fromkeys(name for one in machine.answers for name in one.weights_used)
            of_answers = enumerate(self.said.answers.values())
            places = np.array([at for at, one in of_answers if category in {None, one.category}], dtype=np.int64)
            parts = (self._contribution(profile, name, machine, places) for name in names)
        else:
            weights = machine.outcome.weights_used.items()
            parts = (self._part(profile, name, weight, category) for name, weight in weights)
        return [one for one in parts if one is not None]

    def metric_component(self, metric: MetricDefinition) -> Component | None:
        """A metric's frame on its own scale, where it has labels with a probability; else ``None``."""
        labels = self.labels.get(metric.pk, _UNRATED)
        component = self._component(metric, labels, _AS_IT_IS) if labels.any else None
        return component if component and component.labels else None

    def _part(self, profile: ProfileSpec, name: str, weight: float, category: str | None) -> Component | None:
        """A part's values on the unit scale over the answers it applies to, with its weight in the run."""
        if (metric := self._metric(name)) is None:
            return None
        labels, unit = self.labels.get(metric.pk, _UNRATED), _unit_scale(profile, metric)
        component = self._component(metric, labels, unit, category)
        return component and dataclasses.replace(component, weight=weight)

    def _component(
        self, metric: MetricDefinition, labels: MetricLabels, unit: OnUnit, category: str | None = None
    ) -> Component | None:
        """The metric's frame over the run or one category, on the ``unit`` scale; ``None`` where it applies nowhere."""
        if (metric.pk, unit) not in self._frames:
            self._frames[metric.pk, unit] = self._frame_of(metric, labels, unit)
        frame = self._frames[metric.pk, unit]
        if category is not None:
            numbers, names = self.said.categories
            frame = frame.at(np.flatnonzero(numbers[frame.key] == names.get(category, -1)))
        if not len(frame):
            return None
        scale, (zero, width) = metric.read_scale(), unit
        low, high = (scale.low - zero) / width, (scale.high - zero) / width
        yes_no = scale.kind is ScaleKind.YES_NO
        return Component(metric.name, frame, low, high, yes_no=yes_no, judged=not _exact(metric))

    def _frame_of(self, metric: MetricDefinition, labels: MetricLabels, unit: OnUnit) -> Frame:
        """The metric's frame over the run: the answers it applies to."""
        said = list(map(self.said.scored.get(metric.pk, {}).get, self.said.answers))
        judge, rating = column(one and one.value for one in said), column(map(labels.means.get, self.said.answers))
        zero, width = unit
        whole = self._whole(metric, labels).filled((judge - zero) / width, (rating - zero) / width)
        applying = np.flatnonzero([applies(one) for one in said])
        return whole if len(applying) == len(whole) else whole.at(applying)

    def _whole(self, metric: MetricDefinition, labels: MetricLabels) -> Frame:
        """The run's answers as the metric was sampled."""
        if metric.pk not in self._unfilled:
            self._unfilled[metric.pk] = labels.unfilled(self.said)
        return self._unfilled[metric.pk]

    def _contribution(self, profile: ProfileSpec, name: str, machine: SideScore, places: Indices) -> Component | None:
        """A part's contribution to every answer's score, of the answers at these places: the stored weight times the
        value on the unit scale."""
        if (metric := self._metric(name)) is None:
            return None
        labels = self.labels.get(metric.pk, _UNRATED)
        zero, width = _unit_scale(profile, metric)
        rated = frozenset(answer for each in self.labels.values() for answer in each.means)
        answers = list(self.said.answers)
        keys = [answers[at] for at in places.tolist()]
        weight = np.array([score.weights_used.get(name, 0.0) for score in machine.answers], dtype=np.float64)
        # where the part does not apply its contribution is known to be 0, for judge and experts alike
        apart = np.array([name in score.zeroed for score in machine.answers], dtype=np.bool_) | (weight == 0.0)
        said = map(self.said.scored.get(metric.pk, {}).get, keys)
        judge, rating = column(one and one.value for one in said), column(map(labels.means.get, keys))
        known = np.where([key in rated for key in keys], 0.0, np.nan)
        frame = (
            self._whole(metric, labels)
            .at(places)
            .filled(
                np.where(apart, 0.0, weight * ((judge - zero) / width)),
                np.where(apart, known, weight * ((rating - zero) / width)),
            )
        )
        if not (top := float(weight.max())):
            return None
        reach = np.where(apart, 0.0, weight).tolist()
        return Component(name, frame, 0.0, top, judged=not _exact(metric), most=sum(reach) / len(reach))

    def _unrated_reason(self, *metrics: MetricDefinition | None) -> Withheld:
        """Why there is no label of them: equal answers alone were rated, or none."""
        carried = {metric for _, metric in self.said.carried}
        return Withheld.CARRIED if any(one and one.pk in carried for one in metrics) else Withheld.NOT_REVIEWED

    def carried_alone(self, name: str) -> bool:
        """Whether experts rated this metric of equal answers of earlier answer sets, and no answer of the run."""
        metric = self._metric(name)
        return metric is not None and not self._rated(name) and self._unrated_reason(metric) is Withheld.CARRIED

    def _rated(self, name: str) -> bool:
        metric = self._metric(name)
        return metric is not None and self.labels.get(metric.pk, _UNRATED).any

    def _metric(self, name: str) -> MetricDefinition | None:
        return next((self.said.metrics[pk] for pk in self.said.computed if self.said.metrics[pk].name == name), None)


def _any_time(component: Component, labels: MetricLabels) -> dict[str, float] | None:
    """An interval that holds at every look, while drawn answers still wait to be served; ``None`` without any, where
    answers of a stratum were drawn with different probabilities, too many gave no rating, some of the ratings were
    there before, or the judge's prompt was worked out on some."""
    frame = component.frame
    silent = int((frame.state == ReviewState.NO_RESPONSE).sum())
    waiting = (frame.state == ReviewState.NOT_REACHED).any()
    if not waiting or labels.carried or labels.built or silent > MOST_NON_RESPONSE * (component.labels + silent):
        return None
    arriving = []
    for stratum in dict.fromkeys(frame.stratum.tolist()):
        members = frame.at(np.flatnonzero(frame.stratum == stratum))
        if (members.probability != members.probability[0]).any():  # where there is none, it is equal to no other
            return None
        place = {members.names[members.key[at]]: at for at in np.flatnonzero(members.labelled).tolist()}
        came = [(at, float(members.rating[at])) for key in labels.means if (at := place.get(key)) is not None]
        arriving.append(Arriving(members.judge, came, int(members.sampled.sum())))
    low, high = any_time_interval(arriving, component.low, component.high)
    return {"low": low, "high": high, "labels": component.labels}


def _exact(metric: MetricDefinition) -> bool:
    """Whether the metric is what its definition computes, so that no expert could correct it."""
    return metric.kind in {Kind.RULE, Kind.EMBEDDING}


def _unit_scale(profile: ProfileSpec, metric: MetricDefinition) -> OnUnit:
    """Puts values of a metric on the profile's unit scale; a metric that decides whole scores uses both its ends."""
    scale = metric.read_scale()
    part = next((one for one in profile.parts if one.metric == metric.name), None)
    return (scale.low, scale.width) if part is None else unit_of(profile, part, scale.low, scale.high)


@dataclass(frozen=True, slots=True)
class Gathered:
    """The basis of a run's report and of its comparison with others. ``machine`` and ``reviewed`` are the overall
    scores of the two sides."""

    run: Run
    profile: ProfileSpec
    said: Said
    samples: Samples
    sides: Sides
    machine: SideScore
    reviewed: SideScore
    correction: Correction


def gather(run: Run) -> Gathered:
    """Read what the figures need, in a dozen queries, and put it together."""
    run = with_relations(run)
    profile = ProfileSpec.model_validate(run.profile_version.spec)
    said = said_of(run)
    samples = samples_behind(run, said)
    sides = sides_of(said, values_from(said))
    return Gathered(
        run=run,
        profile=profile,
        said=said,
        samples=samples,
        sides=sides,
        machine=score_side(profile, sides.machine),
        reviewed=score_side(profile, sides.reviewed),
        correction=Correction(said, labels_by_metric(said, samples), acceptance_of(run)),
    )
