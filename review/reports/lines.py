"""Report rows per metric, category, hop count and answer, with the lowest scores and largest disagreements."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import overload

import numpy as np

from evaluation.core.metric_specs import Bilingual, MetricKind
from evaluation.core.samples import Status
from evaluation.core.scales import Scale, ScaleKind
from evaluation.models import MetricDefinition
from evaluation.profiles.arithmetic import unit_scale, worst_and_best_mean
from evaluation.profiles.per_answer import ANSWER_OVERALL
from evaluation.profiles.spec import OverallUnit, ProfileSpec
from review.evidence.answers import RunAnswer
from review.evidence.effective import EffectiveValue, ValueSource
from review.evidence.scorers import metric_title
from review.reports.figure import Figure, Withheld, withheld
from review.reports.inputs import ReportInputs
from review.reports.scores import (
    NO_VALUE,
    MetricValues,
    Side,
    SideScore,
    Summand,
    figure_over_questions,
    places_by_category,
    score_side,
)
from review.statistics.correction.outcome import Target


@dataclass(frozen=True, slots=True)
class Coverage:
    """Number of answers per status of a metric. ``pending`` answers have no result yet."""

    scored: int
    failed: int
    not_applicable: int
    pending: int


@dataclass(frozen=True, slots=True)
class Latency:
    """Mean, median and 95th percentile of ``n`` response times, in seconds."""

    n: int
    mean: float
    p50: float
    p95: float


@dataclass(frozen=True, slots=True)
class MetricLine:
    """A metric over the run. ``sections.METRICS`` documents each field.

    Means are on the metric's own ``scale``. Class metrics have ``shares`` (label -> share of effective labels) instead.
    The profile's source lists the metric as ``report_name``, multiplied by ``report_factor``."""

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
    """Figures of one question category.

    ``metrics`` maps names to judge-only and reviewed means, ``corrected`` to corrected means. Overall figures exist
    only if the category has every part of the profile."""

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
        """Mean response time in seconds, or ``None`` if nothing was timed."""
        return self.latency.mean if self.latency else None


@dataclass(frozen=True, slots=True)
class HopsLine:
    """Overall scores of the answers to questions that link ``hops`` facts."""

    hops: int
    answers: int
    judge_only: Figure
    reviewed: Figure

    @property
    def figures(self) -> dict[str, int | Figure]:
        """Figures by name, without the number of hops."""
        return {"answers": self.answers, "judge_only": self.judge_only, "reviewed": self.reviewed}


