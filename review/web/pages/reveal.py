"""After the rating: expert and judge side by side, and whether the expert keeps or changes the value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.scales import ScaleKind
from evaluation.judging.baseline import DESCRIPTION
from evaluation.wording import numbers
from evaluation.wording.markdown import language_of
from evaluation.wording.messages import explain_reason
from review.charts.scale_line import ScaleLine, scale_line
from review.evidence.rating_input import MOVED, OverrideReason, PartGiven
from review.queues.progress import OwnProgress
from review.ratings.card import Card, CardMetric
from review.ratings.reveals import JudgeSaid
from review.web.forms.rating import field_text
from review.web.pages.choices import MetricField, metric_field
from review.web.pages.claims import ClaimView, claim_views, verdict_title
from review.web.pages.keys import Keys
from review.web.pages.passages import PassageView, passages
from review.web.pages.review_card import Pace, Text, numbered, pace, text

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


@dataclass(frozen=True, slots=True)
class PartCompared:
    """A part with both verdicts; empty where one of the two did not judge it. ``passage`` is the number of the passage
    that it is, told by its source rather than by the system's own key."""

    number: int
    text: str
    language: str
    own: str
    judge: str
    same: bool
    passage: int | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """One metric: what the expert said first and what the judge said. ``differs`` tells whether they do; ``chart`` is
    ``None`` where the scale has no order or a value is missing. ``field`` holds the levels to change to; ``reasons``
    are value, title and whether chosen."""

    name: str
    title: str
    own: str
    judge: str
    judge_title: str
    rubric: str
    why: str
    why_language: str
    differs: bool
    far: bool
    chart: ScaleLine | None
    field: MetricField
    parts: tuple[PartCompared, ...]
    reasons: tuple[tuple[str, str, bool], ...]
    comment: str


@dataclass(frozen=True, slots=True)
class RevealPage:
    """The reveal screen. ``differences`` come first, the metrics on which both agree after them. ``about_judge`` says
    what the offline baseline is, and nothing of other judges."""

    assignment_id: int
    queue_id: int
    queue_name: str
    question: Text
    answer: Text
    references: tuple[Text, ...]
    contexts: tuple[PassageView, ...] | None
    claims: tuple[ClaimView, ...]
    differences: tuple[Comparison, ...]
    others: tuple[Comparison, ...]
    about_judge: str
    pace: Pace
    keys: Keys
    error: str


Entered = Mapping[str, Mapping[str, str]]
Decided = Mapping[str, Sequence[PartGiven]]


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
        assignment_id=card.id,
        queue_id=card.queue_id,
        queue_name=card.queue_name,
        question=text(card.question),
        answer=numbered(card),
        references=tuple(text(reference) for reference in card.references),
        contexts=passages(card),
        claims=claim_views(card.claims),
        differences=tuple(one for one in compared if one.differs),
        others=tuple(one for one in compared if not one.differs),
        about_judge=_about_judge(said),
        pace=pace(own),
        keys=keys,
        error=error,
    )


def reason_choices(chosen: str) -> tuple[tuple[str, str, bool], ...]:
    """The closed list of reasons: value, title and whether chosen."""
    return tuple((reason.value, str(title), reason.value == chosen) for reason, title in REASONS.items())


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
            language_of(what),
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
    scale, said, own = one.metric.read_scale(), one.said, one.own
    first = (
        "" if own is None else field_text({"value": own.value, "label": own.label, "cannot_judge": own.cannot_judge})
    )
    kept = entered.get(metric.name, {})
    judge_value = None if said is None else (said.label if said.value is None else said.value)
    return Comparison(
        name=metric.name,
        title=metric.title,
        own=_own_text(one, first),
        judge=numbers.on_scale(judge_value, scale) if judge_value is not None else gettext("no value"),
        judge_title=_judge_title(one),
        rubric=said.rubric if said else "",
        why=_why(one),
        why_language=(get_language() or "en") if judge_value is None else text(_why(one)).language,
        differs=one.distance > 0,
        far=one.distance >= MOVED or math.isinf(one.distance),
        chart=_chart(one),
        field=metric_field(metric, kept.get("value", "") or first, decided=decided.get(metric.name, ()), blank=0),
        parts=_parts(one, metric, decided.get(metric.name, ()), sources) if metric.verdicts else (),
        reasons=reason_choices(kept.get("reason", "")),
        comment=kept.get("comment", ""),
    )


def _chart(one: JudgeSaid) -> ScaleLine | None:
    expert = one.own.value if one.own else None
    judge = one.said.value if one.said else None
    scale = one.metric.read_scale()
    if expert is None or judge is None or scale.kind is ScaleKind.CLASS:
        return None
    return scale_line(scale, expert=expert, judge=judge)


def _own_text(one: JudgeSaid, first: str) -> str:
    if one.own is None:
        return "–"
    if one.own.cannot_judge:
        return gettext("cannot judge")
    return numbers.on_scale(one.own.label if one.own.value is None else one.own.value, one.metric.read_scale())


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
    if one.said.value is None and one.said.label is None:
        return explain_reason(one.said.reason)
    return one.said.reason
