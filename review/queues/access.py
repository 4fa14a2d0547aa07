"""Fetch and authorise for the human half: a reviewer sees own queues and own items, everything else is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, cast

from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.db.models import Exists, Manager, OuterRef, Q, QuerySet
from django.http import Http404

from evaluation.accounts import access
from evaluation.accounts.access import LARGEST_ID, M, Person
from evaluation.core.roles import Action
from evaluation.models import Answer, Run, User
from review.decisions.overrides import may_override
from review.evidence.answers import same_text
from review.evidence.seals import readable
from review.models import Assignment, Draw, ItemEvent, QueueMember, Rating, ReviewItem, ReviewQueue
from review.models.statements import OWN, OWN_SHOWN, QUEUE_FOR_RATING, held
from review.ratings.leases import for_whom
from review.ratings.settling import PASSED, RATED


def queues_of(user: Person) -> QuerySet[ReviewQueue]:
    """The queues the person leads or is a member of, newest first."""
    led = Q(project__in=access.projects_with(user, Action.MANAGE_REVIEW).values("pk"))
    reached = access.projects_with(user, Action.RATE).values("pk")
    rows = QueueMember.objects.filter(queue__project__in=reached)
    mine = Q(pk__in=(rows.filter(reviewer=user) if isinstance(user, User) else rows.none()).values("queue"))
    return ReviewQueue.objects.filter(led | mine).order_by("-id")


def queues_led_by(user: Person) -> QuerySet[ReviewQueue]:
    """The queues the person leads, newest first."""
    led = access.projects_with(user, Action.MANAGE_REVIEW).values("pk")
    return ReviewQueue.objects.filter(project__in=led).order_by("-id")


def queue_for_lead(user: Person, pk: int | str) -> ReviewQueue:
    """A queue for who manages it.

    :raises Http404: for everybody who cannot see it.
    :raises PermissionDenied: for a member of the queue without that right.
    """
    queue = queue_for_reading(user, pk)
    if not leads(user, queue):
        raise PermissionDenied
    return queue


def queue_for_reading(user: Person, pk: int | str) -> ReviewQueue:
    """A queue for its leads and members; 404 for all others, whatever their role in the project."""
    return _one(queues_of(user), pk)


def queue_for_rating(user: Person, pk: int | str) -> ReviewQueue:
    """A queue for its members only."""
    row = QUEUE_FOR_RATING.first(queue=_row_id(pk), **access.reached_by(user))
    if row is None:
        raise Http404
    queue: ReviewQueue = row[0]
    return queue


def leads(user: Person, queue: ReviewQueue) -> bool:
    """Whether the person manages the queue."""
    return access.may(user, queue.project_id, Action.MANAGE_REVIEW)


class NamedAccess(Generic[M]):
    """Who may do what with rows of a project whose ``members`` are named to rate in them, such as sets of pairs."""

    def __init__(self, rows: Manager[M]) -> None:
        self.rows = rows

    def of(self, user: Person) -> QuerySet[M]:
        """What the person leads or is named in, newest first."""
        led = Q(project__in=access.projects_with(user, Action.MANAGE_REVIEW).values("pk"))
        reached = Q(project__in=access.projects_with(user, Action.RATE).values("pk"))
        named = Q(pk__in=self.rows.filter(members__reviewer=user).values("pk")) if isinstance(user, User) else Q(pk=0)
        return self.rows.filter(led | (reached & named)).order_by("-pk")

    def get(self, user: Person, pk: int | str) -> M:
        """One for its leads and members; 404 for all others, whatever their role in the project."""
        return _one(self.of(user), pk)

    def for_lead(self, user: Person, pk: int | str) -> M:
        """One for who manages it.

        :raises Http404: for everybody who cannot see it.
        :raises PermissionDenied: for those who only rate in it.
        """
        found = self.get(user, pk)
        if not self.leads(user, found):
            raise PermissionDenied
        return found

    def to_rate(self, user: Person, pk: int | str) -> M:
        """One for those named in it.

        :raises PermissionDenied: for a lead who is not.
        """
        found: Any = self.get(user, pk)
        if not found.members.filter(reviewer=user.pk).exists():
            raise PermissionDenied
        return cast(M, found)

    def leads(self, user: Person, found: M) -> bool:
        """Whether the person manages it."""
        return access.may(user, cast(Any, found).project_id, Action.MANAGE_REVIEW)


def own_assignment(user: Person, pk: int | str, *, shown: bool = False) -> Assignment:
    """An item in the person's own hands, with its queue and, where it is to be ``shown``, what its card needs; 404 for
    anybody else's."""
    row = (OWN_SHOWN if shown else OWN).first(assignment=_row_id(pk), **access.reached_by(user))
    if row is None:
        raise Http404
    found: Assignment
    if shown:
        found = held(*row)
    else:
        found, found.item, found.item.queue = row
    if isinstance(user, User):
        found.reviewer = user
    return found


