"""Answers of a run as columns, for filters and pages that need not read scores."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from review.evidence.effective import EffectiveValue, ValueSource
from review.reports.inputs import ReportInputs
from review.reports.lines import AnswerLine, lowest_scored

# Cache kinds: columns of the answers, and columns of one metric (``values 12`` for primary key 12).
ANSWERS, VALUES = "answers", "values"
SOURCES = tuple(ValueSource)
# Source index of an answer that is neither scored nor rated.
NO_SOURCE = len(SOURCES)
Arrays = Mapping[str, np.ndarray[Any, Any]]


def values_kind(metric_id: int) -> str:
    """Cache kind of one metric's columns."""
    return f"{VALUES} {metric_id}"


def build_columns(inputs: ReportInputs, lines: Sequence[AnswerLine]) -> dict[str, bytes]:
    """Build the columns of all answers that did not fail, in question order, and those of each metric's effective
    values.

    A missing value is NaN or -1. The array ``listed`` has the ids of the answers that a short report lists, ``score``
    their scores."""
    answers = [answer for answer in inputs.evidence.answers.values() if not answer.failed]
    lowest_lines = lowest_scored(lines)
    run_values = inputs.sides.run_values
    categories = sorted({answer.category for answer in inputs.evidence.answers.values()})
    category_index = {name: index for index, name in enumerate(categories)}
    metrics = sorted(
        run_values.metrics, key=lambda pk: (pk not in run_values.computed, run_values.metrics[pk].name, pk)
    )
    columns = {
        ANSWERS: _pack(
            answer=np.array([answer.answer_id for answer in answers], dtype=np.int64),
            category=np.array([category_index[answer.category] for answer in answers], dtype=np.int32),
            categories=np.array(categories, dtype=np.str_),
            metrics=np.array(metrics, dtype=np.int64),
            listed=np.array([line.answer.answer_id for line in lowest_lines], dtype=np.int64),
            score=np.array([np.nan if line.score is None else line.score for line in lowest_lines], dtype=np.float64),
        )
    }
    ids = [answer.answer_id for answer in answers]
    return columns | {values_kind(pk): _value_columns(list(map(run_values.values[pk].get, ids))) for pk in metrics}


def _value_columns(values: Sequence[EffectiveValue | None]) -> bytes:
    labels = sorted({effective.label for effective in values if effective and effective.label is not None})
    label_index: dict[str | None, int] = {label: index for index, label in enumerate(labels)}
    source_index = {name: index for index, name in enumerate(SOURCES)}
    numbers = [np.nan if effective is None or effective.value is None else effective.value for effective in values]
    return _pack(
        value=np.array(numbers, dtype=np.float64),
        label=np.array(
            [-1 if effective is None else label_index.get(effective.label, -1) for effective in values], dtype=np.int32
        ),
        labels=np.array(labels, dtype=np.str_),
        source=np.array(
            [NO_SOURCE if effective is None else source_index[effective.source] for effective in values], dtype=np.uint8
        ),
    )


def _pack(**arrays: np.ndarray[Any, Any]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **arrays)
    return buffer.getvalue()


def unpack_columns(content: bytes) -> Arrays:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
