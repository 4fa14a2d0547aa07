"""Values in words, and a metric as fields of a form: one radio for each level, anchor or class, else a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.registry import Scale, ScaleKind
from evaluation.judging.formulas import CONTRADICTED, IRRELEVANT, PARTIAL, RELEVANT, SUPPORTED, UNSUPPORTED
from evaluation.wording import numbers
from evaluation.wording.markdown import language_of
from review.evidence.rated_claims import CITED, MISSING, PRESENT, UNCITED
from review.evidence.rating_input import PartGiven, WhyNot
from review.ratings.card import CardMetric
from review.web.pages.passages import PassageView


class Valued(Protocol):
    """A rating, decision or score: a value or, on a scale of classes, a label."""

    @property
    def value(self) -> float | None:
        """The number, where it is one."""

    @property
    def label(self) -> str | None:
        """The class, where it is one."""


def said(one: Valued | None) -> float | str | None:
    """What it is, ``None`` where there is neither."""
    if one is None:
        return None
    return one.label if one.value is None else one.value


def value_text(one: Valued | None, scale: Scale) -> str:
    """It as its scale is read, a dash without one."""
    return numbers.on_scale(said(one), scale)


WHY_NOT = {
    WhyNot.NOT_MY_FIELD: _("not my field"),
    WhyNot.EVIDENCE_MISSING: _("evidence missing"),
    WhyNot.QUESTION_AMBIGUOUS: _("question ambiguous"),
    WhyNot.ANSWER_UNCLEAR: _("answer unclear"),
    WhyNot.NOTHING_TO_JUDGE: _("nothing to judge here"),
    WhyNot.OTHER: _("another reason"),
}
VERDICTS = {
    SUPPORTED: _("supported"),
    PARTIAL: _("partly"),
    UNSUPPORTED: _("not supported"),
    CONTRADICTED: _("contradicted"),
    RELEVANT: _("relevant"),
    IRRELEVANT: _("not relevant"),
    PRESENT: _("present"),
    MISSING: _("missing"),
    CITED: _("used"),
    UNCITED: _("not used"),
}
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
class PartField:
    """A part to be decided: its field, its number, and the verdicts with the chosen one. An added part has a field for
    its ``text``, ``passage`` is the number of the passage that it is, ``shown`` that passage where it is read here."""

    name: str
    number: int
    text: str
    language: str
    passage: int | None
    approximate: bool
    added: bool
    choices: tuple[Choice, ...]
    shown: PassageView | None = None


@dataclass(frozen=True, slots=True)
class MetricField:
    """A metric on the review screen. Without ``choices`` a number between ``low`` and ``high`` is asked for, or, with
    ``by_parts``, a verdict on each of ``parts``. ``entered`` is what stands in the field now; ``why_not`` are the
    reasons for which it may be left unjudged, with the chosen one."""

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
    why_not: tuple[tuple[str, str, bool], ...] = ()
    by_parts: bool = False
    parts: tuple[PartField, ...] = ()
    legend: tuple[Choice, ...] = ()

    @property
    def filled(self) -> str:
        """What the person entered: without it the field is the same on every card of a queue."""
        return repr((self.entered, self.missing, [why for why, _, chosen in self.why_not if chosen]))


def verdict_title(verdict: str) -> str:
    """The verdict in the reader's language."""
    return str(VERDICTS.get(verdict, verdict))


def metric_field(
    metric: CardMetric,
    entered: str,
    *,
    missing: bool = False,
    why_not: str = "",
    decided: Sequence[PartGiven] = (),
    blank: int = 1,
) -> MetricField:
    """The field of a metric with what was entered before; ``blank`` lines are there for parts that were missed."""
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
        why_not=tuple((why.value, str(title), why.value == why_not) for why, title in WHY_NOT.items()),
        by_parts=bool(metric.verdicts),
        parts=_parts(metric, decided, blank) if metric.verdicts else (),
        legend=_verdicts(metric, ""),
    )


def with_passages(field: MetricField, contexts: Sequence[PassageView]) -> MetricField:
    """The field with each passage to be decided shown where it is decided."""
    by_number = {one.number: one for one in contexts}
    return replace(field, parts=tuple(replace(part, shown=by_number.get(part.passage or 0)) for part in field.parts))


def _parts(metric: CardMetric, decided: Sequence[PartGiven], blank: int) -> tuple[PartField, ...]:
    """The offered parts, then those that were added, then blank ones where parts may be added."""
    chosen = {part.number: part.verdict for part in decided if part.number}
    fields = [
        PartField(
            name=f"part:{metric.name}:{part.number}",
            number=part.number,
            text=part.text,
            language=language_of(part.text),
            passage=None if part.context is None else part.context + 1,
            approximate=part.approximate,
            added=False,
            choices=_verdicts(metric, chosen.get(part.number, "")),
        )
        for part in metric.parts
    ]
    more = [part for part in decided if not part.number] if metric.adds else []
    empty = [PartGiven("")] * (blank if metric.adds else 0)
    fields += [
        PartField(
            name=f"added:{metric.name}:{place}",
            number=len(metric.parts) + place,
            text=part.text,
            language=language_of(part.text),
            passage=None,
            approximate=False,
            added=True,
            choices=_verdicts(metric, part.verdict),
        )
        for place, part in enumerate([*more, *empty], start=1)
    ]
    return tuple(fields)


def _verdicts(metric: CardMetric, chosen: str) -> tuple[Choice, ...]:
    return tuple(
        Choice(one.name, verdict_title(one.name), _key(place), one.text, one.name == chosen)
        for place, one in enumerate(metric.verdicts, start=1)
    )


def _choices(metric: CardMetric, scale: Scale, entered: str) -> tuple[Choice, ...]:
    if metric.verdicts:
        return ()
    if scale.labels:
        texts_of = dict(zip(scale.labels, metric.label_texts, strict=False))  # metrics without a rubric have none
        named = enumerate(scale.labels, start=1)
        return tuple(Choice(label, label, _key(i), texts_of.get(label, ""), label == entered) for i, label in named)
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
