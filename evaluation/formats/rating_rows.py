"""Rating files: a parse tree to external ratings and preferences.

Each row has an origin (rater, author, phase, time), a value on its metric's scale or a failure reason, and labelled
parts: claims, nuggets or contexts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from evaluation.core.errors import DomainError, Problem
from evaluation.core.samples import Finding
from evaluation.core.scales import Scale, ScaleKind
from evaluation.formats.answer_rows import MAX_SAMPLES, QUESTION_ID, QUESTION_TEXT, find_rows
from evaluation.formats.tree import FileTree, Node, NodeKind, Problems
from evaluation.formats.values import Field, Row, display_value, mapping_rows, parse_boolean, parse_number


class Rater(StrEnum):
    """Source of a value: a person or a model."""

    HUMAN = "human"
    JUDGE = "judge"


class Phase(StrEnum):
    """Rating given before (``initial``) or after (``final``) the judge was shown."""

    INITIAL = "initial"
    FINAL = "final"


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a rating.

    ``author``: a label; for judges ``name@version``. ``probability``: probability with which the answer was sampled, in
    (0, 1], or ``None`` if unknown. ``created`` is naive if the file gives no offset."""

    rater: Rater
    author: str
    phase: Phase
    blind: bool
    probability: float | None
    created: datetime | None


def read_origin(row: Row) -> Origin:
    """Read the origin. Rater and author are required; phase defaults to ``initial`` and blind to true."""
    if row.has("rater"):
        row.move_to_metadata("source")
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
    """Return one of the known words, ignoring case; empty after noting a problem."""
    if not row.has(*names):
        if not default:
            row.note("missing", names[0], names=", ".join(names))
        return default
    word = row.name(*names).lower()
    if word in known:
        return word
    row.note("unknown_choice", names[0], value=word, known=", ".join(known))
    return ""


# Failure reasons with a message of their own; others are stored after ``reported``.
KNOWN_FAILURES = frozenset({"scale", "parse", "truncated", "refused", "filtered", "timeout", "upstream"})


def _off_scale_failure(field: Field, scale: Scale, rater: Rater) -> str:
    """Failure text of an off-scale value. For a judge it is stored; for a person it is a problem of the file."""
    if rater is Rater.HUMAN:
        field.note("off_scale", value=display_value(field.node), scale=str(scale))
    return f"scale: {display_value(field.node)}"


def _missing_value_failure(row: Row, rater: Rater, reason: str) -> str:
    """Failure text of a null value, which requires a reason: the judge failed, or the person could not judge."""
    if not reason:
        row.note("value_missing", "value")
    if rater is Rater.HUMAN:
        return f"cannot_judge: {reason}"
    return reason if reason.partition(":")[0].strip() in KNOWN_FAILURES else f"reported: {reason}"


PART_KINDS = ("claim", "nugget", "context")
PART_LABELS = {
    "supported": "supported",
    "partial": "partial",
    "unsupported": "unsupported",
    "contradicted": "contradicted",
    "entailment": "supported",
    "neutral": "unsupported",
    "contradiction": "contradicted",
}
_PART_KEYS = "kind, text, label, context, start, end, reason"
_MAX_OFFSET = 10_000_000


def _read_part(field: Field) -> Finding:
    """Read a part; entailment labels (Entailment, Neutral, Contradiction) are mapped to Concord's."""
    row, prefix = Row(field.node, field.problems), f"{field.name}."
    kind = row.name("kind").lower()
    if kind not in PART_KINDS:
        row.note("unknown_choice", f"{prefix}kind", value=kind, known=", ".join(PART_KINDS))
    label = row.name("label").lower()
    if label not in PART_LABELS:
        row.note("unknown_choice", f"{prefix}label", value=label, known=", ".join(PART_LABELS))
    text = row.text("text")
    context, start, end = (row.integer(name, _MAX_OFFSET, prefix) for name in ("context", "start", "end"))
    if not text and (kind != "context" or context is None):
        row.note("missing", f"{prefix}text", names="text")
    if (start is None) != (end is None) or (start is not None and end is not None and start > end):
        field.note("part_range", start=start, end=end)
    reason = row.text("reason")
    for key in row.take_metadata():
        field.note("unknown_key", key=key, known=_PART_KEYS)
    return Finding(kind, text, PART_LABELS.get(label, ""), context, start, end, reason)


def _read_parts(field: Field) -> tuple[Finding, ...]:
    parts = []
    for part_field in field.expand().items():
        if part_field.node.kind is NodeKind.MAP:
            parts.append(_read_part(part_field))
        else:
            part_field.note("not_mapping", found=part_field.node.kind.value)
    return tuple(parts)


