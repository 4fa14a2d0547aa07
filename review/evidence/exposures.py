"""Who has seen a judge's value of an answer that they may still have to rate."""

from __future__ import annotations

from collections.abc import Collection

from django.contrib.auth.models import AnonymousUser
from django.db.models import Q, QuerySet

from evaluation.accounts.access import projects_with
from evaluation.core.roles import Action
from evaluation.models import Answer, Run, User
from review.models import Exposure, QueueMember, ReviewItem, ReviewQueue
from review.models.statements import EXPOSED

ANSWER, RUN = "answer", "run"


def expose(user: User | AnonymousUser, subject: Answer | Run, via: str) -> None:
    """Record that the person was shown the judge's value of an answer, or of a whole run as an export does.

    Only members of an open queue that holds such an answer, and leads who may have to decide on it, are recorded,
    once. Every page, endpoint and export that shows a judge's value calls this before it answers; ``via`` names it in
    a word.
    """
    if isinstance(subject, Answer):
        expose_answers(user, [subject.pk], via)
    elif isinstance(user, User) and _reviewed_by(user).filter(answer__answer_set_id=subject.answer_set_id).exists():
        _record(user, RUN, [subject.pk], via)


def expose_answers(user: User | AnonymousUser, answer_ids: Collection[int], via: str) -> None:
    """The same for a page that shows the judge's values of several answers."""
    if isinstance(user, User):
        shown = _reviewed_by(user).filter(answer_id__in=answer_ids).values_list("answer_id", flat=True)
        _record(user, ANSWER, sorted(set(shown)), via)


def expose_queue(user: User | AnonymousUser, queue: ReviewQueue) -> None:
    """The same for an export of a queue's items: of every run behind it."""
    for run in Run.objects.filter(items__queue=queue).distinct():
        expose(user, run, "items")


def exposed(user: User, answer_id: int) -> bool:
    """Whether the person is recorded as having seen a judge's value of the answer, by itself or with a run."""
    return EXPOSED.first(user=user.pk, answer=answer_id) is not None


def _reviewed_by(user: User) -> QuerySet[ReviewItem]:
    """The items the person may still have to rate, or as a lead to decide on."""
    mine = QueueMember.objects.filter(reviewer=user, queue__state=ReviewQueue.State.OPEN)
    led = projects_with(user, Action.ADJUDICATE)
    return ReviewItem.objects.filter(Q(queue__in=mine.values("queue")) | Q(queue__project__in=led.values("pk")))


def _record(user: User, scope: str, object_ids: Collection[int], via: str) -> None:
    Exposure.objects.bulk_create(
        [Exposure(user=user, scope=scope, object_id=one, via=via) for one in object_ids], ignore_conflicts=True
    )