@dataclass(frozen=True, slots=True)
class AnswerLine:
    """An answer with its effective values by metric name.

    ``score`` (0 to 1) is its weighted mean over the profile's applicable parts, or ``None``. It ranks answers and is
    not the overall score of a run-mean profile."""

    answer: RunAnswer
    values: Mapping[str, EffectiveValue]
    score: float | None


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A difference between primary judge and experts. ``distance`` is a share of the scale, or 1 for classes."""

    answer: RunAnswer
    metric: str
    title: Bilingual
    scale: Scale
    judge: float | str
    expert: float | str
    raters: int
    distance: float


def coverage_of(values: MetricValues) -> Coverage:
    return Coverage(*map(values.count, (Status.SCORED, Status.FAILED, Status.NOT_APPLICABLE, None)))


def mean_figure(profile: ProfileSpec, values: MetricValues) -> Figure:
    """Mean of a metric with its variation over questions, and bounds if results failed."""
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
    worst, best = worst_and_best_mean(profile, mean)
    return dataclasses.replace(figure, worst=worst, best=best)


def latency_of(seconds: Sequence[float]) -> Latency | None:
    """Mean, median and 95th percentile (linear interpolation) of response times, or ``None`` for no times."""
    if not seconds:
        return None
    p50, p95 = np.quantile(np.array(seconds), [0.5, 0.95])
    return Latency(len(seconds), float(np.mean(seconds)), float(p50), float(p95))


def answer_latency(answers: Iterable[RunAnswer]) -> Latency | None:
    """Response times of all timed answers that did not fail."""
    return latency_of([a.latency_seconds for a in answers if a.latency_seconds is not None and not a.failed])


def metric_lines(basis: ReportInputs) -> tuple[MetricLine, ...]:
    """Metrics of the run: the profile's parts in its order, then other computed metrics, then those only rated.

    The stored overall score of answers is omitted, because it is the overall score itself."""
    run_values = basis.sides.run_values
    order = {name: position for position, name in enumerate(basis.profile.metrics)}
    rows = sorted(
        (row for row in run_values.metrics.values() if row.name != ANSWER_OVERALL.name),
        key=lambda m: (m.pk not in run_values.computed, order.get(m.name, len(order)), m.name, m.version),
    )
    return tuple(_metric_line(basis, metric) for metric in rows)


def _metric_line(basis: ReportInputs, metric: MetricDefinition) -> MetricLine:
    profile, sides, scale = basis.profile, basis.sides, metric.read_scale()
    values_by_answer = sides.run_values.human_values[metric.pk]
    computed = metric.pk in sides.run_values.computed
    if computed:
        machine, reviewed = sides.machine.metrics[metric.name], sides.reviewed.metrics[metric.name]
    # Only experts gave values.
    else:
        human_values = [values_by_answer.get(answer.answer_id, NO_VALUE) for answer in sides.reviewed.answers]
        all_values = MetricValues.of(metric.name, scale, sides.reviewed.answers, sides.reviewed.group, human_values)
        places = np.flatnonzero([answer.answer_id in values_by_answer for answer in all_values.answers])
        reviewed = all_values.subset(places, [all_values.answers[place] for place in places.tolist()])
        machine = all_values.subset(places[:0], [])
    weight = next((part.weight for part in profile.parts if part.metric == metric.name), 0.0)
    values = values_by_answer.values()
    human = any(value.human for value in values)
    labels = Counter(reviewed.labels)
    return MetricLine(
        metric_id=metric.pk,
        name=basis.evidence.names[metric.pk],
        version=metric.version,
        title=metric_title(metric),
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
        overridden=sum(value.source is ValueSource.OVERRIDE for value in values),
        unresolved=sum(value.unresolved for value in values),
        shares={label: count / labels.total() for label, count in labels.most_common()},
        latency=latency_of(machine.number[machine.numbered].tolist()) if scale.kind is ScaleKind.SECONDS else None,
    )


def category_lines(basis: ReportInputs) -> tuple[CategoryLine, ...]:
    profile, sides, lines = basis.profile, basis.sides, []
    computed = [sides.run_values.metrics[pk] for pk in sides.run_values.computed]
    # Experts do not rate derived metrics.
    derived = {metric.name for metric in computed if metric.kind == MetricKind.DERIVED}
    reviewed_answers = sides.run_values.reviewed
    for name, places in places_by_category(sides.machine.answers).items():
        machine, reviewed = sides.machine.subset(places), sides.reviewed.subset(places)
        is_reviewed = any(answer.answer_id in reviewed_answers for answer in machine.answers)
        score = score_side(profile, machine, all_parts=True)
        not_reviewed = withheld(Withheld.NOT_REVIEWED, len(places))
        metrics = {
            metric: (
                mean_figure(profile, values),
                mean_figure(profile, reviewed.metrics[metric])
                if is_reviewed and metric not in derived
                else not_reviewed,
            )
            for metric, values in machine.metrics.items()
        }
        lines.append(
            CategoryLine(
                name=name,
                answers=len(places),
                judge_only=score.figure,
                reviewed=score_side(profile, reviewed, all_parts=True).figure if is_reviewed else not_reviewed,
                corrected_overall=corrected_category_score(basis, score, name),
                metrics=metrics,
                corrected={metric.name: basis.correction.of_metric(metric, name) for metric in computed},
                coverage={metric: coverage_of(values) for metric, values in machine.metrics.items()},
                latency=answer_latency(machine.answers),
            )
        )
    return tuple(lines)


def hops_lines(basis: ReportInputs) -> tuple[HopsLine, ...]:
    """Figures by the number of facts that questions link. Empty if no question states it."""
    profile, sides = basis.profile, basis.sides
    places_by_hops: dict[int, list[int]] = {}
    for index, answer in enumerate(sides.machine.answers):
        if answer.hops is not None:
            places_by_hops.setdefault(answer.hops, []).append(index)
    lines = []
    for hops, places in sorted(places_by_hops.items()):
        scores = [
            score_side(profile, side.subset(np.array(places)), all_parts=True)
            for side in (sides.machine, sides.reviewed)
        ]
        lines.append(HopsLine(hops, len(places), scores[0].figure, scores[1].figure))
    return tuple(lines)


def corrected_category_score(
    basis: ReportInputs, machine: SideScore, category: str, target: Target = Target.QUESTIONS_LIKE_THESE
) -> Figure:
    """Corrected overall score of a category. Withheld if the judge-only score ``machine`` is."""
    if machine.outcome.value is None:
        answers = sum(answer.category == category for answer in basis.evidence.answers.values())
        return withheld(machine.figure.withheld, answers)
    return basis.correction.overall(basis.profile, machine, target, category)


TOP_COUNT = 10


@dataclass(frozen=True, slots=True)
class AnswerLines(Sequence[AnswerLine]):
    """All answers with their effective values (metric name -> answer -> value) and scores.

    Lines are built on access, because those of a hundred thousand answers would double memory use."""

    answers: Sequence[RunAnswer]
    values: Mapping[str, Mapping[int, EffectiveValue]]
    scores: Sequence[float | None]

    def __len__(self) -> int:
        return len(self.answers)

    @overload
    def __getitem__(self, index: int) -> AnswerLine: ...
    @overload
    def __getitem__(self, index: slice) -> list[AnswerLine]: ...
    def __getitem__(self, index: int | slice) -> AnswerLine | list[AnswerLine]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        answer = self.answers[index]
        values = {
            name: by_answer[answer.answer_id]
            for name, by_answer in self.values.items()
            if answer.answer_id in by_answer
        }
        return AnswerLine(answer, values, self.scores[index])


def answer_lines(basis: ReportInputs) -> AnswerLines:
    values = {basis.evidence.names[metric]: by_answer for metric, by_answer in basis.sides.run_values.values.items()}
    reviewed = basis.sides.reviewed
    return AnswerLines(reviewed.answers, values, answer_scores(basis.profile, reviewed, basis.reviewed))


def answer_scores(profile: ProfileSpec, side: Side, score: SideScore) -> list[float | None]:
    """Score per answer: the profile's own, or for run-mean profiles the weighted mean of available parts."""
    if profile.unit is OverallUnit.PER_ANSWER:
        return [answer_score.value for answer_score in score.answers]
    total, weight = np.zeros(len(side.answers)), np.zeros(len(side.answers))
    for part in profile.parts:
        if metric := side.metrics.get(part.metric):
            zero, width = unit_scale(profile, part, metric.scale.low, metric.scale.high)
            total[metric.numbered] += part.weight * ((metric.number[metric.numbered] - zero) / width)
            weight[metric.numbered] += part.weight
    return [t / w if w else None for t, w in zip(total.tolist(), weight.tolist(), strict=True)]


