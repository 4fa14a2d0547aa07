"""Metrics with classes as tables: how many answers of each category have which label, and who abstained when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.core.samples import Status
from evaluation.judging.families.answer_class import DONT_KNOW
from evaluation.profiles.spec import ProfileSpec
from review.reports.scores import NEGATIVE
from review.reports.values import MetricValues, Side, Value
from review.statistics.agreement.clopper_pearson import clopper_pearson


@dataclass(frozen=True, slots=True)
class ClassShare:
    """A label's count and share of the labelled answers, with the exact 95% interval."""

    label: str
    count: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ClassTable:
    """A class metric over the run (one system), and by category: label -> count. ``name`` is the source's name."""

    metric: str
    name: str
    labels: tuple[str, ...]
    total: tuple[ClassShare, ...]
    categories: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Abstention:
    """Answerable questions and questions whose right answer is to abstain, by whether the answer abstained. Abstaining
    on an unanswerable question is right."""

    answerable_answered: int
    answerable_abstained: int
    unanswerable_answered: int
    unanswerable_abstained: int


def class_tables(profile: ProfileSpec, side: Side) -> tuple[ClassTable, ...]:
    """The tables of the profile's class metrics that have labels."""
    metrics = [one for name, one in side.metrics.items() if name in profile.metrics and one.scale.labels]
    return tuple(_table(profile, one) for one in metrics if one.labels)


def _table(profile: ProfileSpec, metric: MetricValues) -> ClassTable:
    counts = Counter(metric.labels)
    total = counts.total()
    categories: dict[str, Counter[str]] = {}
    for answer, value in zip(metric.answers, metric.values, strict=True):
        if value.label is not None:
            categories.setdefault(answer.category, Counter())[value.label] += 1
    labels = metric.scale.labels
    return ClassTable(
        metric=metric.name,
        name=profile.report_name(metric.name),
        labels=labels,
        total=tuple(
            ClassShare(label, counts[label], counts[label] / total, *clopper_pearson(counts[label] / total, total))
            for label in labels
        ),
        categories={name: {label: found[label] for label in labels} for name, found in categories.items()},
    )


def abstention(side: Side) -> Abstention | None:
    """Who abstained when, by the rule ``dont_know``, else by the class of the answer; ``None`` without either."""
    metric = side.metrics.get("dont_know") or side.metrics.get("answer_class")
    if metric is None:
        return None
    pairs = [
        (answer.category != NEGATIVE, _abstained(value))
        for answer, value in zip(metric.answers, metric.values, strict=True)
        if value.status is Status.SCORED
    ]
    return _counted(pairs) if pairs else None


def _abstained(value: Value) -> bool:
    return value.label == DONT_KNOW or value.value == 1.0


def _counted(pairs: Sequence[tuple[bool, bool]]) -> Abstention:
    found = Counter(pairs)
    return Abstention(found[True, False], found[True, True], found[False, False], found[False, True])
