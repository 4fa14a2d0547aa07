"""What the rows of rating files share: who rated, when and how, a value on the scale of its metric or why there is
none, and its parts: claims, nuggets or contexts with a label each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from evaluation.core.errors import Refused
from evaluation.core.registry import Scale, ScaleKind
from evaluation.core.samples import Finding
from evaluation.files.tree import Kind, Node, Problems
from evaluation.files.values import (
    Row,
    boolean_of,
    expand_cell,
    number_of,
    read_moment,
    shown,
)


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
        row.problems.add("out_of_range", row.line, "probability", value="0", low=0, high=1)
    return Origin(
        rater=Rater(rater or Rater.HUMAN),
        author=author,
        phase=Phase(phase or Phase.INITIAL),
        blind=row.boolean("blind", True),
        probability=probability,
        created=None if created is None else read_moment(created, "created", row.problems),
    )


def _choice(row: Row, names: tuple[str, ...], known: tuple[str, ...], default: str = "") -> str:
    """One of the known words in any case; empty after its problem was noted."""
    if not row.has(*names):
        if not default:
            row.problems.add("missing", row.line, names[0], names=", ".join(names))
        return default
    word = row.name(*names).lower()
    if word in known:
        return word
    row.problems.add("unknown_choice", row.line, names[0], value=word, known=", ".join(known))
    return ""


# Reasons of a judge's failure that have a sentence of their own; others are kept behind ``reported``.
KNOWN_FAILURES = frozenset({"scale", "parse", "truncated", "refused", "filtered", "timeout", "upstream"})


def failure_off_scale(node: Node, scale: Scale, row: Row, rater: Rater) -> str:
    """A judge's value off the scale is a failure that is kept; a person's refuses the file."""
    if rater is Rater.HUMAN:
        row.problems.add("off_scale", node.line, "value", value=shown(node), scale=str(scale))
    return f"scale: {shown(node)}"


def failure_without_value(row: Row, rater: Rater, reason: str) -> str:
    """Null needs its reason: the judge failed, or the person could not judge."""
    if not reason:
        row.problems.add("value_missing", row.line, "value")
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


def read_parts(node: Node, problems: Problems) -> tuple[Finding, ...]:
    """The parts in their order. Labels of entailment (Entailment, Neutral, Contradiction) become ours."""
    expanded = expand_cell(node, "parts", problems)
    if expanded.kind not in {Kind.LIST, Kind.NULL}:
        problems.add("not_list", node.line, "parts", found=expanded.kind.value)
    parts = []
    for i, item in enumerate(expanded.elements):
        if item.kind is Kind.MAP:
            parts.append(_part(Row(item, problems), f"parts[{i}]"))
        else:
            problems.add("not_mapping", item.line, f"parts[{i}]", found=item.kind.value)
    return tuple(parts)


def _part(row: Row, place: str) -> Finding:
    kind = row.name("kind").lower()
    if kind not in KINDS:
        row.problems.add("unknown_choice", row.line, f"{place}.kind", value=kind, known=", ".join(KINDS))
    label = row.name("label").lower()
    if label not in LABELS:
        row.problems.add("unknown_choice", row.line, f"{place}.label", value=label, known=", ".join(LABELS))
    text = row.text("text")
    context, start, end = (row.integer(name, _FAR, f"{place}.{name}") for name in ("context", "start", "end"))
    if not text and (kind != "context" or context is None):
        row.problems.add("missing", row.line, f"{place}.text", names="text")
    if (start is None) != (end is None) or (start is not None and end is not None and start > end):
        row.problems.add("part_range", row.line, place, start=start, end=end)
    reason = row.text("reason")
    for key in row.rest():
        row.problems.add("unknown_key", row.line, place, key=key, known=_KEYS)
    return Finding(kind, text, LABELS.get(label, ""), context, start, end, reason)


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
