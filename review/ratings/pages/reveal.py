"""After the rating: expert and judge side by side, and whether the expert keeps or changes the value; and a person's
own past ratings, the list of them and the form that rates one again."""

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
from evaluation.messages.markdown import language_of
from evaluation.messages.sentences import explain_reason
from review.charts.axis import ScaleLine, scale_line
from review.evidence.rating_input import OverrideReason, PartGiven, parts_given
from review.models import Assignment, Rating, ReviewQueue
from review.queues.progress import OwnProgress
from review.ratings.card import Card, CardMetric
from review.ratings.forms import field_text
from review.ratings.pages.card import Keys
from review.ratings.pages.item import MetricField, judge_reason, judge_text, metric_field, numbered_html, value_text
from review.ratings.pages.item import said as value_said
from review.ratings.reveals import JudgeSaid

REASONS = {
    OverrideReason.JUDGE_MISSED_CLAIM: _("Judge missed a claim"),
    OverrideReason.JUDGE_FACTUAL_ERROR: _("Judge is wrong in fact"),
    OverrideReason.JUDGE_TOO_LENIENT: _("Judge too lenient"),
    OverrideReason.JUDGE_TOO_STRICT: _("Judge too strict"),
    OverrideReason.REFERENCE_WRONG: _("Expected answer wrong or outdated"),
    OverrideReason.QUESTION_AMBIGUOUS: _("Question ambiguous"),
    OverrideReason.EVIDENCE_MISSING: _("Evidence missing"),
    OverrideReason.FORMAT_ONLY: _("Only the form differs"),
    OverrideReason.MANIPULATION: _("Manipulation suspected"),
    OverrideReason.POLICY: _("Policy"),
}
Entered = Mapping[str, Mapping[str, str]]  # what a refused form held: metric -> value, reason and comment
Decided = Mapping[str, Sequence[PartGiven]]  # its verdicts on parts
NOTHING: Entered = MappingProxyType({})
NO_PARTS: Decided = MappingProxyType({})
ReasonTitles = tuple[tuple[OverrideReason, str | Promise], ...]
Part = tuple[int, str, str, str, int | None]


class Comparison(NamedTuple):
    """One metric: what the expert said first and what the judge said. ``chart`` is ``None`` where the scale has no
    order or a value is missing. ``field`` holds the levels to change to. ``parts`` are those that either of the two
    judged: number, text (of a passage its source rather than the system's own key), both verdicts, empty where one did
    not judge it, and the number of the passage that it is."""

    found: JudgeSaid
    own: str
    judge: str
    judge_title: str
    why: str
    why_language: str
    chart: ScaleLine | None
    field: MetricField
    parts: tuple[Part, ...]
    reason: str
    comment: str


@dataclass(frozen=True, slots=True)
class RevealPage:
    """The reveal screen. ``differences`` come first, the metrics on which both agree after them. ``about_judge`` says
    what the offline baseline is, and nothing of other judges."""

    card: Card
    own: OwnProgress
    answer: SafeString
    differences: tuple[Comparison, ...]
    others: tuple[Comparison, ...]
    about_judge: str
    keys: Keys
    error: str
    reasons: ReasonTitles = tuple(REASONS.items())


class PastRating(NamedTuple):
    """A line of the list of own ratings: the values as they stand, whether a lead has decided all of them, and what the
    person may still do: rate again, or override once the queue is closed."""

    assignment: Assignment
    standing: Sequence[Rating]
    decided: bool
    may_reopen: bool
    may_override: bool


class AgainField(NamedTuple):
    """A metric to be rated again; ``closed`` where a lead has decided."""

    field: MetricField
    standing: Rating
    reason: str
    comment: str
    closed: bool


@dataclass(frozen=True, slots=True)
class AgainPage:
    """The form. ``form_key`` makes two submits of it one decision; ``stands`` is the newest rating it begins with."""

    card: Card
    answer: SafeString
    fields: tuple[AgainField, ...]
    form_key: str
    stands: int
    error: str
    reasons: ReasonTitles = tuple(REASONS.items())


def reveal_page(
    card: Card,
    said: Sequence[JudgeSaid],
    own: OwnProgress,
    keys: Keys,
    *,
    entered: Entered = NOTHING,
    decided: Decided = NO_PARTS,
    error: str = "",
) -> RevealPage:
    """The screen; ``entered`` and ``decided`` keep what a refused form held."""
    metrics = {metric.name: metric for metric in card.metrics}
    decided = {name: given.parts for name, given in card.given.items()} | dict(decided)
    sources = {one.number: one.source for one in card.contexts or ()}
    compared = [
        _comparison(one, metrics[one.metric.name], entered, decided, sources)
        for one in sorted(said, key=lambda one: -one.distance)
    ]
    baseline = any(one.said and one.said.baseline for one in said)
    return RevealPage(
        card=card,
        own=own,
        answer=numbered_html(card.answer, card.claims, card.contexts),
        differences=tuple(one for one in compared if one.found.distance > 0),
        others=tuple(one for one in compared if not one.found.distance > 0),
        about_judge=DESCRIPTION.in_language(get_language() or "en") if baseline else "",
        keys=keys,
        error=error,
    )


