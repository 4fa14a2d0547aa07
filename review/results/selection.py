"""A run's answers narrowed down by what was said of them, for lists and for decisions about many at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.core.canonical import content_hash
from evaluation.models import MetricDefinition, Run
from review.evidence.answers import RunAnswer, run_answers
from review.evidence.effective import Effective, RunValues, Source, effective_values


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked for; ``low`` and ``high`` are inclusive ends of the metric's value that counts, ``label`` a class,
    ``source`` whose value counts, ``words`` stand in the question."""

    metric: str = ""
    low: float | None = None
    high: float | None = None
    label: str = ""
    source: str = ""
    category: str = ""
    words: str = ""


@dataclass(frozen=True, slots=True)
class Selected:
    """An answer with the value of the chosen metric that counts; ``None`` where nobody scored or rated it."""

    answer: RunAnswer
    effective: Effective | None


@dataclass(frozen=True, slots=True)
class Selection:
    """The answers that match, in the order of the question set. ``metric`` is the chosen one, else the first."""

    metric: MetricDefinition | None
    metrics: tuple[MetricDefinition, ...]
    categories: tuple[str, ...]
    rows: tuple[Selected, ...]

    @property
    def mark(self) -> str:
        """What tells whether the same answers match, with the same values."""
        said = [(one.answer.answer_id, one.effective.value if one.effective else None) for one in self.rows]
        return content_hash([self.metric.pk if self.metric else 0, said])


def select(run: Run, wanted: Wanted) -> Selection:
    """The run's answers that match. Seven queries, whatever there is."""
    values = effective_values(run)
    metrics = tuple(sorted(values.metrics.values(), key=lambda one: (one.pk not in values.computed, one.name, one.pk)))
    metric = next((one for one in metrics if one.name == wanted.metric), metrics[0] if metrics else None)
    answers = run_answers(run)
    rows = [Selected(answer, _value(values, answer, metric)) for answer in answers if not answer.failed]
    return Selection(
        metric=metric,
        metrics=metrics,
        categories=tuple(sorted({answer.category for answer in answers if answer.category})),
        rows=tuple(row for row in rows if _matches(row, wanted)),
    )


def narrowed(found: Selection, answer_ids: Sequence[int]) -> Selection:
    """Of a selection the named answers alone."""
    named = set(answer_ids)
    rows = tuple(row for row in found.rows if row.answer.answer_id in named)
    return Selection(found.metric, found.metrics, found.categories, rows)


def _value(values: RunValues, answer: RunAnswer, metric: MetricDefinition | None) -> Effective | None:
    return None if metric is None else values.values.get((answer.answer_id, metric.pk))


def _matches(row: Selected, wanted: Wanted) -> bool:
    one = row.effective
    if wanted.category and row.answer.category != wanted.category:
        return False
    if wanted.words and wanted.words.casefold() not in row.answer.question.casefold():
        return False
    if wanted.source and str(one.source if one else Source.NONE) != wanted.source:
        return False
    if wanted.label and (one is None or one.label != wanted.label):
        return False
    if wanted.low is None and wanted.high is None:
        return True
    if one is None or one.value is None:
        return False
    low, high = wanted.low, wanted.high
    return (low is None or one.value >= low) and (high is None or one.value <= high)
