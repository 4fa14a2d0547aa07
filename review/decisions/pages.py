"""What waits for a lead, a case (what the reviewers said without their names, nothing of the judge), and the forms in
which its cause is amended: the question or the rubric."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from django.utils.safestring import SafeString
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.core.samples import QuestionSpec
from evaluation.judging.rubric import RubricMetric
from evaluation.messages import numbers
from evaluation.models import User
from review.decisions.cases import Case, CaseShown, Why
from review.evidence.answers import REMOVING
from review.models import ItemEvent, Override, Rating, ReviewItem
from review.ratings.card import CardMetric
from review.ratings.pages.card import FLAGS
from review.ratings.pages.item import WHY_NOT, MetricField, judge_text, metric_field, numbered_html, value_text

WHY = {
    Why.ESCALATION: _("escalated"),
    Why.FLAG: _("flagged"),
    Why.DIFFERENCE: _("reviewers differ"),
    Why.TIE: _("reviewers are split evenly"),
    Why.PASSED_ON: _("passed on, too few ratings"),
}
EVENTS = {"flag": _("Flag"), "escalate": _("Escalation")}
Entered = Mapping[str, Mapping[str, str]]


class CaseRow(NamedTuple):
    """A case in the list. ``apart`` are titles of metrics and how far apart the ratings lie; ``own``: the reader rated
    it."""

    item: ReviewItem
    why: tuple[str, ...]
    apart: tuple[tuple[str, str], ...]
    own: bool


class Voice(NamedTuple):
    """What one reviewer said of one metric first. ``who`` is a letter, or after the decision the name."""

    who: str
    value: str
    comment: str


class MetricCase(NamedTuple):
    """A metric of the case. ``seen`` is the number of the newest decision; ``standing`` what a lead decided, ``None``
    before; ``judge`` is shown after that alone. ``own``: the lead rated it. ``apart``: it is in dispute. ``reason`` is
    what a refused form held."""

    field: MetricField
    voices: tuple[Voice, ...]
    seen: int
    standing: Override | None
    judge: str
    apart: bool
    own: bool
    reason: str


class Raised(NamedTuple):
    """A flag or an escalation that nobody has ruled on. ``own``: the lead raised it. ``removes``: upheld, it takes the
    answer out of all means."""

    event: ItemEvent
    kind: str
    own: bool
    removes: bool


@dataclass(frozen=True, slots=True)
class CasePage:
    """A case. ``answer`` has the neutral numbers of its claims."""

    item: ReviewItem
    shown: CaseShown
    question: QuestionSpec
    answer: SafeString
    why: tuple[str, ...]
    metrics: tuple[MetricCase, ...]
    raised: tuple[Raised, ...]
    error: str


def case_rows(cases: Sequence[Case], reader: User) -> list[CaseRow]:
    """The lines of a list for this person."""
    language = get_language() or "en"
    rows = []
    for case in cases:
        titles = {row.metric_id: str(row.metric.title.get(language) or row.metric.name) for row in case.ratings}
        apart = tuple((titles[metric], _distance(apart)) for metric, apart in case.apart.items())
        own = any(row.reviewer_id == reader.pk for row in case.ratings)
        rows.append(CaseRow(case.item, _why(case), apart, own))
    return rows


def _why(case: Case) -> tuple[str, ...]:
    return tuple(str(WHY[reason]) for reason in case.why)


def _distance(apart: float) -> str:
    return gettext("different") if math.isinf(apart) else numbers.plain(apart, 1)


def case_page(item: ReviewItem, shown: CaseShown, reader: User, entered: Entered, error: str) -> CasePage:
    """The page of a case for a lead; ``entered`` keeps what a refused form held: metric -> ``value``, ``reason``."""
    return CasePage(
        item=item,
        shown=shown,
        question=item.answer.question.read(),
        answer=numbered_html(item.answer.text, shown.claims, shown.passages),
        why=_why(shown.case),
        metrics=tuple(
            _metric(metric_id, metric, shown, reader, entered.get(metric.name, {}))
            for metric_id, metric in shown.metrics
        ),
        raised=tuple(_raised(event, reader) for event in shown.case.events),
        error=error,
    )


def _metric(
    metric_id: int, metric: CardMetric, shown: CaseShown, reader: User, entered: Mapping[str, str]
) -> MetricCase:
    rows = [row for row in shown.case.ratings if row.metric_id == metric_id]
    names, judge = _letters(shown.case.ratings), shown.said.get(metric_id)
    decisions = shown.decisions.get(metric_id, ())
    asked = replace(metric, verdicts=(), parts=())  # a lead gives the figure itself
    return MetricCase(
        field=metric_field(asked, entered.get("value", "")),
        voices=tuple(_voice(row, names, named=shown.over) for row in rows),
        seen=decisions[-1].seq if decisions else 0,
        standing=shown.adjudicated.get(metric_id),
        judge=judge_text(judge.said, judge.metric.read_scale()) if judge else "",
        apart=metric_id in shown.case.apart,
        own=any(row.reviewer_id == reader.pk for row in rows),
        reason=entered.get("reason", ""),
    )


def _letters(ratings: Sequence[Rating]) -> dict[int, str]:
    """A letter for each reviewer, in the order of their assignments; nothing in it tells who they are."""
    people = dict.fromkeys(row.reviewer_id or 0 for row in sorted(ratings, key=lambda row: row.assignment_id or 0))
    return {person: chr(ord("A") + place % 26) for place, person in enumerate(people)}


def _voice(row: Rating, names: Mapping[int, str], *, named: bool) -> Voice:
    letter = gettext("Reviewer %(letter)s") % {"letter": names[row.reviewer_id or 0]}
    person = row.reviewer.known_as if named and row.reviewer else letter
    if not row.cannot_judge:
        return Voice(person, value_text(row, row.metric.read_scale()), row.comment)
    why = next((str(title) for code, title in WHY_NOT.items() if code.value == row.reason_code), "")
    value = gettext("cannot judge")
    return Voice(person, f"{value} ({why})" if why else value, row.comment)


def _raised(event: ItemEvent, reader: User) -> Raised:
    flags = {kind.value: str(title) for kind, title in FLAGS.items()}
    named = flags.get(event.kind, "") if event.verb == "flag" else ""
    return Raised(
        event=event,
        kind=f"{EVENTS[event.verb]}: {named}" if named else str(EVENTS[event.verb]),
        own=event.assignment.reviewer_id == reader.pk,
        removes=event.verb == "flag" and event.kind in REMOVING,
    )


def rubric_lines(metric: RubricMetric) -> list[tuple[str, str]]:
    """The levels and labels of a metric with their texts."""
    levels = [(f"{level.value:g}", level.text) for level in metric.levels]
    return [*levels, *((label.label, label.text) for label in metric.labels)]
