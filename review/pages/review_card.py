"""The review screen: a card, the fields to rate it by, and the person's own progress. Nothing about the judge."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from evaluation.markdown import language_of, render
from review.given import FlagKind
from review.pages import numbers
from review.pages.choices import MetricField, metric_field
from review.queues.card import Card
from review.queues.progress import OwnProgress

FLAGS = {
    FlagKind.BAD_QUESTION: _("The question is bad"),
    FlagKind.BAD_REFERENCE: _("The expected answer is wrong or outdated"),
    FlagKind.UNREADABLE: _("The answer is unreadable"),
    FlagKind.UNSAFE: _("The answer is unsafe"),
    FlagKind.CONFLICT_OF_INTEREST: _("I have a conflict of interest"),
}


@dataclass(frozen=True, slots=True)
class Text:
    """A block of text with the language it is in; ``html`` is its safe rendering as Markdown."""

    raw: str
    html: SafeString
    language: str


@dataclass(frozen=True, slots=True)
class PassageView:
    """A retrieved passage by its number."""

    number: int
    source: str
    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Pace:
    """The person's own part of the queue, and nobody else's."""

    rated: int
    items: int
    passed_on: int
    median: str


@dataclass(frozen=True, slots=True)
class ReviewPage:
    """Everything on the review screen. ``form_key`` makes two submits of one form one decision; ``undo`` is the
    assignment that ``z`` takes back, ``None`` where there is none."""

    assignment_id: int
    queue_id: int
    queue_name: str
    guideline: SafeString
    category: str
    history: tuple[Text, ...]
    question: Text
    answer: Text
    references: tuple[Text, ...]
    contexts: tuple[PassageView, ...] | None
    system: str
    fields: tuple[MetricField, ...]
    comment: str
    form_key: str
    pace: Pace
    stale: bool
    undo: int | None
    error: str
    flags: tuple[tuple[str, str], ...]


def review_page(
    card: Card,
    own: OwnProgress,
    *,
    entered: Mapping[str, str],
    comment: str = "",
    undo: int | None = None,
    error: str = "",
    form_key: str = "",
    missing: Collection[str] = (),
) -> ReviewPage:
    """The screen with what was entered so far; after a refused submit with the error and the same ``form_key``."""
    contexts = None
    if card.contexts is not None:
        contexts = tuple(PassageView(p.number, p.source, p.text, language_of(p.text)) for p in card.contexts)
    return ReviewPage(
        assignment_id=card.id,
        queue_id=card.queue_id,
        queue_name=card.queue_name,
        guideline=render(card.guideline),
        category=card.category,
        history=tuple(text(turn) for turn in card.history),
        question=text(card.question),
        answer=text(card.answer),
        references=tuple(text(reference) for reference in card.references),
        contexts=contexts,
        system=card.system,
        fields=tuple(metric_field(m, entered.get(m.name, ""), missing=m.name in missing) for m in card.metrics),
        comment=comment,
        form_key=form_key or uuid.uuid4().hex,
        pace=pace(own),
        stale=card.stale,
        undo=undo,
        error=error,
        flags=tuple((kind.value, str(title)) for kind, title in FLAGS.items()),
    )


def text(raw: str) -> Text:
    """A text with its rendering and language."""
    return Text(raw, render(raw), language_of(raw))


def pace(own: OwnProgress) -> Pace:
    """The person's own numbers as the head of the screen shows them."""
    median = "" if own.median_seconds is None else numbers.about(own.median_seconds)
    return Pace(own.rated, own.items, own.skipped + own.flagged, median)
