"""After the rating: expert and judge side by side, and whether the expert keeps or changes the value; and a person's
own past ratings, the list of them and the form that rates one again."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.registry import ScaleKind
from evaluation.judging.baseline import DESCRIPTION
from evaluation.wording import numbers
from evaluation.wording.markdown import language_of
from evaluation.wording.messages import explain_reason
from review.charts.axis import ScaleLine, scale_line
from review.evidence.rating_input import OverrideReason, PartGiven, parts_given
from review.models import Assignment, Rating, ReviewQueue
from review.queues.progress import OwnProgress
from review.ratings.card import Card, CardMetric
from review.ratings.reveals import JudgeSaid
from review.web.forms.rating import field_text
from review.web.pages.item import (
    MetricField,
    PassageView,
    metric_field,
    numbered_html,
    passages,
    value_text,
    verdict_title,
)
from review.web.pages.item import said as value_said
from review.web.pages.review_card import Keys

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
Entered = Mapping[str, Mapping[str, str]]
Decided = Mapping[str, Sequence[PartGiven]]
Reasons = tuple[tuple[str, str, bool], ...]  # of the closed list: value, title and whether chosen


@dataclass(frozen=True, slots=True)
class PartCompared:
    """A part with both verdicts; a dash where one of the two did not judge it. ``passage`` is the number of the passage
    that it is, told by its source rather than by the system's own key."""

    number: int
    text: str
    own: str
    judge: str
    same: bool
    passage: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric: what the expert said first and what the judge said. ``chart`` is ``None`` where the scale has no
    order or a value is missing. ``field`` holds the levels to change to."""

    found: JudgeSaid
    own: str
    judge: str
    judge_title: str
    why: str
    why_language: str
    chart: ScaleLine | None
    field: MetricField
    parts: tuple[PartCompared, ...]
    reasons: Reasons
    comment: str


@dataclass(frozen=True, slots=True)
class RevealPage:
    """The reveal screen. ``differences`` come first, the metrics on which both agree after them. ``about_judge`` says
    what the offline baseline is, and nothing of other judges."""

    card: Card
    own: OwnProgress
    answer: SafeString
    contexts: tuple[PassageView, ...] | None
    differences: tuple[Comparison, ...]
    others: tuple[Comparison, ...]
    about_judge: str
    keys: Keys
    error: str


@dataclass(frozen=True, slots=True)
class PastRating:
    """A line of the list of own ratings: the values as they stand, whether a lead has decided all of them, and what the
    person may still do: rate again, or override once the queue is closed."""

    assignment: Assignment
    standing: tuple[Rating, ...]
    decided: bool
    may_reopen: bool
    may_override: bool


@dataclass(frozen=True, slots=True)
class MyRatingsPage:
    """The person's recent ratings, newest first."""

    ratings: tuple[PastRating, ...]


@dataclass(frozen=True, slots=True)
class AgainField:
    """A metric to be rated again; ``closed`` where a lead has decided."""

    field: MetricField
    standing: Rating
    reasons: Reasons
    comment: str
    closed: bool


@dataclass(frozen=True, slots=True)
class AgainPage:
    """The form. ``form_key`` makes two submits of it one decision; ``stands`` is the newest rating it begins with."""

    card: Card
    answer: SafeString
    contexts: tuple[PassageView, ...] | None
    fields: tuple[AgainField, ...]
    form_key: str
    stands: int
    error: str


def reveal_page(
    card: Card,
    said: Sequence[JudgeSaid],
    own: OwnProgress,
    keys: Keys,
    *,
    entered: Entered = MappingProxyType({}),
    decided: Decided = MappingProxyType({}),
    error: str = "",
) -> RevealPage:
    """The screen; ``entered`` keeps what a refused form held: metric -> ``value``, ``reason``, ``comment``, and
    ``decided`` its verdicts on parts."""
    metrics = {metric.name: metric for metric in card.metrics}
    first = {name: given.parts for name, given in card.given.items()}
    sources = {one.number: one.source for one in card.contexts or ()}
    compare = partial(_comparison, entered=entered, decided={**first, **decided}, sources=sources)
    furthest = sorted(said, key=lambda one: -one.distance)
    compared = [compare(one, metrics[one.metric.name]) for one in furthest]
    return RevealPage(
        card=card,
        own=own,
        answer=numbered_html(card.answer, card.claims),
        contexts=passages(card.contexts, card.claims),
        differences=tuple(one for one in compared if one.found.distance > 0),
        others=tuple(one for one in compared if not one.found.distance > 0),
        about_judge=_about_judge(said),
        keys=keys,
        error=error,
    )


def past_rating(assignment: Assignment, standing: Sequence[Rating], closed: Collection[int]) -> PastRating:
    """A line of the list; ``closed`` are the metrics on which a lead has decided."""
    decided = bool(standing) and all(one.metric_id in closed for one in standing)
    is_open = assignment.item.queue.state == ReviewQueue.State.OPEN
    may_reopen = assignment.state == Assignment.State.FINISHED and is_open and not decided
    return PastRating(assignment, tuple(standing), decided, may_reopen, may_override=not (is_open or decided))


