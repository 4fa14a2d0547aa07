"""Rating files: a tree to ratings and preferences that were made elsewhere, with who gave them, when and how, a value
on the scale of its metric or why there is none, and its parts: claims, nuggets or contexts with a label each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from evaluation.core.errors import Problem, Refused
from evaluation.core.samples import Finding
from evaluation.core.scales import Scale, ScaleKind
from evaluation.formats.answer_rows import MOST_SAMPLES, QUESTION_ID, TEXT, list_in
from evaluation.formats.tree import FileTree, Kind, Node, Problems
from evaluation.formats.values import Field, Row, boolean_of, number_of, rows_of, shown


class Rater(StrEnum):
    """Whether a person or a model gave the value."""

    HUMAN = "human"
    JUDGE = "judge"


class Phase(StrEnum):
    """Before the judge was seen, or after."""

    INITIAL = "initial"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class Origin:
    """``author``: a label; judges ``name@version``. ``probability``: with which the answer was sampled, in (0, 1],
    ``None`` where the file does not say. ``created`` is without an offset where the file gives none."""

    rater: Rater
    author: str
    phase: Phase
    blind: bool
    probability: float | None
    created: datetime | None


def read_origin(row: Row) -> Origin:
    """Rater and author are required; the phase is ``initial`` and the rating blind unless the row says otherwise."""
    if row.has("rater"):
        row.set_aside("source")
    rater = _choice(row, ("rater", "source"), tuple(Rater))
    author = row.required_name("author")
    phase = _choice(row, ("phase",), tuple(Phase), Phase.INITIAL)
    probability, created = row.number("probability", 0, 1), row.take("created")
    if probability == 0:
        row.note("out_of_range", "probability", value="0", low=0, high=1)
    return Origin(
        rater=Rater(rater or Rater.HUMAN),
        author=author,
        phase=Phase(phase or Phase.INITIAL),
        blind=row.boolean("blind", True),
        probability=probability,
        created=created.moment() if created else None,
    )


def _choice(row: Row, names: tuple[str, ...], known: tuple[str, ...], default: str = "") -> str:
    """One of the known words in any case; empty after its problem was noted."""
    if not row.has(*names):
        if not default:
            row.note("missing", names[0], names=", ".join(names))
        return default
    word = row.name(*names).lower()
    if word in known:
        return word
    row.note("unknown_choice", names[0], value=word, known=", ".join(known))
    return ""


# Reasons of a judge's failure that have a sentence of their own; others are kept behind ``reported``.
KNOWN_FAILURES = frozenset({"scale", "parse", "truncated", "refused", "filtered", "timeout", "upstream"})


def _off_scale(field: Field, scale: Scale, rater: Rater) -> str:
    """A judge's value off the scale is a failure that is kept; a person's refuses the file."""
    if rater is Rater.HUMAN:
        field.note("off_scale", value=shown(field.node), scale=str(scale))
    return f"scale: {shown(field.node)}"


def _without_value(row: Row, rater: Rater, reason: str) -> str:
    """Null needs its reason: the judge failed, or the person could not judge."""
    if not reason:
        row.note("value_missing", "value")
    if rater is Rater.HUMAN:
        return f"cannot_judge: {reason}"
    return reason if reason.partition(":")[0].strip() in KNOWN_FAILURES else f"reported: {reason}"


KINDS = ("claim", "nugget", "context")
LABELS = {
    "supported": "supported",
    "partial": "partial",
    "unsupported": "unsupported",
    "contradicted": "contradicted",
    "entailment": "supported",
    "neutral": "unsupported",
    "contradiction": "contradicted",
}
_KEYS = "kind, text, label, context, start, end, reason"
_FAR = 10_000_000


def _part(field: Field) -> Finding:
    """A part; labels of entailment (Entailment, Neutral, Contradiction) become ours."""
    row, place = Row(field.node, field.problems), f"{field.name}."
    kind = row.name("kind").lower()
    if kind not in KINDS:
        row.note("unknown_choice", f"{place}kind", value=kind, known=", ".join(KINDS))
    label = row.name("label").lower()
    if label not in LABELS:
        row.note("unknown_choice", f"{place}label", value=label, known=", ".join(LABELS))
    text = row.text("text")
    context, start, end = (row.integer(name, _FAR, place) for name in ("context", "start", "end"))
    if not text and (kind != "context" or context is None):
        row.note("missing", f"{place}text", names="text")
    if (start is None) != (end is None) or (start is not None and end is not None and start > end):
        field.note("part_range", start=start, end=end)
    reason = row.text("reason")
    for key in row.rest():
        field.note("unknown_key", key=key, known=_KEYS)
    return Finding(kind, text, LABELS.get(label, ""), context, start, end, reason)


def _parts(field: Field) -> tuple[Finding, ...]:
    """The parts in their order."""
    parts = []
    for one in field.expanded().items():
        if one.node.kind is Kind.MAP:
            parts.append(_part(one))
        else:
            one.note("not_mapping", found=one.node.kind.value)
    return tuple(parts)


def value_on(node: Node, scale: Scale) -> float | str | None:
    """The number, or the declared label of a class, that the node stands for; ``None`` when it is off the scale.

    Booleans count for ``yes_no`` alone: nobody can say which level ``true`` is.
    """
    if scale.kind is ScaleKind.CLASS:
        return _label(node, scale.labels)
    number = number_of(node)
    if number is None and scale.kind is ScaleKind.YES_NO:
        truth = boolean_of(node)
        number = None if truth is None else float(truth)
    return number if number is not None and scale.holds(number) else None


def _label(node: Node, labels: Sequence[str]) -> str | None:
    """The declared label, the only one that differs from the text in nothing but case."""
    if node.kind in {Kind.LIST, Kind.MAP}:
        return None
    spelled = (node.spelling or str(node.value)).strip()
    if spelled in labels:
        return spelled
    near = [label for label in labels if label.casefold() == spelled.casefold()]
    return near[0] if len(near) == 1 else None


def read_definitions(definitions: Sequence[str]) -> Mapping[str, Scale]:
    """Scales of unknown metrics from ``NAME=1..5``, ``NAME=0..1:real``, ``NAME=bool``, ``NAME=class:a|b``.

    :raises Refused: ``bad_definition`` with the definition that is none, or that defines a name a second time.
    """
    scales: dict[str, Scale] = {}
    for definition in definitions:
        name, equals, scale = definition.partition("=")
        if not equals or not name.strip() or name.strip() in scales:
            raise Refused("bad_definition", definition=definition)
        try:
            scales[name.strip()] = Scale.parse(scale)
        except ValueError as error:
            raise Refused("bad_definition", definition=definition) from error
    return scales


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
        row.note("missing", "question", names="question, question_id")
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
    field, scale = row.take("value"), PREFERENCE if rater is Rater.HUMAN else OF_JUDGES
    if field is None:
        return None, _without_value(row, rater, reason)
    value = value_on(field.node, scale)
    return (value, "") if isinstance(value, float) else (None, _off_scale(field, scale, rater))


def _side(row: Row, name: str) -> PairSide:
    """``{system, answer}``, or the answer alone."""
    taken = row.take(name)
    if taken is None:
        row.note("missing", name, names=name)
        return PairSide("", "")
    found = taken.expanded(split=False)
    if found.node.kind is not Kind.MAP:
        return PairSide("", taken.text())
    inner = Row(found.node, row.problems)
    answer = inner.take("answer", "text")
    if answer is None:
        inner.note("missing", f"{name}.answer", names="answer")
        return PairSide("", "")
    return PairSide(inner.name("system"), found.at(answer.node, ".answer").text())


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
        metric = row.peek_name("metric")
        if metric is not None and metric not in scales:
            unknown[metric] += 1
            first.setdefault(metric, row.line)
    for metric, count in unknown.items():
        problems.add("metric_unknown", first[metric], "metric", metric=metric[:80], rows=count)


def _read(row: Row, scales: Mapping[str, Scale]) -> RatingRow:
    question_id, metric = row.required_name(*QUESTION_ID), row.required_name("metric")
    origin, reason = read_origin(row), row.text("reason")
    field, several = row.take("value"), row.take("parts")
    parts = _parts(several) if several else ()
    value: float | str | None = None
    failure = ""
    if field is None and not parts:
        failure = _without_value(row, origin.rater, reason)
    elif field and metric in scales:
        value = value_on(field.node, scales[metric])
        failure = _off_scale(field, scales[metric], origin.rater) if value is None else ""
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
