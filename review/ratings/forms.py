"""Parse the forms of reviewers and leads into ratings, changes and decisions, and explain refused forms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from django.http import Http404, QueryDict
from django.utils.translation import get_language

from evaluation.core.canonical import parse_int
from evaluation.core.errors import DomainError
from evaluation.messages.explanations import explain_refusal
from evaluation.models import MetricDefinition
from review.evidence.rating_input import PartVerdict, RatingInput, RatingUpdate, is_rated_by_parts
from review.models import QueueMetric


def refusal_sentence(error: DomainError, metrics: Iterable[MetricDefinition]) -> str:
    """Message of a refused form, with titles in place of metric names."""
    language = get_language() or "en"
    titles = {metric.name: str(metric.title.get(language) or metric.name) for metric in metrics}
    params = dict(error.params)
    if isinstance(metric_name := params.get("metric"), str):
        params["metric"] = titles.get(metric_name, metric_name)
    if isinstance(metric_names := params.get("metrics"), list | tuple):
        params["metrics"] = [titles.get(str(name), str(name)) for name in metric_names]
    return explain_refusal(DomainError(error.code, **params))


def refused_metrics(error: DomainError) -> tuple[str, ...]:
    """Return the names of the metrics that a refusal is about."""
    metric, metrics = error.params.get("metric"), error.params.get("metrics")
    if isinstance(metrics, list | tuple):
        return tuple(map(str, metrics))
    return (metric,) if isinstance(metric, str) else ()


CANNOT_JUDGE = "cannot_judge"
# Digits of a part's number.
MAX_PART_DIGITS = 4
# In milliseconds; a longer active time is not plausible.
MAX_ACTIVE_MS = 24 * 3600 * 1000


def read_rating_inputs(data: QueryDict, metrics: Sequence[QueueMetric]) -> dict[str, RatingInput]:
    """Parse the ratings of a form by metric name.

    Text that is no number or label becomes an empty value, so that submitting is refused with the metric's name."""
    inputs = {}
    for queue_metric in metrics:
        name = queue_metric.metric.name
        text = data.get(f"value:{name}", "").strip()
        if data.get(f"cannot:{name}"):
            text = CANNOT_JUDGE
        if text == CANNOT_JUDGE:
            inputs[name] = RatingInput(cannot_judge=True, reason_code=data.get(f"why:{name}", ""))
        elif is_rated_by_parts(queue_metric.metric):
            parts = read_parts(data, name)
            if parts or data.get(f"parts:{name}") == "none":
                inputs[name] = RatingInput(parts=parts)
        elif text:
            inputs[name] = _parse_value(text, labelled=bool(queue_metric.metric.read_scale().labels))
    return inputs


def read_parts(data: QueryDict, metric: str) -> tuple[PartVerdict, ...]:
    """Parse the verdicts on a metric's parts: fields ``part:<metric>:<number>``, and ``added:<metric>:<n>`` with
    ``added-text:<metric>:<n>`` for missed parts. Added parts without text are skipped."""
    offered_parts, added_parts = [], []
    for field, verdict in data.items():
        prefix, _, suffix = field.rpartition(":")
        number = parse_int(suffix, MAX_PART_DIGITS)
        if number is None or not isinstance(verdict, str):
            continue
        if prefix == f"part:{metric}" and verdict:
            offered_parts.append(PartVerdict(verdict, number))
        elif prefix == f"added-text:{metric}" and verdict.strip():
            added_parts.append((number, PartVerdict(data.get(f"added:{metric}:{suffix}", ""), 0, verdict.strip())))
    return (
        *sorted(offered_parts, key=lambda part: part.number),
        *(part for _, part in sorted(added_parts, key=itemgetter(0))),
    )


def read_changes(data: QueryDict, metrics: Sequence[QueueMetric], *, reasons_only: bool) -> dict[str, RatingUpdate]:
    """Parse new values and reasons of the reveal form, or the reasons only."""
    changes = {}
    for queue_metric in metrics:
        name = queue_metric.metric.name
        text = "" if reasons_only else data.get(f"value:{name}", "").strip()
        value_input = (
            _parse_value(text, labelled=bool(queue_metric.metric.read_scale().labels)) if text else RatingInput()
        )
        parts = read_parts(data, name) if not reasons_only and is_rated_by_parts(queue_metric.metric) else ()
        reason, comment = data.get(f"reason:{name}", ""), data.get(f"comment:{name}", "").strip()
        if text or reason or comment or parts:
            changes[name] = RatingUpdate(value_input.value, value_input.label, reason, comment, parts)
    return changes