def value_on_scale(node: Node, scale: Scale) -> float | str | None:
    """Return the number or declared class label of a node, or ``None`` if it is off the scale.

    Booleans count only on ``yes_no`` scales, because ``true`` is no level of another scale."""
    if scale.kind is ScaleKind.CLASS:
        return _match_label(node, scale.labels)
    number = parse_number(node)
    if number is None and scale.kind is ScaleKind.YES_NO:
        flag = parse_boolean(node)
        number = None if flag is None else float(flag)
    return number if number is not None and scale.contains(number) else None


def _match_label(node: Node, labels: Sequence[str]) -> str | None:
    """Return the declared label that equals the text, or the only one that differs in case alone."""
    if node.kind in {NodeKind.LIST, NodeKind.MAP}:
        return None
    text = (node.spelling or str(node.value)).strip()
    if text in labels:
        return text
    matches = [label for label in labels if label.casefold() == text.casefold()]
    return matches[0] if len(matches) == 1 else None


def read_definitions(definitions: Sequence[str]) -> Mapping[str, Scale]:
    """Parse scales of unknown metrics: ``NAME=1..5``, ``NAME=0..1:real``, ``NAME=bool``, ``NAME=class:a|b``.

    :raises DomainError: ``bad_definition`` for an invalid definition or a repeated name."""
    scales: dict[str, Scale] = {}
    for definition in definitions:
        name, equals, scale = definition.partition("=")
        if not equals or not name.strip() or name.strip() in scales:
            raise DomainError("bad_definition", definition=definition)
        try:
            scales[name.strip()] = Scale.parse(scale)
        except ValueError as error:
            raise DomainError("bad_definition", definition=definition) from error
    return scales


PREFERENCE = Scale.parse("-2..2")
# Judges may give real values, such as the difference of two scores.
JUDGE_PREFERENCE = Scale.parse("-2..2:real")


@dataclass(frozen=True, slots=True)
class PairSide:
    """One answer of a pair; ``system`` is empty if the file does not name it."""

    system: str
    answer: str


@dataclass(frozen=True, slots=True)
class PairRow:
    """One pairwise preference.

    ``value``: from -2 (a much better) to 2 (b much better), whole numbers for people; if absent, ``failure`` holds the
    reason, as for ratings. ``metric`` defaults to ``preference``."""

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
    """Read one pair; missing and off-scale values are noted as problems."""
    question_id, question = row.name(*QUESTION_ID), row.text(*QUESTION_TEXT)
    if not question and not question_id:
        row.note("missing", "question", names="question, question_id")
    origin, reason = read_origin(row), row.text("reason")
    value, failure = _read_preference(row, origin.rater, reason)
    return PairRow(
        pair_id=row.name("pair_id"),
        question_id=question_id,
        question=question,
        answer_a=_read_side(row, "answer_a"),
        answer_b=_read_side(row, "answer_b"),
        metric=row.name("metric") or "preference",
        value=value,
        failure=failure,
        reason=reason,
        origin=origin,
        metadata=row.take_metadata(),
        line=row.line,
    )


def _read_preference(row: Row, rater: Rater, reason: str) -> tuple[float | None, str]:
    field, scale = row.take("value"), PREFERENCE if rater is Rater.HUMAN else JUDGE_PREFERENCE
    if field is None:
        return None, _missing_value_failure(row, rater, reason)
    value = value_on_scale(field.node, scale)
    return (value, "") if isinstance(value, float) else (None, _off_scale_failure(field, scale, rater))


def _read_side(row: Row, name: str) -> PairSide:
    """Read ``{system, answer}`` or the answer text alone."""
    field = row.take(name)
    if field is None:
        row.note("missing", name, names=name)
        return PairSide("", "")
    expanded = field.expand(split=False)
    if expanded.node.kind is not NodeKind.MAP:
        return PairSide("", field.text())
    inner = Row(expanded.node, row.problems)
    answer = inner.take("answer", "text")
    if answer is None:
        inner.note("missing", f"{name}.answer", names="answer")
        return PairSide("", "")
    return PairSide(inner.name("system"), expanded.with_node(answer.node, ".answer").text())


