"""A reviewer's own past ratings: the list of them, and the form that rates one again."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType

from evaluation.wording import numbers
from evaluation.wording.markdown import language_of
from review.evidence.rated_claims import parts_given
from review.evidence.rating_input import PartGiven
from review.models import Assignment, Rating, ReviewQueue
from review.ratings.card import Card
from review.web.forms.rating import field_text
from review.web.pages.choices import MetricField, metric_field
from review.web.pages.links import answer_href
from review.web.pages.passages import PassageView, passages
from review.web.pages.reveal import reason_choices
from review.web.pages.review_card import Text, numbered, text


@dataclass(frozen=True, slots=True)
class PastRating:
    """A line of the list. ``values`` are title and value as they stand; ``override`` leads to where an assigned expert
    can still decide once the queue is closed."""

    assignment_id: int
    question: str
    language: str
    queue_name: str
    at: datetime | None
    values: tuple[tuple[str, str], ...]
    may_reopen: bool
    decided: bool
    override: str


@dataclass(frozen=True, slots=True)
class MyRatingsPage:
    """The person's recent ratings, newest first."""

    ratings: tuple[PastRating, ...]


@dataclass(frozen=True, slots=True)
class AgainField:
    """A metric to be rated again; ``closed`` where a lead has decided."""

    field: MetricField
    standing: str
    reasons: tuple[tuple[str, str, bool], ...]
    comment: str
    closed: bool


@dataclass(frozen=True, slots=True)
class AgainPage:
    """The form. ``form_key`` makes two submits of it one decision; ``stands`` is the newest rating it begins with."""

    assignment_id: int
    queue_id: int
    queue_name: str
    question: Text
    answer: Text
    references: tuple[Text, ...]
    contexts: tuple[PassageView, ...] | None
    fields: tuple[AgainField, ...]
    form_key: str
    stands: int
    error: str


def past_rating(
    assignment: Assignment, standing: Mapping[str, Rating], closed: Collection[int], language: str
) -> PastRating:
    """A line of the list."""
    queue, question = assignment.item.queue, assignment.item.answer.question.text
    decided = bool(standing) and all(one.metric_id in closed for one in standing.values())
    is_open = queue.state == ReviewQueue.State.OPEN
    return PastRating(
        assignment_id=assignment.pk,
        question=question,
        language=language_of(question),
        queue_name=queue.name,
        at=assignment.submitted_at,
        values=tuple((str(one.metric.title.get(language) or name), value_text(one)) for name, one in standing.items()),
        may_reopen=assignment.state == Assignment.State.FINISHED and is_open and not decided,
        decided=decided,
        override="" if is_open or decided else answer_href(assignment.item.answer_id, assignment.item.run_id),
    )


def again_page(
    card: Card,
    standing: Mapping[str, Rating],
    closed: Collection[int],
    *,
    entered: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    decided: Mapping[str, Sequence[PartGiven]] = MappingProxyType({}),
    form_key: str = "",
    error: str = "",
) -> AgainPage:
    """The form with what stands, or with what a refused form held."""
    fields = []
    for metric in card.metrics:
        one, held = standing[metric.name], entered.get(metric.name, {})
        now = field_text({"value": one.value, "label": one.label, "cannot_judge": one.cannot_judge})
        fields.append(
            AgainField(
                metric_field(
                    metric, held.get("value", "") or now, decided=decided.get(metric.name) or parts_given(one), blank=0
                ),
                value_text(one),
                reason_choices(held.get("reason", "")),
                held.get("comment", ""),
                one.metric_id in closed,
            )
        )
    return AgainPage(
        assignment_id=card.id,
        queue_id=card.queue_id,
        queue_name=card.queue_name,
        question=text(card.question),
        answer=numbered(card),
        references=tuple(text(reference) for reference in card.references),
        contexts=passages(card),
        fields=tuple(fields),
        form_key=form_key or uuid.uuid4().hex,
        stands=max(rating.pk for rating in standing.values()),
        error=error,
    )


def value_text(rating: Rating) -> str:
    """A rating's value as its scale is read."""
    if rating.cannot_judge:
        return "–"
    said = rating.label if rating.value is None else rating.value
    return numbers.on_scale(said or 0.0, rating.metric.read_scale())
