"""The list of what waits for a lead, and a case: what the reviewers said without their names, nothing of the judge."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _

from evaluation.models import User
from evaluation.wording import numbers
from evaluation.wording.markdown import language_of
from review.decisions.cases import Case, Why
from review.models import ItemEvent, Override, Rating
from review.ratings.card import CardMetric, Passage
from review.ratings.claims import Claim
from review.ratings.reveals import JudgeSaid
from review.web.pages.again import value_text
from review.web.pages.choices import WHY_NOT, MetricField, metric_field
from review.web.pages.claims import numbered_html
from review.web.pages.passages import PassageView
from review.web.pages.review_card import FLAGS, Text, text

WHY = {
    Why.ESCALATION: _("escalated"),
    Why.FLAG: _("flagged"),
    Why.DIFFERENCE: _("reviewers differ"),
    Why.TIE: _("reviewers are split evenly"),
    Why.PASSED_ON: _("passed on, too few ratings"),
}
EVENTS = {"flag": _("Flag"), "escalate": _("Escalation")}


@dataclass(frozen=True, slots=True)
class CaseRow:
    """A case in the list. ``apart`` are titles of metrics and how far apart the ratings lie."""

    item_id: int
    question: str
    language: str
    queue_name: str
    why: tuple[str, ...]
    apart: tuple[tuple[str, str], ...]
    own: bool


@dataclass(frozen=True, slots=True)
class AdjudicationPage:
    """Everything that waits for the lead."""

    cases: tuple[CaseRow, ...]


@dataclass(frozen=True, slots=True)
class Voice:
    """What one reviewer said of one metric first. ``who`` is a letter, or after the decision the name."""

    who: str
    value: str
    comment: str
    language: str


@dataclass(frozen=True, slots=True)
class MetricCase:
    """A metric of the case. ``seen`` is the number of the newest decision; ``standing`` what a lead decided, empty
    before; ``judge`` is shown after that alone. ``own``: the lead rated it. ``apart``: it is in dispute."""

    field: MetricField
    voices: tuple[Voice, ...]
    seen: int
    standing: str
    standing_by: str
    standing_why: str
    judge: str
    apart: bool
    own: bool
    reason: str


@dataclass(frozen=True, slots=True)
class Raised:
    """A flag or an escalation (``asks``) that nobody has ruled on. ``removes``: upheld, it takes the
    answer out of all means."""

    event_id: int
    kind: str
    comment: str
    language: str
    own: bool
    asks: bool
    removes: bool


@dataclass(frozen=True, slots=True)
class CasePage:
    """A case."""

    item_id: int
    answer_id: int
    run_id: int
    queue_name: str
    why: tuple[str, ...]
    category: str
    question: Text
    answer: Text
    references: tuple[Text, ...]
    contexts: tuple[PassageView, ...] | None
    suggestions: tuple[Text, ...]
    metrics: tuple[MetricCase, ...]
    raised: tuple[Raised, ...]
    is_open: bool
    to_rate: bool
    error: str


def case_rows(cases: Sequence[Case], reader: User) -> tuple[CaseRow, ...]:
    """The lines of a list for this person."""
    language = get_language() or "en"
    return tuple(_row(case, any(row.reviewer_id == reader.pk for row in case.ratings), language) for case in cases)


def _row(case: Case, own: bool, language: str) -> CaseRow:
    titles = {row.metric_id: str(row.metric.title.get(language) or row.metric.name) for row in case.ratings}
    question = case.item.answer.question.text
    return CaseRow(
        item_id=case.item.pk,
        question=question,
        language=language_of(question),
        queue_name=case.item.queue.name,
        why=tuple(str(WHY[reason]) for reason in case.why),
        apart=tuple((titles[metric], _distance(apart)) for metric, apart in case.apart.items()),
        own=own,
    )


def letters(ratings: Sequence[Rating]) -> dict[int, str]:
    """A letter for each reviewer, in the order of their assignments; nothing in it tells who they are."""
    people = dict.fromkeys(row.reviewer_id or 0 for row in sorted(ratings, key=lambda row: row.assignment_id or 0))
    return {person: chr(ord("A") + place % 26) for place, person in enumerate(people)}


def metric_case(
    metric: CardMetric,
    metric_id: int,
    case: Case,
    decisions: Sequence[Override],
    standing: Override | None,
    said: JudgeSaid | None,
    user_id: int,
    named: bool,
    entered: Mapping[str, str] = MappingProxyType({}),
) -> MetricCase:
    """A metric of the case; ``said`` is given, and reviewers are ``named``, only once all of it was decided."""
    rows = [row for row in case.ratings if row.metric_id == metric_id]
    names = letters(case.ratings)
    asked = replace(metric, verdicts=(), parts=())  # a lead gives the figure itself
    return MetricCase(
        field=metric_field(asked, entered.get("value", "")),
        voices=tuple(_voice(row, names, named=named) for row in rows),
        seen=decisions[-1].seq if decisions else 0,
        standing=_decided(standing),
        standing_by=standing.by.known_as if standing else "",
        standing_why=standing.reason if standing else "",
        judge=_judge(said),
        apart=metric_id in case.apart,
        own=any(row.reviewer_id == user_id for row in rows),
        reason=entered.get("reason", ""),
    )


def raised(event: ItemEvent, user_id: int, removing: frozenset[str]) -> Raised:
    """A flag or an escalation as the case shows it."""
    flags = {kind.value: str(title) for kind, title in FLAGS.items()}
    named = flags.get(event.kind, "") if event.verb == "flag" else ""
    return Raised(
        event_id=event.pk,
        kind=f"{EVENTS[event.verb]}: {named}" if named else str(EVENTS[event.verb]),
        comment=event.comment,
        language=language_of(event.comment),
        own=event.assignment.reviewer_id == user_id,
        asks=event.verb == "escalate",
        removes=event.verb == "flag" and event.kind in removing,
    )


def case_texts(answer: str, claims: Sequence[Claim]) -> Text:
    """The answer with the neutral numbers of its claims."""
    return Text(answer, numbered_html(answer, claims), language_of(answer))


def case_passages(passages: Sequence[Passage] | None) -> tuple[PassageView, ...] | None:
    """The passages, plain."""
    if passages is None:
        return None
    return tuple(PassageView(p.number, p.source, p.text, language_of(p.text), p.link, ()) for p in passages)


def texts(values: Sequence[str]) -> tuple[Text, ...]:
    """Several texts with their languages."""
    return tuple(text(value) for value in values)


def _voice(row: Rating, names: Mapping[int, str], *, named: bool) -> Voice:
    letter = gettext("Reviewer %(letter)s") % {"letter": names[row.reviewer_id or 0]}
    person = row.reviewer.known_as if named and row.reviewer else letter
    why = next((str(title) for code, title in WHY_NOT.items() if code.value == row.reason_code), "")
    value = gettext("cannot judge") if row.cannot_judge else value_text(row)
    return Voice(
        person, f"{value} ({why})" if row.cannot_judge and why else value, row.comment, language_of(row.comment)
    )


def _decided(standing: Override | None) -> str:
    if standing is None:
        return ""
    said = standing.label if standing.value is None else standing.value
    return numbers.on_scale(said or 0.0, standing.metric.read_scale())


def _judge(said: JudgeSaid | None) -> str:
    if said is None:
        return ""
    value = None if said.said is None else (said.said.label if said.said.value is None else said.said.value)
    return gettext("no value") if value is None else numbers.on_scale(value, said.metric.read_scale())


def _distance(apart: float) -> str:
    return gettext("different") if math.isinf(apart) else numbers.plain(apart, 1)
