"""The forms of the review screen as what the engine takes: values before the reveal, changes after it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import QueryDict

from review.given import Change, Given
from review.models.queues import QueueMetric

CANNOT_JUDGE = "cannot_judge"
LONGEST_LOOK = 24 * 3600 * 1000  # milliseconds; a longer time was not spent looking


def read_given(data: QueryDict, metrics: Sequence[QueueMetric]) -> dict[str, Given]:
    """What the form holds for each metric that was answered; what is not a number or label becomes an empty value,
    which the engine refuses with the metric's name."""
    found = {}
    for row in metrics:
        text = data.get(f"value:{row.metric.name}", "").strip()
        if data.get(f"cannot:{row.metric.name}"):
            text = CANNOT_JUDGE
        if text:
            found[row.metric.name] = _given(text, labelled=bool(row.metric.read_scale().labels))
    return found


def read_changes(data: QueryDict, metrics: Sequence[QueueMetric], *, keep: bool) -> dict[str, Change]:
    """The new values and reasons of the reveal form. With ``keep`` only the reasons are read."""
    found = {}
    for row in metrics:
        name = row.metric.name
        text = "" if keep else data.get(f"value:{name}", "").strip()
        given = _given(text, labelled=bool(row.metric.read_scale().labels)) if text else Given()
        reason, comment = data.get(f"reason:{name}", ""), data.get(f"comment:{name}", "").strip()
        if text or reason or comment:
            found[name] = Change(given.value, given.label, reason, comment)
    return found


def draft_payload(data: QueryDict, metrics: Sequence[QueueMetric]) -> dict[str, Any]:
    """The draft that brings the form back as it was left."""
    values = {name: given.as_json() for name, given in read_given(data, metrics).items()}
    return {"values": values, "comment": data.get("comment", "")}


def entered(payload: Mapping[str, Any]) -> dict[str, str]:
    """The text that stands in each metric's field according to a draft."""
    values = payload.get("values")
    if not isinstance(values, Mapping):
        return {}
    return {str(name): field_text(one) for name, one in values.items() if isinstance(one, Mapping)}


def field_text(given: Mapping[str, Any]) -> str:
    """How a value stands in a form field."""
    if given.get("cannot_judge"):
        return CANNOT_JUDGE
    if given.get("label") is not None:
        return str(given["label"])
    return "" if given.get("value") is None else f"{given['value']:g}"


def read_active_ms(data: QueryDict) -> int | None:
    """The time looked at the item as the browser measured it, in milliseconds; ``None`` where it did not."""
    text = data.get("active_ms", "")
    return min(int(text), LONGEST_LOOK) if text.isascii() and text.isdigit() else None


def _given(text: str, *, labelled: bool) -> Given:
    if text == CANNOT_JUDGE:
        return Given(cannot_judge=True)
    if labelled:
        return Given(label=text)
    try:
        return Given(value=float(text))
    except ValueError:
        return Given()
