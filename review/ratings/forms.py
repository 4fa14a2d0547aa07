"""What the forms of reviewers and leads hold, as the engine takes it: ratings, changes and decisions; and its refusals
with metrics under their titles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from django.http import Http404, QueryDict
from django.utils.translation import get_language

from evaluation.core.canonical import whole_number
from evaluation.core.errors import Refused
from evaluation.messages.sentences import explain_refusal
from evaluation.models import MetricDefinition
from review.evidence.rating_input import Change, Given, PartGiven, is_by_parts
from review.models import QueueMetric


def in_words(refused: Refused, metrics: Iterable[MetricDefinition]) -> str:
    """The sentence of a refusal; what it says of metrics is said of their titles."""
    language = get_language() or "en"
    titles = {metric.name: str(metric.title.get(language) or metric.name) for metric in metrics}
    params = dict(refused.params)
    if isinstance(named := params.get("metric"), str):
        params["metric"] = titles.get(named, named)
    if isinstance(several := params.get("metrics"), list | tuple):
        params["metrics"] = [titles.get(str(name), str(name)) for name in several]
    return explain_refusal(Refused(refused.code, **params))


def metrics_in(refused: Refused) -> tuple[str, ...]:
    """The names of the metrics that a refusal is about."""
    one, several = refused.params.get("metric"), refused.params.get("metrics")
    if isinstance(several, list | tuple):
        return tuple(map(str, several))
    return (one,) if isinstance(one, str) else ()


CANNOT_JUDGE = "cannot_judge"
MOST_DIGITS = 4  # of a part's number
LONGEST_LOOK = 24 * 3600 * 1000  # milliseconds; a longer time was not spent looking


def read_given(data: QueryDict, metrics: Sequence[QueueMetric]) -> dict[str, Given]:
    """What the form holds for each metric that was answered; what is not a number or label becomes an empty value,
    which the engine refuses with the metric's name."""
    found = {}
    for row in metrics:
        name = row.metric.name
        text = data.get(f"value:{name}", "").strip()
        if data.get(f"cannot:{name}"):
            text = CANNOT_JUDGE
        if text == CANNOT_JUDGE:
            found[name] = Given(cannot_judge=True, reason_code=data.get(f"why:{name}", ""))
        elif is_by_parts(row.metric):
            parts = read_parts(data, name)
            if parts or data.get(f"parts:{name}") == "none":
                found[name] = Given(parts=parts)
        elif text:
            found[name] = _given(text, labelled=bool(row.metric.read_scale().labels))
    return found


def read_parts(data: QueryDict, metric: str) -> tuple[PartGiven, ...]:
    """The verdicts on a metric's parts: ``part:<metric>:<number>``, and ``added:<metric>:<n>`` beside
    ``added-text:<metric>:<n>`` for parts that were missed. An added line without text is passed over."""
    offered, added = [], []
    for field, verdict in data.items():
        kind, _, place = field.rpartition(":")
        number = whole_number(place, MOST_DIGITS)
        if number is None or not isinstance(verdict, str):
            continue
        if kind == f"part:{metric}" and verdict:
            offered.append(PartGiven(verdict, number))
        elif kind == f"added-text:{metric}" and verdict.strip():
            added.append((number, PartGiven(data.get(f"added:{metric}:{place}", ""), 0, verdict.strip())))
    return (*sorted(offered, key=lambda part: part.number), *(part for _, part in sorted(added, key=itemgetter(0))))


def read_changes(data: QueryDict, metrics: Sequence[QueueMetric], *, keep: bool) -> dict[str, Change]:
    """The new values and reasons of the reveal form. With ``keep`` only the reasons are read."""
    found = {}
    for row in metrics:
        name = row.metric.name
        text = "" if keep else data.get(f"value:{name}", "").strip()
        given = _given(text, labelled=bool(row.metric.read_scale().labels)) if text else Given()
        parts = read_parts(data, name) if not keep and is_by_parts(row.metric) else ()
        reason, comment = data.get(f"reason:{name}", ""), data.get(f"comment:{name}", "").strip()
        if text or reason or comment or parts:
            found[name] = Change(given.value, given.label, reason, comment, parts)
    return found


