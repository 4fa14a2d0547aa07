"""The items of a queue for its lead: who has which, and naming people for them; and the questions in doubt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluation.models import User
from evaluation.wording import numbers
from evaluation.wording.markdown import language_of
from review.evidence.rating_input import FlagKind
from review.models import ReviewItem, ReviewQueue
from review.queues.questions import DoubtfulQuestion
from review.web.pages.links import answer_href
from review.web.pages.review_card import FLAGS


@dataclass(frozen=True, slots=True)
class ItemRow:
    """An item with its question, its state, for whom it is kept, and who had it with what became of that."""

    pk: int
    href: str
    question_id: str
    question: str
    language: str
    state: str
    needed: int
    kept_for: tuple[str, ...]
    nobody: bool
    holders: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class QueueItemsPage:
    """One page of items. ``back`` and ``on`` are addresses of the pages beside, empty at the ends."""

    pk: int
    name: str
    rows: tuple[ItemRow, ...]
    people: tuple[tuple[int, str], ...]
    waiting: bool
    back: str
    on: str
    error: str


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question in doubt: how many answers and ratings it has, what its best answer reached, and its flags.
    ``item_id`` leads to where it can be amended."""

    item_id: int
    question_id: str
    text: str
    language: str
    answers: int
    ratings: int
    best: str
    nobody_right: bool
    flags: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class QueueQuestionsPage:
    """The questions of a queue that may be at fault themselves."""

    pk: int
    name: str
    rows: tuple[QuestionRow, ...]


def queue_items_page(
    queue: ReviewQueue,
    items: Sequence[ReviewItem],
    people: Iterable[User],
    *,
    waiting: bool,
    back: str = "",
    on: str = "",
    error: str = "",
) -> QueueItemsPage:
    """The page of a queue's items."""
    return QueueItemsPage(
        pk=queue.pk,
        name=queue.name,
        rows=tuple(_item(item) for item in items),
        people=tuple((one.pk, one.known_as) for one in people),
        waiting=waiting,
        back=back,
        on=on,
        error=error,
    )


def queue_questions_page(queue: ReviewQueue, found: Sequence[DoubtfulQuestion]) -> QueueQuestionsPage:
    """The page of the questions in doubt."""
    return QueueQuestionsPage(queue.pk, queue.name, tuple(_question(one) for one in found))


def _item(item: ReviewItem) -> ItemRow:
    question = item.answer.question
    kept = tuple(one.reviewer.known_as for one in item.reservations.all())
    held = item.assignments.all()
    return ItemRow(
        pk=item.pk,
        href=answer_href(item.answer_id, item.run_id),
        question_id=question.external_id,
        question=question.text,
        language=language_of(question.text),
        state=str(item.get_state_display()),
        needed=item.reviews_needed,
        kept_for=kept,
        nobody=item.reserved and not kept,
        holders=tuple((one.reviewer.known_as, str(one.get_state_display())) for one in held),
    )


def _question(one: DoubtfulQuestion) -> QuestionRow:
    text = one.question.text
    return QuestionRow(
        item_id=one.item_id,
        question_id=one.question.external_id,
        text=text,
        language=language_of(text),
        answers=one.answers,
        ratings=one.ratings,
        best="" if one.best is None else numbers.share(one.best),
        nobody_right=one.nobody_right,
        flags=tuple((str(FLAGS[FlagKind(kind)]), count) for kind, count in sorted(one.flags.items())),
    )