def again_page(
    card: Card,
    standing: Mapping[str, Rating],
    closed: Collection[int],
    *,
    entered: Entered = MappingProxyType({}),
    decided: Decided = MappingProxyType({}),
    form_key: str = "",
    error: str = "",
) -> AgainPage:
    """The form with what stands, or with what a refused form held."""
    return AgainPage(
        card=card,
        answer=numbered_html(card.answer, card.claims),
        contexts=passages(card.contexts, card.claims),
        fields=tuple(
            _again_field(metric, standing[metric.name], closed, entered.get(metric.name, {}), decided.get(metric.name))
            for metric in card.metrics
        ),
        form_key=form_key or uuid.uuid4().hex,
        stands=max(rating.pk for rating in standing.values()),
        error=error,
    )


def _again_field(
    metric: CardMetric,
    standing: Rating,
    closed: Collection[int],
    held: Mapping[str, str],
    decided: Sequence[PartGiven] | None,
) -> AgainField:
    entered = held.get("value", "") or _entered_of(standing)
    return AgainField(
        field=metric_field(metric, entered, decided=decided or parts_given(standing), blank=0),
        standing=standing,
        reasons=_reasons(held.get("reason", "")),
        comment=held.get("comment", ""),
        closed=standing.metric_id in closed,
    )


def _reasons(chosen: str) -> Reasons:
    return tuple((reason.value, str(title), reason.value == chosen) for reason, title in REASONS.items())


def _entered_of(rating: Rating | None) -> str:
    """A rating as it stands in a form field."""
    if rating is None:
        return ""
    return field_text({"value": rating.value, "label": rating.label, "cannot_judge": rating.cannot_judge})


def _parts(
    one: JudgeSaid, metric: CardMetric, given: Sequence[PartGiven], sources: Mapping[int, str]
) -> tuple[PartCompared, ...]:
    """Both verdicts on every part that either of the two judged."""
    own = {part.number: part.verdict for part in given if part.number}
    rows = []
    for part in metric.parts:
        # A nugget's name stands before its alternatives; the judge's row has the name alone.
        judge = next((v for text_, v in one.parts if part.text == text_ or part.text.startswith(f"{text_} / ")), "")
        mine = own.get(part.number, "")
        passage = None if part.context is None else part.context + 1
        rows.append((part.number, sources.get(passage or 0) or part.text, mine, judge, passage))
    added = [part for part in given if not part.number]
    rows += [(number, part.text, part.verdict, "", None) for number, part in enumerate(added, start=len(rows) + 1)]
    return tuple(
        PartCompared(
            number,
            what,
            verdict_title(mine) if mine else "–",
            verdict_title(judge) if judge else "–",
            mine == judge,
            passage,
        )
        for number, what, mine, judge, passage in rows
    )


def _comparison(
    one: JudgeSaid, metric: CardMetric, entered: Entered, decided: Decided, sources: Mapping[int, str]
) -> Comparison:
    kept, parts = entered.get(metric.name, {}), decided.get(metric.name, ())
    judge, why = value_said(one.said), _why(one)
    return Comparison(
        found=one,
        own=_own_text(one),
        judge=gettext("no value") if judge is None else numbers.on_scale(judge, one.metric.read_scale()),
        judge_title=_judge_title(one),
        why=why,
        why_language=(get_language() or "en") if judge is None else language_of(why),
        chart=_chart(one),
        field=metric_field(metric, kept.get("value", "") or _entered_of(one.own), decided=parts, blank=0),
        parts=_parts(one, metric, parts, sources) if metric.verdicts else (),
        reasons=_reasons(kept.get("reason", "")),
        comment=kept.get("comment", ""),
    )


def _chart(one: JudgeSaid) -> ScaleLine | None:
    expert = one.own.value if one.own else None
    judge = one.said.value if one.said else None
    scale = one.metric.read_scale()
    if expert is None or judge is None or scale.kind is ScaleKind.CLASS:
        return None
    return scale_line(scale, expert=expert, judge=judge)


def _own_text(one: JudgeSaid) -> str:
    if one.own is not None and one.own.cannot_judge:
        return gettext("cannot judge")
    return value_text(one.own, one.metric.read_scale())


def _judge_title(one: JudgeSaid) -> str:
    if one.said is None:
        return gettext("judge")
    if one.said.baseline:
        return gettext("offline baseline")
    return gettext("judge") if one.said.by else gettext("rule")


def _about_judge(said: Sequence[JudgeSaid]) -> str:
    if not any(one.said and one.said.baseline for one in said):
        return ""
    return DESCRIPTION.in_language(get_language() or "en")


def _why(one: JudgeSaid) -> str:
    if one.said is None:
        return explain_reason("no_value")
    return explain_reason(one.said.reason) if value_said(one.said) is None else one.said.reason
