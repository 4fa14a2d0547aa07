"""View models of disputes: the list, a case without reviewer names or judge values, and the amendment forms."""

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
from review.decisions.cases import Case, CaseDetail, CaseReason
from review.evidence.answers import EXCLUDING_FLAGS
from review.models import ItemEvent, Override, Rating, ReviewItem
from review.ratings.card import CardMetric
from review.ratings.pages.card import FLAGS
from review.ratings.pages.item import WHY_NOT, MetricField, answer_html, judge_text, metric_field, value_text

REASON_LABELS = {
    CaseReason.ESCALATION: _("escalated"),
    CaseReason.FLAG: _("flagged"),
    CaseReason.DIFFERENCE: _("reviewers disagree"),
    CaseReason.TIE: _("reviewers evenly split"),
    CaseReason.PASSED_ON: _("skipped, too few ratings"),
}
EVENT_LABELS = {"flag": _("Flag"), "escalate": _("Escalation")}
EnteredDecisions = Mapping[str, Mapping[str, str]]


class CaseRow(NamedTuple):
    """A case in the list. ``distances`` are metric titles with the distance of ratings; ``own``: the user rated it."""

    item: ReviewItem
    why: tuple[str, ...]
    distances: tuple[tuple[str, str], ...]
    own: bool


class ReviewerRating(NamedTuple):
    """A reviewer's first rating of one metric. ``reviewer`` is a letter, or the name after the decision."""

    reviewer: str
    value: str
    comment: str


class MetricCase(NamedTuple):
    """A metric of a case.

    ``last_seq`` is the number of the newest decision, ``decision`` the current one or ``None``. ``judge`` is shown only
    after a decision. ``own_rating``: the lead rated it. ``reason`` is the input of a refused form."""

    field: MetricField
    reviewer_ratings: tuple[ReviewerRating, ...]
    last_seq: int
    decision: Override | None
    judge: str
    is_disputed: bool
    own_rating: bool
    reason: str


class OpenEvent(NamedTuple):
    """An open flag or escalation. ``own_event``: the lead raised it. ``removes``: upholding it excludes the answer."""

    event: ItemEvent
    kind: str
    own_event: bool
    removes: bool


@dataclass(frozen=True, slots=True)
class CasePage:
    """Context of a case; ``answer`` has numbered claims."""

    item: ReviewItem
    detail: CaseDetail
    question: QuestionSpec
    answer: SafeString
    why: tuple[str, ...]
    metrics: tuple[MetricCase, ...]
    open_events: tuple[OpenEvent, ...]
    error: str


def case_rows(cases: Sequence[Case], reader: User) -> list[CaseRow]:
    """Build the rows of the dispute list for a user."""
    language = get_language() or "en"
    rows = []
    for case in cases:
        titles = {row.metric_id: str(row.metric.title.get(language) or row.metric.name) for row in case.ratings}
        distance = tuple((titles[metric], _distance_text(apart)) for metric, apart in case.distances.items())
        own = any(row.reviewer_id == reader.pk for row in case.ratings)
        rows.append(CaseRow(case.item, _reason_labels(case), distance, own))
    return rows


def _reason_labels(case: Case) -> tuple[str, ...]:
    return tuple(str(REASON_LABELS[reason]) for reason in case.why)


def _distance_text(distance: float) -> str:
    return gettext("different") if math.isinf(distance) else numbers.format_number(distance, 1)


def case_page(
    item: ReviewItem, detail: CaseDetail, reader: User, decision_input: EnteredDecisions, error: str
) -> CasePage:
    """Build the page of a case for a lead; ``decision_input`` holds the input of a refused form, by metric."""
    return CasePage(
        item=item,
        detail=detail,
        question=item.answer.question.read(),
        answer=answer_html(item.answer.text, detail.claims, detail.passages),
        why=_reason_labels(detail.case),
        metrics=tuple(
            _metric(metric_id, metric, detail, reader, decision_input.get(metric.name, {}))
            for metric_id, metric in detail.metrics
        ),
        open_events=tuple(_open_event(event, reader) for event in detail.case.events),
        error=error,
    )


def _metric(
    metric_id: int, metric: CardMetric, detail: CaseDetail, reader: User, metric_input: Mapping[str, str]
) -> MetricCase:
    rows = [row for row in detail.case.ratings if row.metric_id == metric_id]
    names, judge = _letters(detail.case.ratings), detail.judge_comparisons.get(metric_id)
    decisions = detail.decisions.get(metric_id, ())
    # A lead gives the value itself, without verdicts on parts.
    numeric_metric = replace(metric, verdicts=(), parts=())
    return MetricCase(
        field=metric_field(numeric_metric, metric_input.get("value", "")),
        reviewer_ratings=tuple(_reviewer_rating(row, names, show_name=detail.is_decided) for row in rows),
        last_seq=decisions[-1].seq if decisions else 0,
        decision=detail.adjudicated.get(metric_id),
        judge=judge_text(judge.judge_value, judge.metric.read_scale()) if judge else "",
        is_disputed=metric_id in detail.case.distances,
        own_rating=any(row.reviewer_id == reader.pk for row in rows),
        reason=metric_input.get("reason", ""),
    )


def _letters(ratings: Sequence[Rating]) -> dict[int, str]:
    """Assign each reviewer a letter in order of assignments, which does not reveal who they are."""
    people = dict.fromkeys(row.reviewer_id or 0 for row in sorted(ratings, key=lambda row: row.assignment_id or 0))
    return {person: chr(ord("A") + position % 26) for position, person in enumerate(people)}


def _reviewer_rating(row: Rating, names: Mapping[int, str], *, show_name: bool) -> ReviewerRating:
    letter = gettext("Reviewer %(letter)s") % {"letter": names[row.reviewer_id or 0]}
    person = row.reviewer.display_name if show_name and row.reviewer else letter
    if not row.cannot_judge:
        return ReviewerRating(person, value_text(row, row.metric.read_scale()), row.comment)
    reason = next((str(title) for code, title in WHY_NOT.items() if code.value == row.reason_code), "")
    value = gettext("cannot judge")
    return ReviewerRating(person, f"{value} ({reason})" if reason else value, row.comment)


def _open_event(event: ItemEvent, reader: User) -> OpenEvent:
    flags = {kind.value: str(title) for kind, title in FLAGS.items()}
    flag_label = flags.get(event.kind, "") if event.verb == "flag" else ""
    return OpenEvent(
        event=event,
        kind=f"{EVENT_LABELS[event.verb]}: {flag_label}" if flag_label else str(EVENT_LABELS[event.verb]),
        own_event=event.assignment.reviewer_id == reader.pk,
        removes=event.verb == "flag" and event.kind in EXCLUDING_FLAGS,
    )


def rubric_lines(metric: RubricMetric) -> list[tuple[str, str]]:
    """Return the levels and labels of a metric with their texts."""
    levels = [(f"{level.value:g}", level.text) for level in metric.levels]
    return [*levels, *((label.label, label.text) for label in metric.labels)]
