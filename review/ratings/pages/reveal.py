"""Pages after the rating: expert and judge side by side, own past ratings, and the form to rate an item again."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.scales import ScaleKind
from evaluation.judging.baseline import DESCRIPTION
from evaluation.messages.explanations import explain_reason
from evaluation.messages.markdown import language_of
from review.charts.axis import ScaleLine, scale_line
from review.evidence.rating_input import OverrideReason, PartVerdict, part_verdicts
from review.models import Assignment, Rating, ReviewQueue
from review.queues.progress import OwnProgress
from review.ratings.card import Card, CardMetric
from review.ratings.forms import field_text
from review.ratings.pages.card import Keys
from review.ratings.pages.item import (
    MetricField,
    answer_html,
    judge_reason,
    judge_text,
    metric_field,
    value_or_label,
    value_text,
)
from review.ratings.reveals import JudgeComparison

REASONS = {
    OverrideReason.JUDGE_MISSED_CLAIM: _("Judge missed a claim"),
    OverrideReason.JUDGE_FACTUAL_ERROR: _("Judge is factually wrong"),
    OverrideReason.JUDGE_TOO_LENIENT: _("Judge too lenient"),
    OverrideReason.JUDGE_TOO_STRICT: _("Judge too strict"),
    OverrideReason.REFERENCE_WRONG: _("Expected answer wrong or outdated"),
    OverrideReason.QUESTION_AMBIGUOUS: _("Question ambiguous"),
    OverrideReason.EVIDENCE_MISSING: _("Evidence missing"),
    OverrideReason.FORMAT_ONLY: _("Only the format differs"),
    OverrideReason.MANIPULATION: _("Manipulation suspected"),
    OverrideReason.POLICY: _("Policy"),
}
# Typed texts of a refused form: metric -> value, reason and comment.
EnteredTexts = Mapping[str, Mapping[str, str]]
# Verdicts on parts of a refused form.
EnteredParts = Mapping[str, Sequence[PartVerdict]]
NO_TEXTS: EnteredTexts = MappingProxyType({})
NO_PARTS: EnteredParts = MappingProxyType({})
ReasonTitles = tuple[tuple[OverrideReason, str | Promise], ...]
PartRow = tuple[int, str, str, str, int | None]


class ComparisonRow(NamedTuple):
    """A metric with the expert's first rating and the judge's value.

    ``chart`` is ``None`` for scales without order and for missing values. ``field`` offers the levels to change to.
    ``parts`` are number, text (the source for a passage), both verdicts (empty if not judged), and passage number."""

    comparison: JudgeComparison
    own_text: str
    judge_text: str
    judge_title: str
    judge_reason: str
    judge_reason_language: str
    chart: ScaleLine | None
    field: MetricField
    parts: tuple[PartRow, ...]
    reason: str
    comment: str


@dataclass(frozen=True, slots=True)
class RevealPage:
    """The reveal screen: ``differences`` first, then ``others``, whose values are equal or of which one is missing.

    ``agrees``: all values are equal. ``judge_note`` describes the offline baseline and is empty for other judges."""

    card: Card
    progress: OwnProgress
    answer: SafeString
    differences: tuple[ComparisonRow, ...]
    others: tuple[ComparisonRow, ...]
    agrees: bool
    judge_note: str
    keys: Keys
    error: str
    reasons: ReasonTitles = tuple(REASONS.items())


class PastRating(NamedTuple):
    """A line of own ratings: current values, whether a lead decided all of them, and what the person may do: rate
    again, or override once the queue is closed."""

    assignment: Assignment
    ratings: Sequence[Rating]
    is_decided: bool
    may_reopen: bool
    may_override: bool


class RerateField(NamedTuple):
    """A metric to rate again; ``is_closed`` if a lead has decided it."""

    field: MetricField
    current_rating: Rating
    reason: str
    comment: str
    is_closed: bool


@dataclass(frozen=True, slots=True)
class ReratePage:
    """The form to rate an item again. ``form_key`` makes repeated submits one decision; ``newest_id`` is the newest
    rating shown."""

    card: Card
    answer: SafeString
    fields: tuple[RerateField, ...]
    form_key: str
    newest_id: int
    error: str
    reasons: ReasonTitles = tuple(REASONS.items())


def reveal_page(
    card: Card,
    comparisons: Sequence[JudgeComparison],
    progress: OwnProgress,
    keys: Keys,
    *,
    entered: EnteredTexts = NO_TEXTS,
    entered_parts: EnteredParts = NO_PARTS,
    error: str = "",
) -> RevealPage:
    """Build the reveal screen; ``entered`` and ``entered_parts`` restore a refused form."""
    metrics = {metric.name: metric for metric in card.metrics}
    entered_parts = {name: rating.parts for name, rating in card.given.items()} | dict(entered_parts)
    sources = {passage.number: passage.source for passage in card.contexts or ()}
    rows = [
        _comparison_row(comparison, metrics[comparison.metric.name], entered, entered_parts, sources)
        for comparison in sorted(comparisons, key=lambda comparison: -comparison.distance)
    ]
    baseline = any(comparison.judge_value and comparison.judge_value.baseline for comparison in comparisons)
    return RevealPage(
        card=card,
        progress=progress,
        answer=answer_html(card.answer, card.claims, card.contexts),
        differences=tuple(row for row in rows if row.comparison.distance > 0),
        others=tuple(row for row in rows if not row.comparison.distance > 0),
        agrees=all(row.comparison.has_both_values and not row.comparison.distance > 0 for row in rows),
        judge_note=DESCRIPTION.in_language(get_language() or "en") if baseline else "",
        keys=keys,
        error=error,
    )


def past_rating(assignment: Assignment, ratings: Sequence[Rating], decided_metrics: Collection[int]) -> PastRating:
    """Build a line of own ratings; ``decided_metrics`` are those that a lead has decided."""
    is_decided = bool(ratings) and all(rating.metric_id in decided_metrics for rating in ratings)
    is_open = assignment.item.queue.state == ReviewQueue.State.OPEN
    may_reopen = assignment.state == Assignment.State.FINISHED and is_open and not is_decided
    return PastRating(assignment, ratings, is_decided, may_reopen, may_override=not (is_open or is_decided))


def rerate_page(
    card: Card,
    ratings_by_name: Mapping[str, Rating],
    decided_metrics: Collection[int],
    *,
    entered: EnteredTexts = NO_TEXTS,
    entered_parts: EnteredParts = NO_PARTS,
    form_key: str = "",
    error: str = "",
) -> ReratePage:
    """Build the form with the current ratings, or with the values of a refused form."""
    fields = []
    for metric in card.metrics:
        current_rating, texts = ratings_by_name[metric.name], entered.get(metric.name, {})
        parts = entered_parts.get(metric.name) or part_verdicts(current_rating)
        field = metric_field(
            metric, texts.get("value", "") or _rating_text(current_rating), verdicts=parts, blank_lines=0
        )
        reason, comment = texts.get("reason", ""), texts.get("comment", "")
        fields.append(RerateField(field, current_rating, reason, comment, current_rating.metric_id in decided_metrics))
    return ReratePage(
        card=card,
        answer=answer_html(card.answer, card.claims, card.contexts),
        fields=tuple(fields),
        form_key=form_key or uuid.uuid4().hex,
        newest_id=max(rating.pk for rating in ratings_by_name.values()),
        error=error,
    )


def _rating_text(rating: Rating | None) -> str:
    """Text of a rating in a form field."""
    if rating is None:
        return ""
    return field_text({"value": rating.value, "label": rating.label, "cannot_judge": rating.cannot_judge})


def _part_rows(
    comparison: JudgeComparison, metric: CardMetric, verdicts: Sequence[PartVerdict], sources: Mapping[int, str]
) -> tuple[PartRow, ...]:
    own_verdicts = {part.number: part.verdict for part in verdicts if part.number}
    rows: list[PartRow] = []
    for part in metric.parts:
        # The text of a nugget is its name and alternatives; the judge's row has the name alone.
        judge = next(
            (v for text_, v in comparison.parts if part.text == text_ or part.text.startswith(f"{text_} / ")), ""
        )
        passage = None if part.context is None else part.context + 1
        rows.append(
            (part.number, sources.get(passage or 0) or part.text, own_verdicts.get(part.number, ""), judge, passage)
        )
    added_parts = [part for part in verdicts if not part.number]
    return (
        *rows,
        *((number, part.text, part.verdict, "", None) for number, part in enumerate(added_parts, start=len(rows) + 1)),
    )


def _comparison_row(
    comparison: JudgeComparison,
    metric: CardMetric,
    entered: EnteredTexts,
    entered_parts: EnteredParts,
    sources: Mapping[int, str],
) -> ComparisonRow:
    texts, parts, scale = (
        entered.get(metric.name, {}),
        entered_parts.get(metric.name, ()),
        comparison.metric.read_scale(),
    )
    has_no_value, reason_text = value_or_label(comparison.judge_value) is None, _judge_reason(comparison)
    not_judged = comparison.own_rating is not None and comparison.own_rating.cannot_judge
    return ComparisonRow(
        comparison=comparison,
        own_text=gettext("cannot judge") if not_judged else value_text(comparison.own_rating, scale),
        judge_text=judge_text(comparison.judge_value, scale),
        judge_title=_judge_title(comparison),
        judge_reason=reason_text,
        judge_reason_language=(get_language() or "en") if has_no_value else language_of(reason_text),
        chart=_chart(comparison),
        field=metric_field(
            metric, texts.get("value", "") or _rating_text(comparison.own_rating), verdicts=parts, blank_lines=0
        ),
        parts=_part_rows(comparison, metric, parts, sources) if metric.verdicts else (),
        reason=texts.get("reason", ""),
        comment=texts.get("comment", ""),
    )


def _chart(comparison: JudgeComparison) -> ScaleLine | None:
    expert = comparison.own_rating.value if comparison.own_rating else None
    judge = comparison.judge_value.value if comparison.judge_value else None
    scale = comparison.metric.read_scale()
    if expert is None or judge is None or scale.kind is ScaleKind.CLASS:
        return None
    return scale_line(scale, expert=expert, judge=judge)


def _judge_title(comparison: JudgeComparison) -> str:
    if comparison.judge_value and comparison.judge_value.baseline:
        return gettext("offline baseline")
    return gettext("rule") if comparison.judge_value and not comparison.judge_value.by else gettext("judge")


def _judge_reason(comparison: JudgeComparison) -> str:
    if comparison.judge_value is None:
        return explain_reason("no_value")
    return (
        explain_reason(comparison.judge_value.reason)
        if value_or_label(comparison.judge_value) is None
        else judge_reason(comparison.judge_value.reason)
    )