# More answers would slow the browser.
MAX_HTML_ANSWERS = 500


def lowest_scored(lines: Sequence[AnswerLine]) -> Sequence[AnswerLine]:
    """At most ``MAX_HTML_ANSWERS`` lines with the lowest scores, in their original order. Unscored answers rank
    last."""
    if len(lines) <= MAX_HTML_ANSWERS:
        return lines
    scores = [line.score for line in lines]
    by_score = sorted(range(len(lines)), key=lambda index: (scores[index] is None, scores[index] or 0.0, index))
    return [lines[index] for index in sorted(by_score[:MAX_HTML_ANSWERS])]


def worst_answers(lines: Sequence[AnswerLine]) -> tuple[AnswerLine, ...]:
    """The lowest-scored answers, lowest first, without perfect ones."""
    scored = (line for line in lines if line.score is not None and line.score < 1)
    return tuple(nsmallest(TOP_COUNT, scored, key=lambda line: line.score or 0.0))


def disagreements(basis: ReportInputs) -> tuple[Disagreement, ...]:
    """The largest distances between experts' values and the primary judge's, largest first."""
    evidence, candidates = basis.evidence, []
    for metric_id, by_answer in basis.sides.run_values.human_values.items():
        metric, name = evidence.metrics[metric_id], evidence.names[metric_id]
        title, scale = metric_title(metric), metric.read_scale()
        for answer_id, value in by_answer.items():
            judge = value.judged.value_or_label if value.judged else None
            expert = value.label if value.value is None else value.value
            if not value.human or judge is None or expert is None:
                continue
            if isinstance(judge, str) or isinstance(expert, str):
                distance = float(judge != expert)
            else:
                distance = abs(judge - expert) / scale.width
            if distance > 0:
                answer = evidence.answers[answer_id]
                candidates.append(Disagreement(answer, name, title, scale, judge, expert, value.raters, distance))
    return tuple(sorted(candidates, key=lambda disagreement: -disagreement.distance)[:TOP_COUNT])