def typed_fields(data: QueryDict, metrics: Sequence[QueueMetric]) -> dict[str, dict[str, str]]:
    """Typed value, reason and comment of each metric, to show a refused form again."""
    field_names = ("value", "reason", "comment")
    return {
        queue_metric.metric.name: {
            field_name: data.get(f"{field_name}:{queue_metric.metric.name}", "") for field_name in field_names
        }
        for queue_metric in metrics
    }


def draft_payload(data: QueryDict, metrics: Sequence[QueueMetric]) -> dict[str, Any]:
    """Draft that restores the form as it was left."""
    values = {name: rating_input.as_json() for name, rating_input in read_rating_inputs(data, metrics).items()}
    return {"values": values, "comment": data.get("comment", ""), "suggestion": data.get("suggestion", "")}


def draft_texts(payload: Mapping[str, Any]) -> dict[str, str]:
    """Field text of each metric in a draft."""
    return {name: field_text(draft_value) for name, draft_value in _draft_values(payload).items()}


def draft_parts(payload: Mapping[str, Any]) -> dict[str, tuple[PartVerdict, ...]]:
    """Verdicts on parts in a draft, by metric."""
    return {
        name: tuple(
            PartVerdict(str(part.get("verdict", "")), int(part.get("number") or 0), str(part.get("text", "")))
            for part in draft_value.get("parts") or ()
            if isinstance(part, Mapping)
        )
        for name, draft_value in _draft_values(payload).items()
    }


def draft_reason_codes(payload: Mapping[str, Any]) -> dict[str, str]:
    """Reason codes of unjudged metrics in a draft."""
    return {name: str(draft_value.get("reason_code", "")) for name, draft_value in _draft_values(payload).items()}


def _draft_values(payload: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    values = payload.get("values")
    value_by_metric = values if isinstance(values, Mapping) else {}
    return {str(name): draft_value for name, draft_value in value_by_metric.items() if isinstance(draft_value, Mapping)}


def field_text(draft_value: Mapping[str, Any]) -> str:
    """Text of a value in a form field."""
    if draft_value.get("cannot_judge"):
        return CANNOT_JUDGE
    if draft_value.get("label") is not None:
        return str(draft_value["label"])
    return "" if draft_value.get("value") is None else f"{draft_value['value']:g}"


def read_active_ms(data: QueryDict) -> int | None:
    """Active time in milliseconds as measured by the browser; ``None`` without a measurement."""
    milliseconds = parse_int(data.get("active_ms", ""))
    return None if milliseconds is None else min(milliseconds, MAX_ACTIVE_MS)


def _parse_value(text: str, *, labelled: bool) -> RatingInput:
    if text == CANNOT_JUDGE:
        return RatingInput(cannot_judge=True)
    if labelled:
        return RatingInput(label=text)
    return RatingInput(value=finite_number(text))


def finite_number(text: str) -> float | None:
    """Parse a finite number; ``None`` for other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class DecisionInput(NamedTuple):
    """A decision on a metric: value or label, and reason. ``entered`` is the typed text. ``seen_seq`` is the number of
    the newest decision that the page showed, -1 if the form does not say."""

    metric: MetricDefinition
    value: float | None
    label: str | None
    reason: str
    entered: str
    seen_seq: int = -1


def read_decision(data: QueryDict) -> DecisionInput:
    """Parse a decision. Text that is no number gives neither value nor label, so that storing the decision is refused.

    :raises Http404: for an unknown metric."""
    metric = MetricDefinition.objects.filter(pk=parse_int(data.get("metric", "")) or 0).first()
    if metric is None:
        raise Http404
    entered = data.get(f"value:{metric.name}", "").strip()
    return _decision(metric, entered, data.get("reason", ""))


def read_decisions(data: QueryDict, metrics: Sequence[QueueMetric]) -> dict[str, DecisionInput]:
    """Parse the decisions of a dispute by metric. The reason is the metric's own, else the common one."""
    decisions = {}
    for queue_metric in metrics:
        name = queue_metric.metric.name
        entered = data.get(f"value:{name}", "").strip()
        if entered:
            reason = data.get(f"reason:{name}", "").strip() or data.get("reason", "")
            seen_seq = parse_int(data.get(f"seen:{name}", ""))
            decisions[name] = _decision(queue_metric.metric, entered, reason, -1 if seen_seq is None else seen_seq)
    return decisions


def _decision(metric: MetricDefinition, entered: str, reason: str, seen_seq: int = -1) -> DecisionInput:
    label = entered if entered and metric.read_scale().labels else None
    return DecisionInput(metric, None if label else _number(entered), label, reason, entered, seen_seq)


def read_references(data: QueryDict) -> list[str]:
    """References of an amended question, one per field; empty ones are left out."""
    return [
        reference.strip() for reference in data.getlist("reference") if isinstance(reference, str) and reference.strip()
    ]


def _number(entered: str) -> float | None:
    try:
        return float(entered)
    except ValueError:
        return None
