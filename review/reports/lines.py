"""The lines of a report: one per metric, one per category and one per answer, with what to look at first: the lowest
scores, and where judge and experts are furthest apart."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import overload

import numpy as np

from evaluation.core.metric_specs import Bilingual, Kind
from evaluation.core.samples import Status
from evaluation.core.scales import Scale, ScaleKind
from evaluation.models import MetricDefinition
from evaluation.profiles.arithmetic import unit_of, worst_and_best
from evaluation.profiles.per_answer import ANSWER_OVERALL
from evaluation.profiles.spec import ProfileSpec, Unit
from review.evidence.answers import RunAnswer
from review.evidence.effective import Effective, Source
from review.evidence.scorers import title_of
from review.reports.figure import Figure, Withheld, withheld
from review.reports.gathering import Gathered
from review.reports.scores import (
    UNSAID,
    MetricValues,
    Side,
    SideScore,
    Summand,
    by_category,
    figure_over_questions,
    score_side,
)
from review.statistics.correction.outcome import Target


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many answers of the run have which status of a metric; ``pending`` ones have no result yet."""

    scored: int
    failed: int
    not_applicable: int
    pending: int


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from request to complete answer: mean, median and 95th percentile of ``n`` answers."""

    n: int
    mean: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class MetricLine:
    """A metric over the run; ``sections.METRICS`` says what each field means. Means are on the metric's own ``scale``;
    class metrics have ``shares`` (label -> share of effective labels) instead. ``report_name`` is that of the profile's
    source, under which figures stand times ``report_factor``."""

    metric_id: int
    name: str
    version: int
    title: Bilingual
    report_name: str
    report_factor: float
    kind: str
    scale: Scale
    weight: float
    coverage: Coverage
    judge_only: Figure
    reviewed: Figure
    corrected: Figure
    rated: int
    carried: int
    overridden: int
    unresolved: int
    shares: Mapping[str, float]
    latency: Latency | None


@dataclass(frozen=True, slots=True)
class CategoryLine:
    """The run's answers to the questions of one category. ``metrics`` are judge-only and reviewed means by metric
    name, ``corrected`` likewise; an overall figure (``corrected_overall`` is the corrected one) stands only where all
    parts of the profile exist in the category.
    """

    name: str
    answers: int
    judge_only: Figure
    reviewed: Figure
    corrected_overall: Figure
    metrics: Mapping[str, tuple[Figure, Figure]]
    corrected: Mapping[str, Figure]
    coverage: Mapping[str, Coverage]
    latency: Latency | None

    @property
    def mean_latency(self) -> float | None:
        """Seconds from request to complete answer on average; ``None`` where nothing was timed."""
        return self.latency.mean if self.latency else None


@dataclass(frozen=True, slots=True)
class HopsLine:
    """The run's answers to questions that link so many facts: overall scores as they came and with people's values."""

    hops: int
    answers: int
    judge_only: Figure
    reviewed: Figure

    @property
    def figures(self) -> dict[str, int | Figure]:
        """All of it but the number, by name."""
        return {"answers": self.answers, "judge_only": self.judge_only, "reviewed": self.reviewed}


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """One answer with its effective values by metric name. ``score`` is its share of the parts that apply to it (0 to
    1, effective values, profile's weights), ``None`` where there is none: it ranks answers and is no overall score of
    a run-mean profile."""

    answer: RunAnswer
    values: Mapping[str, Effective]
    score: float | None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Where the primary judge and the experts are furthest apart. ``distance`` is a share of the scale (classes: 1)."""

    answer: RunAnswer
    metric: str
    title: Bilingual
    scale: Scale
    judge: float | str
    expert: float | str
    raters: int
    distance: float


def coverage_of(values: MetricValues) -> Coverage:
    """How many values have which status."""
    return Coverage(*map(values.count, (Status.SCORED, Status.FAILED, Status.NOT_APPLICABLE, None)))


def mean_figure(profile: ProfileSpec, values: MetricValues) -> Figure:
    """The mean of a metric's numbers with its variation over questions, and bounds where results failed."""
    if values.scale.labels:
        return withheld(Withheld.CLASSES, len(values.labels))
    mean = values.part_mean()
    if mean.mean is None:
        return withheld(Withheld.NO_VALUES)
    numbered = values.numbered
    whole = Summand(numbered, values.number[numbered], values.scale.low, values.scale.high)
    figure = figure_over_questions([whole], values.group, len(numbered))
    if not mean.failed:
        return figure
    worst, best = worst_and_best(profile, mean)
    return dataclasses.replace(figure, worst=worst, best=best)


def latency_of(seconds: Sequence[float]) -> Latency | None:
    """Mean, median and 95th percentile (linear interpolation) of response times; ``None`` without any."""
    if not seconds:
        return None
    p50, p95 = np.quantile(np.array(seconds), [0.5, 0.95])
    return Latency(len(seconds), float(np.mean(seconds)), float(p50), float(p95))


def answer_latency(answers: Iterable[RunAnswer]) -> Latency | None:
    """Response times of the answers that were given and timed."""
    return latency_of([a.latency_seconds for a in answers if a.latency_seconds is not None and not a.failed])


def metric_lines(basis: Gathered) -> tuple[MetricLine, ...]:
    """The metrics of the run: the profile's parts first in its order, then the others, then those only rated. The
    stored overall score of the answers is left out: it is the overall score itself."""
    found = basis.sides.found
    order = {name: at for at, name in enumerate(basis.profile.metrics)}
    rows = sorted(
        (row for row in found.metrics.values() if row.name != ANSWER_OVERALL.name),
        key=lambda m: (m.pk not in found.computed, order.get(m.name, len(order)), m.name, m.version),
    )
    return tuple(_line(basis, metric) for metric in rows)


def _line(basis: Gathered, metric: MetricDefinition) -> MetricLine:
    profile, sides, scale = basis.profile, basis.sides, metric.read_scale()
    heard = sides.found.heard[metric.pk]
    computed = metric.pk in sides.found.computed
    if computed:
        machine, reviewed = sides.machine.metrics[metric.name], sides.reviewed.metrics[metric.name]
    else:  # people alone gave values
        said = [heard.get(answer.answer_id, UNSAID) for answer in sides.reviewed.answers]
        every = MetricValues.of(metric.name, scale, sides.reviewed.answers, sides.reviewed.group, said)
        places = np.flatnonzero([answer.answer_id in heard for answer in every.answers])
        reviewed = every.at(places, [every.answers[at] for at in places.tolist()])
        machine = every.at(places[:0], [])
    weight = next((part.weight for part in profile.parts if part.metric == metric.name), 0.0)
    values = heard.values()
    human = any(value.human for value in values)
    labels = Counter(reviewed.labels)
    return MetricLine(
        metric_id=metric.pk,
        name=basis.said.names[metric.pk],
        version=metric.version,
        title=title_of(metric),
        report_name=profile.report_name(metric.name) if metric.name in profile.metrics else metric.name,
        report_factor=profile.report_factors.get(metric.name, 1.0),
        kind=metric.kind,
        scale=scale,
        weight=weight,
        coverage=coverage_of(machine if computed else reviewed),
        judge_only=mean_figure(profile, machine),
        reviewed=mean_figure(profile, reviewed) if human else withheld(Withheld.NOT_REVIEWED),
        corrected=basis.correction.of_metric(metric),
        rated=sum(value.raters > 0 for value in values),
        carried=sum(value.carried is not None for value in values),
        overridden=sum(value.source is Source.OVERRIDE for value in values),
        unresolved=sum(value.unresolved for value in values),
        shares={label: count / labels.total() for label, count in labels.most_common()},
        latency=latency_of(machine.number[machine.numbered].tolist()) if scale.kind is ScaleKind.SECONDS else None,
    )


def category_lines(basis: Gathered) -> tuple[CategoryLine, ...]:
    """The run by the category of its questions."""
    profile, sides, found = basis.profile, basis.sides, []
    computed = [sides.found.metrics[pk] for pk in sides.found.computed]
    derived = {metric.name for metric in computed if metric.kind == Kind.DERIVED}  # nobody rates these
    reviewed_answers = sides.found.reviewed
    for name, places in by_category(sides.machine.answers).items():
        machine, reviewed = sides.machine.at(places), sides.reviewed.at(places)
        touched = any(answer.answer_id in reviewed_answers for answer in machine.answers)
        score = score_side(profile, machine, all_parts=True)
        nobody = withheld(Withheld.NOT_REVIEWED, len(places))
        metrics = {
            metric: (
                mean_figure(profile, values),
                mean_figure(profile, reviewed.metrics[metric]) if touched and metric not in derived else nobody,
            )
            for metric, values in machine.metrics.items()
        }
        found.append(
            CategoryLine(
                name=name,
                answers=len(places),
                judge_only=score.figure,
                reviewed=score_side(profile, reviewed, all_parts=True).figure if touched else nobody,
                corrected_overall=corrected_of_category(basis, score, name),
                metrics=metrics,
                corrected={metric.name: basis.correction.of_metric(metric, name) for metric in computed},
                coverage={metric: coverage_of(values) for metric, values in machine.metrics.items()},
                latency=answer_latency(machine.answers),
            )
        )
    return tuple(found)


def hops_lines(basis: Gathered) -> tuple[HopsLine, ...]:
    """The run by the number of facts its questions link; empty where none says so."""
    profile, sides = basis.profile, basis.sides
    of_hops: dict[int, list[int]] = {}
    for at, one in enumerate(sides.machine.answers):
        if one.hops is not None:
            of_hops.setdefault(one.hops, []).append(at)
    found = []
    for hops, places in sorted(of_hops.items()):
        scores = [
            score_side(profile, side.at(np.array(places)), all_parts=True) for side in (sides.machine, sides.reviewed)
        ]
        found.append(HopsLine(hops, len(places), scores[0].figure, scores[1].figure))
    return tuple(found)


def corrected_of_category(
    basis: Gathered, machine: SideScore, category: str, target: Target = Target.QUESTIONS_LIKE_THESE
) -> Figure:
    """The corrected overall score of a category; ``machine`` is its judge-only one, without which there is none."""
    if machine.outcome.value is None:
        answers = sum(one.category == category for one in basis.said.answers.values())
        return withheld(machine.figure.withheld, answers)
    return basis.correction.overall(basis.profile, machine, target, category)


SHOWN = 10


@dataclass(frozen=True, slots=True)
class AnswerLines(Sequence[AnswerLine]):
    """Every answer with its effective values (by the metric's name, then by answer) and its score. A line is made when
    it is asked for: those of a hundred thousand answers would take as much memory as what they are made of."""

    answers: Sequence[RunAnswer]
    values: Mapping[str, Mapping[int, Effective]]
    scores: Sequence[float | None]

    def __len__(self) -> int:
        return len(self.answers)

    @overload
    def __getitem__(self, at: int) -> AnswerLine: ...
    @overload
    def __getitem__(self, at: slice) -> list[AnswerLine]: ...
    def __getitem__(self, at: int | slice) -> AnswerLine | list[AnswerLine]:
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        answer = self.answers[at]
        values = {name: of[answer.answer_id] for name, of in self.values.items() if answer.answer_id in of}
        return AnswerLine(answer, values, self.scores[at])


def answer_lines(basis: Gathered) -> AnswerLines:
    """The answers of the run."""
    values = {basis.said.names[metric]: of for metric, of in basis.sides.found.values.items()}
    reviewed = basis.sides.reviewed
    return AnswerLines(reviewed.answers, values, own_scores(basis.profile, reviewed, basis.reviewed))


def own_scores(profile: ProfileSpec, side: Side, score: SideScore) -> list[float | None]:
    """Per answer: the profile's own score of it, or for run-mean profiles the weighted mean of the parts it has."""
    if profile.unit is Unit.PER_ANSWER:
        return [one.value for one in score.answers]
    total, weight = np.zeros(len(side.answers)), np.zeros(len(side.answers))
    for part in profile.parts:
        if metric := side.metrics.get(part.metric):
            zero, width = unit_of(profile, part, metric.scale.low, metric.scale.high)
            total[metric.numbered] += part.weight * ((metric.number[metric.numbered] - zero) / width)
            weight[metric.numbered] += part.weight
    return [t / w if w else None for t, w in zip(total.tolist(), weight.tolist(), strict=True)]


MOST_LISTED = 500  # answers in a report that a browser has to show at once


def lowest(lines: Sequence[AnswerLine]) -> Sequence[AnswerLine]:
    """Of many answers those with the lowest scores, in the order they come; those without a score come last."""
    if len(lines) <= MOST_LISTED:
        return lines
    scores = [line.score for line in lines]
    first = sorted(range(len(lines)), key=lambda at: (scores[at] is None, scores[at] or 0.0, at))
    return [lines[at] for at in sorted(first[:MOST_LISTED])]


def worst_answers(lines: Sequence[AnswerLine]) -> tuple[AnswerLine, ...]:
    """The answers with the lowest scores, the lowest first; perfect ones are not listed."""
    scored = (line for line in lines if line.score is not None and line.score < 1)
    return tuple(nsmallest(SHOWN, scored, key=lambda line: line.score or 0.0))


def disagreements(basis: Gathered) -> tuple[Disagreement, ...]:
    """Where a person's value is furthest from the primary judge's, by the share of the scale between them."""
    said, far = basis.said, []
    for metric_id, of_answers in basis.sides.found.heard.items():
        metric, name = said.metrics[metric_id], said.names[metric_id]
        title, scale = title_of(metric), metric.read_scale()
        for answer_id, value in of_answers.items():
            ours = value.judged.answer if value.judged else None
            theirs = value.label if value.value is None else value.value
            if not value.human or ours is None or theirs is None:
                continue
            if isinstance(ours, str) or isinstance(theirs, str):
                distance = float(ours != theirs)
            else:
                distance = abs(ours - theirs) / scale.width
            if distance > 0:
                answer = said.answers[answer_id]
                far.append(Disagreement(answer, name, title, scale, ours, theirs, value.raters, distance))
    return tuple(sorted(far, key=lambda one: -one.distance)[:SHOWN])
