"""The answers of a run as columns: to filter them by what counts without reading a score, and page through them."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from review.evidence.effective import Effective, Source
from review.reports.gathering import Gathered
from review.reports.lines import AnswerLine, lowest

ANSWERS, VALUES = "answers", "values"  # columns of all metrics, and of each by its key: ``values 12``
SOURCES = tuple(Source)
UNSAID = len(SOURCES)  # nobody scored or rated it
Arrays = Mapping[str, np.ndarray[Any, Any]]


def values_kind(metric_id: int) -> str:
    """The kind under which the columns of one metric are kept."""
    return f"{VALUES} {metric_id}"


def columns_of(basis: Gathered, lines: Sequence[AnswerLine]) -> dict[str, bytes]:
    """The answers that the system gave, in the order of the question set, with their categories; and for each metric
    whose value counts, what it is (NaN or -1 where there is none) and whose. ``listed`` are the answers of a short
    report with their scores."""
    answers = [one for one in basis.said.answers.values() if not one.failed]
    listed = lowest(lines)
    found = basis.sides.found
    categories = sorted({one.category for one in basis.said.answers.values()})
    place = {name: at for at, name in enumerate(categories)}
    metrics = sorted(found.metrics, key=lambda pk: (pk not in found.computed, found.metrics[pk].name, pk))
    kept = {
        ANSWERS: _packed(
            answer=np.array([one.answer_id for one in answers], dtype=np.int64),
            category=np.array([place[one.category] for one in answers], dtype=np.int32),
            categories=np.array(categories, dtype=np.str_),
            metrics=np.array(metrics, dtype=np.int64),
            listed=np.array([line.answer.answer_id for line in listed], dtype=np.int64),
            score=np.array([np.nan if line.score is None else line.score for line in listed], dtype=np.float64),
        )
    }
    ids = [one.answer_id for one in answers]
    return kept | {values_kind(pk): _values(list(map(found.values[pk].get, ids))) for pk in metrics}


def _values(said: Sequence[Effective | None]) -> bytes:
    labels = sorted({one.label for one in said if one and one.label is not None})
    place: dict[str | None, int] = {label: at for at, label in enumerate(labels)}
    source = {name: at for at, name in enumerate(SOURCES)}
    numbers = [np.nan if one is None or one.value is None else one.value for one in said]
    return _packed(
        value=np.array(numbers, dtype=np.float64),
        label=np.array([-1 if one is None else place.get(one.label, -1) for one in said], dtype=np.int32),
        labels=np.array(labels, dtype=np.str_),
        source=np.array([UNSAID if one is None else source[one.source] for one in said], dtype=np.uint8),
    )


def _packed(**arrays: np.ndarray[Any, Any]) -> bytes:
    made = io.BytesIO()
    np.savez_compressed(made, allow_pickle=False, **arrays)
    return made.getvalue()


def unpacked(content: bytes) -> Arrays:
    """The columns by name."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
