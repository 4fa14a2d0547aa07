"""A tree to ratings and preferences that were made elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.core.errors import Problem
from evaluation.core.registry import Scale
from evaluation.core.samples import Finding
from evaluation.files.answer_rows import MOST_SAMPLES, QUESTION_ID, list_in
from evaluation.files.question_fields import TEXT
from evaluation.files.rating_values import (
    Origin,
    Rater,
    failure_off_scale,
    failure_without_value,
    read_origin,
    read_parts,
    value_on,
)
from evaluation.files.tree import FileTree, Kind, Problems
from evaluation.files.values import Row, expand_cell, read_text, rows_of

PREFERENCE = Scale.parse("-2..2")
OF_JUDGES = Scale.parse("-2..2:real")  # the difference of two scores, say


@dataclass(frozen=True, slots=True)
class PairSide:
    """One of the two answers; ``system`` is empty where the file does not name it."""

    system: str
    answer: str


@dataclass(frozen=True, slots=True)
class PairRow:
    """``value``: from -2 (a much better) to 2 (b much better), whole for people; without one ``failure`` says why, as
    for ratings. ``metric`` is what was compared, ``preference`` where the row does not say."""

    pair_id: str
    question_id: str
    question: str
    answer_a: PairSide
    answer_b: PairSide
    metric: str
    value: float | None
    failure: str
    reason: str
    origin: Origin
    metadata: Mapping[str, Any]
    line: int


def read_pair(row: Row) -> PairRow:
    """One pair; what is missing or off the scale is noted."""
    question_id, question = row.name(*QUESTION_ID), row.text(*TEXT)
    if not question and not question_id:
        row.problems.add("missing", row.line, "question", names="question, question_id")
    origin, reason = read_origin(row), row.text("reason")
    value, failure = _value(row, origin.rater, reason)
    return PairRow(
        pair_id=row.name("pair_id"),
        question_id=question_id,
        question=question,
        answer_a=_side(row, "answer_a"),
        answer_b=_side(row, "answer_b"),
        metric=row.name("metric") or "preference",
        value=value,
        failure=failure,
        reason=reason,
        origin=origin,
        metadata=row.rest(),
        line=row.line,
    )


def _value(row: Row, rater: Rater, reason: str) -> tuple[float | None, str]:
    node = row.take("value")
    if node is None:
        return None, failure_without_value(row, rater, reason)
    scale = PREFERENCE if rater is Rater.HUMAN else OF_JUDGES
    value = value_on(node, scale)
    if isinstance(value, float):
        return value, ""
    return None, failure_off_scale(node, scale, row, rater)


def _side(row: Row, name: str) -> PairSide:
    """``{system, answer}``, or the answer alone."""
    taken = row.take(name)
    if taken is None:
        row.problems.add("missing", row.line, name, names=name)
        return PairSide("", "")
    node = expand_cell(taken, name, row.problems, split=False)
    if taken.kind is Kind.CELL and node.kind is not Kind.MAP:
        node = taken
    if node.kind is not Kind.MAP:
        return PairSide("", read_text(node, name, row.problems))
    inner = Row(node, row.problems)
    answer = inner.take("answer", "text")
    if answer is None:
        row.problems.add("missing", node.line, f"{name}.answer", names="answer")
        return PairSide("", "")
    return PairSide(inner.name("system"), read_text(answer, f"{name}.answer", row.problems))


@dataclass(frozen=True, slots=True)
class RatingRow:
    """One value of one metric for one answer.

    ``value`` (or ``label``, for classes) is on the metric's scale. Without one, ``failure`` is a reason code with its
    detail: ``scale: 7`` (a judge off the scale), ``reported: ...`` (a judge's null), ``cannot_judge: ...`` (a
    person's). Neither value nor failure: the metric's formula gives the value from ``parts``. ``reason`` is the
    rater's text as it stands. ``answer_key`` names the answer itself where the row came back from a task of ours.
    """

    question_id: str
    sample: int
    metric: str
    value: float | None
    label: str | None
    failure: str
    reason: str
    parts: tuple[Finding, ...]
    origin: Origin
    metadata: Mapping[str, Any]
    line: int
    answer_key: str = ""


@dataclass(frozen=True, slots=True)
class RatingFile:
    """The ratings and pairs in the file's order."""

    ratings: tuple[RatingRow, ...]
    pairs: tuple[PairRow, ...]
    set_metadata: Mapping[str, Any]
    metadata_keys: tuple[str, ...]
    remarks: tuple[Problem, ...]
    format: str
    encoding: str


def rating_file(tree: FileTree, problems: Problems, *, scales: Mapping[str, Scale]) -> RatingFile:
    """Read ratings (and pairs: rows with ``pair_id``). ``scales``: of every metric that is known or defined.

    :raises InvalidFile: with every problem of every row, a person's value off the scale among them.
    """
    nodes, facts = list_in(tree.root, ("ratings",), problems)
    rows = [Row(node, problems) for node in rows_of(nodes, problems)]
    if not rows and not problems.found:
        problems.add("no_rows", tree.root.line)
    pair_rows = [row for row in rows if row.has("pair_id")]
    rating_rows = [row for row in rows if not row.has("pair_id")]
    _refuse_unknown_metrics(rating_rows, scales, problems)
    pairs = [read_pair(row) for row in pair_rows]
    ratings = [_read(row, scales) for row in rating_rows]
    refuse_duplicates([*ratings, *pairs], problems)
    problems.refuse_if_any()
    read: list[RatingRow | PairRow] = [*ratings, *pairs]
    keys = tuple(sorted({key for row in read for key in row.metadata}))
    _remark(ratings, keys, problems)
    return RatingFile(tuple(ratings), tuple(pairs), facts, keys, tuple(problems.remarks), tree.format, tree.encoding)


def _refuse_unknown_metrics(rows: Sequence[Row], scales: Mapping[str, Scale], problems: Problems) -> None:
    unknown: Counter[str] = Counter()
    first: dict[str, int] = {}
    for row in rows:
        node = row.peek("metric")
        if node is None or node.kind not in {Kind.TEXT, Kind.CELL}:
            continue
        metric = str(node.value).strip()
        if metric not in scales:
            unknown[metric] += 1
            first.setdefault(metric, row.line)
    for metric, count in unknown.items():
        problems.add("metric_unknown", first[metric], "metric", metric=metric[:80], rows=count)


def _read(row: Row, scales: Mapping[str, Scale]) -> RatingRow:
    question_id, metric = row.required_name(*QUESTION_ID), row.required_name("metric")
    origin, reason = read_origin(row), row.text("reason")
    node, parts_node = row.take("value"), row.take("parts")
    parts = () if parts_node is None else read_parts(parts_node, row.problems)
    value: float | str | None = None
    failure = ""
    if node is None and not parts:
        failure = failure_without_value(row, origin.rater, reason)
    elif node is not None and metric in scales:
        value = value_on(node, scales[metric])
        failure = failure_off_scale(node, scales[metric], row, origin.rater) if value is None else ""
    return RatingRow(
        question_id=question_id,
        sample=row.integer("sample", MOST_SAMPLES) or 0,
        metric=metric,
        value=value if isinstance(value, float) else None,
        label=value if isinstance(value, str) else None,
        failure=failure,
        reason=reason,
        parts=parts,
        origin=origin,
        metadata=row.rest(),
        line=row.line,
    )


def refuse_duplicates(rows: Sequence[RatingRow | PairRow], problems: Problems) -> None:
    """One rater says one thing about one answer, metric and phase: of two values nobody could say which counts."""
    first: dict[tuple[object, ...], RatingRow | PairRow] = {}
    for row in rows:
        about = (row.question_id, row.sample, row.answer_key) if isinstance(row, RatingRow) else ("", row.pair_id)
        key = (*about, row.metric, row.origin.rater, row.origin.author, row.origin.phase)
        earlier = first.setdefault(key, row)
        if earlier is not row:
            problems.add("duplicate_rating", row.line, first_line=earlier.line)


def _remark(ratings: Sequence[RatingRow], keys: Sequence[str], problems: Problems) -> None:
    off_scale = sum(row.failure.startswith("scale") for row in ratings)
    without = sum(bool(row.failure) for row in ratings) - off_scale
    if off_scale:
        problems.remark("judge_off_scale", rows=off_scale)
    if without:
        problems.remark("ratings_without_value", rows=without)
    if keys:
        problems.remark("metadata_kept", keys=", ".join(keys))
