"""A metric as fields of a form: one radio for each level, anchor or class, or a number on a scale without any."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import gettext

from evaluation.scales import Scale, ScaleKind
from review.queues.card import CardMetric

MOST_LEVELS = 11  # a scale with more levels is asked for as a number


@dataclass(frozen=True, slots=True)
class Choice:
    """A level: ``value`` as the form sends it, ``key`` the digit that chooses it, ``text`` its anchor."""

    value: str
    title: str
    key: str
    text: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class MetricField:
    """A metric on the review screen. Without ``choices`` a number between ``low`` and ``high`` is asked for.
    ``entered`` is what stands in the field now."""

    name: str
    title: str
    question: str
    language: str
    choices: tuple[Choice, ...]
    low: str
    high: str
    entered: str
    cannot_judge: bool
    missing: bool


def metric_field(metric: CardMetric, entered: str, *, missing: bool = False) -> MetricField:
    """The field of a metric with what was entered before."""
    scale = Scale(ScaleKind(metric.kind), metric.low, metric.high, metric.labels)
    return MetricField(
        name=metric.name,
        title=metric.title,
        question=metric.question,
        language=metric.language,
        choices=_choices(metric, scale, entered),
        low=f"{scale.low:g}",
        high=f"{scale.high:g}",
        entered=entered,
        cannot_judge=entered == "cannot_judge",
        missing=missing,
    )


def _choices(metric: CardMetric, scale: Scale, entered: str) -> tuple[Choice, ...]:
    if scale.labels:
        named = enumerate(scale.labels, start=1)
        return tuple(Choice(label, label, _key(i), "", label == entered) for i, label in named)
    texts = {level.value: level.text for level in metric.levels}
    values = [float(level) for level in scale.levels] or sorted(texts)  # a real scale is asked for by its anchors
    if not 0 < len(values) <= MOST_LEVELS:
        return ()
    direct = all(value.is_integer() and 0 <= value <= 9 for value in values)  # digits mean themselves where they can
    return tuple(
        Choice(
            value=f"{value:g}",
            title=_title(scale, value),
            key=_key(int(value) if direct else place),
            text=texts.get(value, ""),
            chosen=f"{value:g}" == entered,
        )
        for place, value in enumerate(values, start=1)
    )


def _title(scale: Scale, level: float) -> str:
    if scale.kind is ScaleKind.YES_NO:
        return gettext("Yes") if level else gettext("No")
    return f"{level:g}".replace("-", "\N{MINUS SIGN}")


def _key(number: int) -> str:
    return str(number) if 0 <= number <= 9 else ""