def past_rating(assignment: Assignment, standing: Sequence[Rating], closed: Collection[int]) -> PastRating:
    """A line of the list; ``closed`` are the metrics on which a lead has decided."""
    decided = bool(standing) and all(one.metric_id in closed for one in standing)
    is_open = assignment.item.queue.state == ReviewQueue.State.OPEN
    may_reopen = assignment.state == Assignment.State.FINISHED and is_open and not decided
    return PastRating(assignment, standing, decided, may_reopen, may_override=not (is_open or decided))


def again_page(
    card: Card,
    standing: Mapping[str, Rating],
    closed: Collection[int],
    *,
    entered: Entered = NOTHING,
    decided: Decided = NO_PARTS,
    form_key: str = "",
    error: str = "",
) -> AgainPage:
    """The form with what stands, or with what a refused form held."""
    fields = []
    for metric in card.metrics:
        stands, held = standing[metric.name], entered.get(metric.name, {})
        parts = decided.get(metric.name) or parts_given(stands)
        field = metric_field(metric, held.get("value", "") or _entered_of(stands), decided=parts, blank=0)
        reason, comment = held.get("reason", ""), held.get("comment", "")
        fields.append(AgainField(field, stands, reason, comment, stands.metric_id in closed))
    return AgainPage(
        card=card,
        answer=numbered_html(card.answer, card.claims, card.contexts),
        fields=tuple(fields),
        form_key=form_key or uuid.uuid4().hex,
        stands=max(rating.pk for rating in standing.values()),
        error=error,
    )


def _entered_of(rating: Rating | None) -> str:
    """A rating as it stands in a form field."""
    if rating is None:
        return ""
    return field_text({"value": rating.value, "label": rating.label, "cannot_judge": rating.cannot_judge})


def _parts(
    one: JudgeSaid, metric: CardMetric, given: Sequence[PartGiven], sources: Mapping[int, str]
) -> tuple[Part, ...]:
    own = {part.number: part.verdict for part in given if part.number}
    rows: list[Part] = []
    for part in metric.parts:
        # A nugget's name stands before its alternatives; the judge's row has the name alone.
        judge = next((v for text_, v in one.parts if part.text == text_ or part.text.startswith(f"{text_} / ")), "")
        passage = None if part.context is None else part.context + 1
        rows.append((part.number, sources.get(passage or 0) or part.text, own.get(part.number, ""), judge, passage))
    added = [part for part in given if not part.number]
    return (*rows, *((at, part.text, part.verdict, "", None) for at, part in enumerate(added, start=len(rows) + 1)))


def _comparison(
    one: JudgeSaid, metric: CardMetric, entered: Entered, decided: Decided, sources: Mapping[int, str]
) -> Comparison:
    kept, parts, scale = entered.get(metric.name, {}), decided.get(metric.name, ()), one.metric.read_scale()
    silent, why = value_said(one.said) is None, _why(one)
    left_out = one.own is not None and one.own.cannot_judge
    return Comparison(
        found=one,
        own=gettext("cannot judge") if left_out else value_text(one.own, scale),
        judge=judge_text(one.said, scale),
        judge_title=_judge_title(one),
        why=why,
        why_language=(get_language() or "en") if silent else language_of(why),
        chart=_chart(one),
        field=metric_field(metric, kept.get("value", "") or _entered_of(one.own), decided=parts, blank=0),
        parts=_parts(one, metric, parts, sources) if metric.verdicts else (),
        reason=kept.get("reason", ""),
        comment=kept.get("comment", ""),
    )


def _chart(one: JudgeSaid) -> ScaleLine | None:
    expert = one.own.value if one.own else None
    judge = one.said.value if one.said else None
    scale = one.metric.read_scale()
    if expert is None or judge is None or scale.kind is ScaleKind.CLASS:
        return None
    return scale_line(scale, expert=expert, judge=judge)


def _judge_title(one: JudgeSaid) -> str:
    if one.said and one.said.baseline:
        return gettext("offline baseline")
    return gettext("rule") if one.said and not one.said.by else gettext("judge")


def _why(one: JudgeSaid) -> str:
    if one.said is None:
        return explain_reason("no_value")
    return explain_reason(one.said.reason) if value_said(one.said) is None else judge_reason(one.said.reason)
