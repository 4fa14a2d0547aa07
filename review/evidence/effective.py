"""The value of a metric for an answer that counts: a decision, else the experts, else the judge."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from evaluation.core.registry import Kind, ScaleKind
from evaluation.core.samples import Status
from evaluation.models import MetricDefinition, Run
from review.evidence.decisions import Decision
from review.evidence.experts import ExpertRating, effective_ratings
from review.evidence.judged import Judged, Key, majority
from review.evidence.run_evidence import Said, said_of

NO_VALUE = "no_value"  # nobody has scored or rated it yet
_UNSCORED = Judged(Status.FAILED, reason=NO_VALUE, repeats=0)


class Source(StrEnum):
    """Whose value counts. ``rule``: the metric is computed without a judge."""

    OVERRIDE = "override"
    REVIEW = "review"
    JUDGE = "judge"
    RULE = "rule"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Effective:
    """The value of one metric for one answer that counts, beside what the judge (or rule) said.

    ``value`` or ``label`` is set unless ``source`` is none; then ``status`` tells failed, not applicable and pending
    (``None``) apart and ``reason`` says why. ``raters`` counts the experts behind the value, or who were tied:
    ``unresolved`` means that they were split evenly over yes and no or classes, so that the judge's value is shown
    and an adjudication is asked for. ``judged`` is ``None`` where nothing was scored.
    """

    answer_id: int
    metric_id: int
    source: Source
    status: Status | None
    value: float | None = None
    label: str | None = None
    reason: str = ""
    raters: int = 0
    unresolved: bool = False
    judged: Judged | None = None

    @property
    def human(self) -> bool:
        """Whether a person's decision or rating gave the value."""
        return self.source in {Source.OVERRIDE, Source.REVIEW}


@dataclass(frozen=True, slots=True)
class RunValues:
    """All effective values of a run, and the metrics they belong to, by primary key.

    ``computed`` are the metrics of which the run has scores; the others were only rated.
    """

    values: dict[Key, Effective]
    metrics: dict[int, MetricDefinition]
    computed: frozenset[int]

    def of_metric(self, metric_id: int) -> list[Effective]:
        """The values of one metric, in the order of the answers."""
        return [value for (_, metric), value in self.values.items() if metric == metric_id]


def effective_values(run: Run, answer_ids: Collection[int] | None = None) -> RunValues:
    """The effective values of a run, or of some of its answers, in a fixed number of queries (seven).

    Every metric the run has computed has a row for every answer; a metric that was only rated has rows where it was.
    Over a whole run, answers with an upheld flag of a bad question or reference are left out.
    """
    return values_from(said_of(run, answer_ids))


def values_from(said: Said) -> RunValues:
    """The effective values of everything that was said; the run's own metrics first, each in the answers' order."""
    ratings = effective_ratings(said.ratings)
    seen = said.computed | {metric for _, metric in (*ratings, *said.decisions)}
    values: dict[Key, Effective] = {}
    for metric_id in sorted(seen, key=lambda pk: (pk not in said.computed, said.metrics[pk].name, pk)):
        metric = said.metrics[metric_id]
        for answer_id in said.answers:
            key = (answer_id, metric_id)
            if metric_id in said.computed or key in ratings or key in said.decisions:
                values[key] = effective(
                    key, metric, said.decisions.get(key), ratings.get(key, ()), said.scored.get(key)
                )
    return RunValues(values, {pk: said.metrics[pk] for pk in seen}, said.computed)


def effective(
    key: Key,
    metric: MetricDefinition,
    decision: Decision | None,
    ratings: Sequence[ExpertRating],
    scored: Judged | None,
) -> Effective:
    """The one value that counts, from everything that was said of an answer."""
    answer_id, metric_id = key
    if decision is not None:
        return Effective(
            answer_id,
            metric_id,
            Source.OVERRIDE,
            Status.SCORED,
            decision.value,
            decision.label,
            raters=len(ratings),
            judged=scored,
        )
    value, label = together(metric, ratings)
    if value is not None or label is not None:
        return Effective(
            answer_id, metric_id, Source.REVIEW, Status.SCORED, value, label, raters=len(ratings), judged=scored
        )
    said = scored or _UNSCORED
    machine = Source.RULE if metric.kind in {Kind.RULE, Kind.EMBEDDING} else Source.JUDGE
    return Effective(
        answer_id,
        metric_id,
        machine if said.status is Status.SCORED else Source.NONE,
        said.status if scored else None,
        said.value,
        said.label,
        reason="" if said.status is Status.SCORED else said.reason,
        raters=len(ratings),
        unresolved=bool(ratings),
        judged=scored,
    )


def together(metric: MetricDefinition, ratings: Sequence[ExpertRating]) -> tuple[float | None, str | None]:
    """The experts' common value: the mean; the majority for yes/no and classes, neither where they are tied."""
    if not ratings:
        return None, None
    kind = metric.read_scale().kind
    if kind is ScaleKind.CLASS:
        return None, majority(str(rating.label) for rating in ratings)
    values = [rating.value for rating in ratings if rating.value is not None]
    mean = math.fsum(values) / len(values)
    if kind is ScaleKind.YES_NO:
        return (None if math.isclose(mean, 0.5) else float(mean > 0.5)), None
    return mean, None
