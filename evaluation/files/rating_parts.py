"""The parts of a rating: claims, nuggets or contexts with a label each."""

from __future__ import annotations

from evaluation.core.samples import Finding
from evaluation.files.problems import Problems
from evaluation.files.row import Row
from evaluation.files.tree import Kind, Node
from evaluation.files.values import expand_cell, read_integer

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
    context, start, end = (_position(row, name, place) for name in ("context", "start", "end"))
    if not text and (kind != "context" or context is None):
        row.problems.add("missing", row.line, f"{place}.text", names="text")
    if (start is None) != (end is None) or (start is not None and end is not None and start > end):
        row.problems.add("part_range", row.line, place, start=start, end=end)
    reason = row.text("reason")
    for key in row.rest():
        row.problems.add("unknown_key", row.line, place, key=key, known=_KEYS)
    return Finding(kind, text, LABELS.get(label, ""), context, start, end, reason)


def _position(row: Row, name: str, place: str) -> int | None:
    node = row.take(name)
    return None if node is None else read_integer(node, f"{place}.{name}", row.problems, 0, _FAR)
