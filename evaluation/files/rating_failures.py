"""What becomes of a rating without a value on its scale."""

from __future__ import annotations

from evaluation.core.scales import Scale
from evaluation.files.rating_origin import Rater
from evaluation.files.row import Row
from evaluation.files.tree import Node
from evaluation.files.values import shown

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