def own_rated(user: Person) -> QuerySet[Assignment]:
    """What the person has rated, newest first, with queue and question."""
    reached = access.projects_with(user, Action.RATE).values("pk")
    rows = Assignment.objects.filter(item__queue__project__in=reached, state__in=RATED)
    rows = rows.filter(reviewer=user) if isinstance(user, User) else rows.none()
    return rows.select_related("item__queue", "item__answer__question").order_by("-submitted_at", "-pk")


def draws_of(user: Person) -> QuerySet[Draw]:
    """The draws of the projects the person leads, newest first."""
    return access.visible(Draw.objects.order_by("-id"), user, Action.MANAGE_REVIEW, path="run__project_id")


def draw_for_lead(user: Person, pk: int | str) -> Draw:
    """A draw for who manages reviews in its project."""
    return access.fetch(Draw.objects.all(), user, Action.MANAGE_REVIEW, pk, path="run__project_id")


def ratings_of(user: Person) -> QuerySet[Rating]:
    """The person's own ratings, and those of the projects whose results they may see, except of answers they still
    have to rate themselves, or of equal ones: nobody reads another's rating first. Of sealed ones the own
    alone."""
    if not isinstance(user, User):
        return Rating.objects.none()
    own = Assignment.objects.filter(item=OuterRef("pk"), reviewer=user, state__in=RATED)
    ahead = ReviewItem.objects.filter(
        ~Exists(own),
        for_whom(user.pk),
        same_text("answer"),
        state=ReviewItem.State.OPEN,
        queue__state=ReviewQueue.State.OPEN,
        queue__members__reviewer=user,
    )
    seen = Q(answer__answer_set__project__in=access.projects_with(user, Action.VIEW).values("pk")) & ~Exists(ahead)
    reached = access.projects_with(user, Action.RATE).values("pk")
    rows = Rating.objects.filter(Q(reviewer=user, answer__answer_set__project__in=reached) | seen)
    return readable(rows, own=Q(reviewer=user)).order_by("-id")


def cases_for_lead(user: Person) -> QuerySet[ReviewItem]:
    """The items of the projects in which the person adjudicates, without those they may yet be given to rate: what
    others said of these would come before an own rating."""
    named = QueueMember.objects.filter(queue=OuterRef("queue"), reviewer=user.pk)
    done = Assignment.objects.filter(item=OuterRef("pk"), reviewer=user.pk, state__in=(*RATED, *PASSED))
    waiting = Q(Exists(named), ~Exists(done), state=ReviewItem.State.OPEN, queue__state=ReviewQueue.State.OPEN)
    return access.visible(ReviewItem.objects.exclude(waiting), user, Action.ADJUDICATE, path="queue__project_id")


def case_item(user: Person, pk: int | str) -> ReviewItem:
    """An item for who adjudicates in its project.

    :raises Http404: for strangers to the project.
    :raises PermissionDenied: for others whose roles do not allow it.
    """
    rows = ReviewItem.objects.select_related("queue", "run__profile_version", "answer__question__question_set__project")
    return access.fetch(rows, user, Action.ADJUDICATE, pk, path="queue__project_id")


def event_for_lead(user: Person, pk: int | str) -> ItemEvent:
    """A flag or escalation for who adjudicates in its project; refused as :func:`case_item` refuses."""
    rows = ItemEvent.objects.select_related("assignment__item__queue", "assignment__item__answer")
    return access.fetch(rows, user, Action.ADJUDICATE, pk, path="assignment__item__queue__project_id")


def answer_to_override(user: Person, pk: int | str) -> Answer:
    """An answer for a lead or an assigned expert.

    :raises Http404: for strangers to the project, and for reviewers who have not rated it.
    :raises PermissionDenied: for others who may see the answer.
    """
    answer = _one(Answer.objects.select_related("answer_set", "question"), pk)
    _check_override(user, answer.answer_set.project_id, lambda person: may_override(person, answer))
    return answer


def run_to_override(user: Person, pk: int | str) -> Run:
    """A run for a lead, or for somebody who has rated an answer of it; refused as :func:`answer_to_override` does."""
    run = _one(Run.objects.all(), pk)

    def allowed(person: User) -> bool:
        rated = Assignment.objects.filter(
            reviewer=person, item__answer__answer_set_id=run.answer_set_id, state__in=RATED
        )
        expert = access.may(person, run.project_id, Action.RATE) and rated.exists()
        return expert or access.may(person, run.project_id, Action.OVERRIDE)

    _check_override(user, run.project_id, allowed)
    return run


def _check_override(user: Person, project_id: int, allowed: Callable[[User], bool]) -> None:
    if not isinstance(user, User) or not access.roles_in(user, project_id):
        raise Http404
    if not allowed(user):
        raise PermissionDenied if access.may(user, project_id, Action.VIEW) else Http404


def _row_id(pk: int | str) -> int:
    """A primary key as both databases take it; what they cannot hold is the key of nothing."""
    return min(int(pk), LARGEST_ID)


def _one(rows: QuerySet[M], pk: int | str) -> M:
    try:
        return rows.get(pk=pk)
    except ObjectDoesNotExist:
        raise Http404 from None