def held_fields(data: QueryDict, metrics: Sequence[QueueMetric]) -> dict[str, dict[str, str]]:
    """What a form of changes held for each metric, as it was typed: value, reason and comment."""
    parts = ("value", "reason", "comment")
    return {row.metric.name: {part: data.get(f"{part}:{row.metric.name}", "") for part in parts} for row in metrics}


def draft_payload(data: QueryDict, metrics: Sequence[QueueMetric]) -> dict[str, Any]:
    """The draft that brings the form back as it was left."""
    values = {name: given.as_json() for name, given in read_given(data, metrics).items()}
    return {"values": values, "comment": data.get("comment", ""), "suggestion": data.get("suggestion", "")}


def entered(payload: Mapping[str, Any]) -> dict[str, str]:
    """The text that stands in each metric's field according to a draft."""
    return {name: field_text(one) for name, one in _values(payload).items()}


def entered_parts(payload: Mapping[str, Any]) -> dict[str, tuple[PartGiven, ...]]:
    """The verdicts on parts according to a draft."""
    return {
        name: tuple(
            PartGiven(str(part.get("verdict", "")), int(part.get("number") or 0), str(part.get("text", "")))
            for part in one.get("parts") or ()
            if isinstance(part, Mapping)
        )
        for name, one in _values(payload).items()
    }


def entered_why(payload: Mapping[str, Any]) -> dict[str, str]:
    """Why metrics were left unjudged according to a draft."""
    return {name: str(one.get("reason_code", "")) for name, one in _values(payload).items()}


def _values(payload: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    values = payload.get("values")
    held = values if isinstance(values, Mapping) else {}
    return {str(name): one for name, one in held.items() if isinstance(one, Mapping)}


def field_text(given: Mapping[str, Any]) -> str:
    """How a value stands in a form field."""
    if given.get("cannot_judge"):
        return CANNOT_JUDGE
    if given.get("label") is not None:
        return str(given["label"])
    return "" if given.get("value") is None else f"{given['value']:g}"


def read_active_ms(data: QueryDict) -> int | None:
    """The time looked at the item as the browser measured it, in milliseconds; ``None`` where it did not."""
    looked = whole_number(data.get("active_ms", ""))
    return None if looked is None else min(looked, LONGEST_LOOK)


def _given(text: str, *, labelled: bool) -> Given:
    if text == CANNOT_JUDGE:
        return Given(cannot_judge=True)
    if labelled:
        return Given(label=text)
    return Given(value=finite(text))


def finite(text: str) -> float | None:
    """The number that the text is, ``None`` where it is none."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class Decided(NamedTuple):
    """The metric, the value or label, and the reason; ``entered`` is the value as it was typed. ``seen`` is the number
    of the newest decision that was in view, -1 where that is not said."""

    metric: MetricDefinition
    value: float | None
    label: str | None
    reason: str
    entered: str
    seen: int = -1


def read_decision(data: QueryDict) -> Decided:
    """What was decided. Text that is no number gives neither value nor label, which the engine refuses.

    :raises Http404: for a metric that does not exist.
    """
    metric = MetricDefinition.objects.filter(pk=whole_number(data.get("metric", "")) or 0).first()
    if metric is None:
        raise Http404
    entered = data.get(f"value:{metric.name}", "").strip()
    return _decided(metric, entered, data.get("reason", ""))


def read_verdicts(data: QueryDict, metrics: Sequence[QueueMetric]) -> dict[str, Decided]:
    """The metrics of a dispute for which a value was chosen. The reason is the metric's own, else the common one."""
    found = {}
    for row in metrics:
        name = row.metric.name
        entered = data.get(f"value:{name}", "").strip()
        if entered:
            reason = data.get(f"reason:{name}", "").strip() or data.get("reason", "")
            seen = whole_number(data.get(f"seen:{name}", ""))
            found[name] = _decided(row.metric, entered, reason, -1 if seen is None else seen)
    return found


def _decided(metric: MetricDefinition, entered: str, reason: str, seen: int = -1) -> Decided:
    label = entered if entered and metric.read_scale().labels else None
    return Decided(metric, None if label else _number(entered), label, reason, entered, seen)


def read_references(data: QueryDict) -> list[str]:
    """The references of an amended question, one field each; empty ones are left out."""
    return [one.strip() for one in data.getlist("reference") if isinstance(one, str) and one.strip()]


def _number(entered: str) -> float | None:
    try:
        return float(entered)
    except ValueError:
        return None