@dataclass(frozen=True, slots=True)
class RatingRow:
    """One value of one metric for one answer.

    ``value`` (``label`` for classes) is on the metric's scale. If absent, ``failure`` is a reason code with detail:
    ``scale: 7`` (a judge off the scale), ``reported: ...`` (a judge's null), ``cannot_judge: ...`` (a person's). With
    neither, the metric's formula computes the value from ``parts``. ``reason`` is the rater's text, verbatim.
    ``answer_key`` identifies the answer if the row returned from an exported task."""

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
    """Ratings and pairs in file order."""

    ratings: tuple[RatingRow, ...]
    pairs: tuple[PairRow, ...]
    set_metadata: Mapping[str, Any]
    metadata_keys: tuple[str, ...]
    remarks: tuple[Problem, ...]
    format: str
    encoding: str


def rating_file(tree: FileTree, problems: Problems, *, scales: Mapping[str, Scale]) -> RatingFile:
    """Read ratings, and pairs (rows with ``pair_id``). ``scales`` covers every known or defined metric.

    :raises InvalidFile: with every problem of every row, including off-scale values of people."""
    row_list, set_metadata = find_rows(tree.root, ("ratings",), problems)
    rows = [Row(node, problems) for node in mapping_rows(row_list, problems)]
    if not rows and not problems.errors:
        problems.add("no_rows", tree.root.line)
    pair_rows = [row for row in rows if row.has("pair_id")]
    rating_rows = [row for row in rows if not row.has("pair_id")]
    _refuse_unknown_metrics(rating_rows, scales, problems)
    pairs = [read_pair(row) for row in pair_rows]
    ratings = [_read_rating(row, scales) for row in rating_rows]
    refuse_duplicates([*ratings, *pairs], problems)
    problems.refuse_if_any()
    all_rows: list[RatingRow | PairRow] = [*ratings, *pairs]
    keys = tuple(sorted({key for row in all_rows for key in row.metadata}))
    _add_remarks(ratings, keys, problems)
    return RatingFile(
        tuple(ratings), tuple(pairs), set_metadata, keys, tuple(problems.remarks), tree.format, tree.encoding
    )


def _refuse_unknown_metrics(rows: Sequence[Row], scales: Mapping[str, Scale], problems: Problems) -> None:
    unknown: Counter[str] = Counter()
    first_lines: dict[str, int] = {}
    for row in rows:
        metric = row.peek_name("metric")
        if metric is not None and metric not in scales:
            unknown[metric] += 1
            first_lines.setdefault(metric, row.line)
    for metric, count in unknown.items():
        problems.add("metric_unknown", first_lines[metric], "metric", metric=metric[:80], rows=count)


def _read_rating(row: Row, scales: Mapping[str, Scale]) -> RatingRow:
    question_id, metric = row.required_name(*QUESTION_ID), row.required_name("metric")
    origin, reason = read_origin(row), row.text("reason")
    field, parts_field = row.take("value"), row.take("parts")
    parts = _read_parts(parts_field) if parts_field else ()
    value: float | str | None = None
    failure = ""
    if field is None and not parts:
        failure = _missing_value_failure(row, origin.rater, reason)
    elif field and metric in scales:
        value = value_on_scale(field.node, scales[metric])
        failure = _off_scale_failure(field, scales[metric], origin.rater) if value is None else ""
    return RatingRow(
        question_id=question_id,
        sample=row.integer("sample", MAX_SAMPLES) or 0,
        metric=metric,
        value=value if isinstance(value, float) else None,
        label=value if isinstance(value, str) else None,
        failure=failure,
        reason=reason,
        parts=parts,
        origin=origin,
        metadata=row.take_metadata(),
        line=row.line,
    )


def refuse_duplicates(rows: Sequence[RatingRow | PairRow], problems: Problems) -> None:
    """Refuse a second value of the same rater for an answer, metric and phase, since either could count."""
    first_rows: dict[tuple[object, ...], RatingRow | PairRow] = {}
    for row in rows:
        subject = (row.question_id, row.sample, row.answer_key) if isinstance(row, RatingRow) else ("", row.pair_id)
        key = (*subject, row.metric, row.origin.rater, row.origin.author, row.origin.phase)
        first_row = first_rows.setdefault(key, row)
        if first_row is not row:
            problems.add("duplicate_rating", row.line, first_line=first_row.line)


def _add_remarks(ratings: Sequence[RatingRow], keys: Sequence[str], problems: Problems) -> None:
    off_scale = sum(row.failure.startswith("scale") for row in ratings)
    without_value = sum(bool(row.failure) for row in ratings) - off_scale
    if off_scale:
        problems.remark("judge_off_scale", rows=off_scale)
    if without_value:
        problems.remark("ratings_without_value", rows=without_value)
    if keys:
        problems.remark("metadata_kept", keys=", ".join(keys))
