"""Look up review objects with permission checks: a reviewer sees only own queues and items; all others are 404."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, cast

from django.core.exceptions import ObjectDoesNotExist, PermissionDenied
from django.db.models import Case, Exists, F, Manager, OuterRef, Q, QuerySet, When
from django.http import Http404
from django.utils.translation import get_language

from evaluation.accounts import access
from evaluation.accounts.access import MAX_ID, M, UserOrAnonymous
from evaluation.core.roles import Action
from evaluation.models import Answer, Run, User
from review.decisions.overrides import may_override, overridable_by_rater
from review.evidence.answers import has_same_text
from review.evidence.seals import readable
from review.models import Assignment, Draw, ItemEvent, QueueMember, Rating, ReviewItem, ReviewQueue
from review.models.statements import OWN_ASSIGNMENT, OWN_CARD, QUEUE_FOR_RATING, assemble_assignment
from review.ratings.item_state import PASSED, RATED
from review.ratings.leases import available_to


def visible_queues(user: UserOrAnonymous) -> QuerySet[ReviewQueue]:
    """Queues that the user leads or is a member of, newest first."""
    lead_filter = Q(project__in=access.projects_with(user, Action.MANAGE_REVIEW).values("pk"))
    rating_projects = access.projects_with(user, Action.RATE).values("pk")
    memberships = QueueMember.objects.filter(queue__project__in=rating_projects)
    member_filter = Q(
        pk__in=(memberships.filter(reviewer=user) if isinstance(user, User) else memberships.none()).values("queue")
    )
    return ReviewQueue.objects.filter(lead_filter | member_filter).order_by("-id")


def outside_readers_language() -> Case:
    """Sort key of queues: 0 for those with answers to questions in the reader's language, else 1."""
    language = Q(run__answer_set__question_set__metadata__language=get_language())
    return Case(When(Exists(Draw.objects.filter(language, queue=OuterRef("pk"))), then=0), default=1)


def queues_led_by(user: UserOrAnonymous) -> QuerySet[ReviewQueue]:
    """Queues that the user leads, newest first."""
    led_projects = access.projects_with(user, Action.MANAGE_REVIEW).values("pk")
    return ReviewQueue.objects.filter(project__in=led_projects).order_by("-id")


def queue_for_lead(user: UserOrAnonymous, pk: int | str) -> ReviewQueue:
    """Return a queue that the user manages.

    :raises Http404: if the user cannot see the queue.
    :raises PermissionDenied: if the user is only a member of it."""
    queue = queue_for_reading(user, pk)
    if not leads(user, queue):
        raise PermissionDenied
    return queue


def queue_for_reading(user: UserOrAnonymous, pk: int | str) -> ReviewQueue:
    """Return a queue for its leads and members; 404 for all others, whatever their role in the project."""
    return _get_or_404(visible_queues(user), pk)


def queue_for_rating(user: UserOrAnonymous, pk: int | str) -> ReviewQueue:
    """Return a queue for its members; 404 for all others."""
    row = QUEUE_FOR_RATING.first(queue=_clamped_id(pk), **access.project_access_params(user))
    if row is None:
        raise Http404
    queue: ReviewQueue = row[0]
    return queue


def leads(user: UserOrAnonymous, queue: ReviewQueue) -> bool:
    """Return whether the user manages the queue."""
    return access.may(user, queue.project_id, Action.MANAGE_REVIEW)


class MemberAccess(Generic[M]):
    """Access to rows of a project that have ``members`` who rate in them, such as pair sets."""

    def __init__(self, rows: Manager[M]) -> None:
        self.rows = rows

    def visible_to(self, user: UserOrAnonymous) -> QuerySet[M]:
        """Rows that the user leads or is a member of, newest first."""
        lead_filter = Q(project__in=access.projects_with(user, Action.MANAGE_REVIEW).values("pk"))
        rating_filter = Q(project__in=access.projects_with(user, Action.RATE).values("pk"))
        member_filter = (
            Q(pk__in=self.rows.filter(members__reviewer=user).values("pk")) if isinstance(user, User) else Q(pk=0)
        )
        return self.rows.filter(lead_filter | (rating_filter & member_filter)).order_by("-pk")

    def get(self, user: UserOrAnonymous, pk: int | str) -> M:
        """Return a row for its leads and members; 404 for all others, whatever their role in the project."""
        return _get_or_404(self.visible_to(user), pk)

    def for_lead(self, user: UserOrAnonymous, pk: int | str) -> M:
        """Return a row that the user manages.

        :raises Http404: if the user cannot see it.
        :raises PermissionDenied: if the user is only a member of it."""
        row = self.get(user, pk)
        if not self.leads(user, row):
            raise PermissionDenied
        return row

    def for_rater(self, user: UserOrAnonymous, pk: int | str) -> M:
        """Return a row for its members.

        :raises PermissionDenied: for a lead who is not a member."""
        row: Any = self.get(user, pk)
        if not row.members.filter(reviewer=user.pk).exists():
            raise PermissionDenied
        return cast(M, row)

    def leads(self, user: UserOrAnonymous, row: M) -> bool:
        """Return whether the user manages the row."""
        return access.may(user, cast(Any, row).project_id, Action.MANAGE_REVIEW)


def own_assignment(user: UserOrAnonymous, pk: int | str, *, with_card: bool = False) -> Assignment:
    """Return an assignment of the user with its queue, and, if ``with_card``, with all rows its card needs. 404 for the
    assignments of others."""
    row = (OWN_CARD if with_card else OWN_ASSIGNMENT).first(
        assignment=_clamped_id(pk), **access.project_access_params(user)
    )
    if row is None:
        raise Http404
    assignment: Assignment
    if with_card:
        assignment = assemble_assignment(*row)
    else:
        assignment, assignment.item, assignment.item.queue = row
    if isinstance(user, User):
        assignment.reviewer = user
    return assignment


def own_rated_assignments(user: UserOrAnonymous) -> QuerySet[Assignment]:
    """Rated assignments of the user, newest first, with queue and question."""
    rating_projects = access.projects_with(user, Action.RATE).values("pk")
    rows = Assignment.objects.filter(item__queue__project__in=rating_projects, state__in=RATED)
    rows = rows.filter(reviewer=user) if isinstance(user, User) else rows.none()
    return rows.select_related("item__queue", "item__answer__question").order_by("-submitted_at", "-pk")


def visible_draws(user: UserOrAnonymous) -> QuerySet[Draw]:
    """Draws of the projects that the user leads, newest first."""
    return access.visible(Draw.objects.order_by("-id"), user, Action.MANAGE_REVIEW, path="run__project_id")


def draw_for_lead(user: UserOrAnonymous, pk: int | str) -> Draw:
    """Return a draw for leads of its project."""
    return access.fetch(Draw.objects.all(), user, Action.MANAGE_REVIEW, pk, path="run__project_id")


def visible_ratings(user: UserOrAnonymous) -> QuerySet[Rating]:
    """Ratings that the user may read: own ones, and those of projects whose results the user may see.

    Ratings of answers that the user still has to rate, or of equal answers, are left out, so nobody reads another
    rating first. Of sealed ratings only the own ones are included. ``shown_answer`` and
    ``shown_run`` are the ids of the answer and of its run, ``None`` while they may not be shown: consecutive ids tell
    which answers share a system."""
    if not isinstance(user, User):
        return Rating.objects.none()
    own_assignments = Assignment.objects.filter(item=OuterRef("pk"), reviewer=user, state__in=RATED)
    items_to_rate = ReviewItem.objects.filter(
        ~Exists(own_assignments),
        available_to(user.pk),
        has_same_text("answer"),
        state=ReviewItem.State.OPEN,
        queue__state=ReviewQueue.State.OPEN,
        queue__members__reviewer=user,
    )
    project_filter = Q(answer__answer_set__project__in=access.projects_with(user, Action.VIEW).values("pk")) & ~Exists(
        items_to_rate
    )
    rating_projects = access.projects_with(user, Action.RATE).values("pk")
    rows = Rating.objects.filter(Q(reviewer=user, answer__answer_set__project__in=rating_projects) | project_filter)
    hidden = Q(
        ~Q(answer__answer_set__project__in=access.projects_with(user, Action.VIEW).values("pk")),
        assignment__item__queue__hide_system=True,
        assignment__item__queue__state=ReviewQueue.State.OPEN,
    )
    rows = rows.annotate(
        shown_answer=Case(When(hidden, then=None), default=F("answer_id")),
        shown_run=Case(When(hidden, then=None), default=F("assignment__item__run_id")),
    )
    return readable(rows, own=Q(reviewer=user)).order_by("-id")


def cases_for_lead(user: UserOrAnonymous) -> QuerySet[ReviewItem]:
    """Items of projects in which the user adjudicates, without those the user may still be asked to rate: other ratings
    must not be seen first."""
    memberships = QueueMember.objects.filter(queue=OuterRef("queue"), reviewer=user.pk)
    finished_assignments = Assignment.objects.filter(item=OuterRef("pk"), reviewer=user.pk, state__in=(*RATED, *PASSED))
    open_to_user = Q(
        Exists(memberships),
        ~Exists(finished_assignments),
        state=ReviewItem.State.OPEN,
        queue__state=ReviewQueue.State.OPEN,
    )
    return access.visible(ReviewItem.objects.exclude(open_to_user), user, Action.ADJUDICATE, path="queue__project_id")


def item_to_adjudicate(user: UserOrAnonymous, pk: int | str) -> ReviewItem:
    """Return an item for adjudicators of its project.

    :raises Http404: if the user has no role in the project.
    :raises PermissionDenied: if the user's roles do not allow adjudication."""
    rows = ReviewItem.objects.select_related("queue", "run__profile_version", "answer__question__question_set__project")
    return access.fetch(rows, user, Action.ADJUDICATE, pk, path="queue__project_id")


def event_for_lead(user: UserOrAnonymous, pk: int | str) -> ItemEvent:
    """Return a flag or escalation for adjudicators of its project; raises as :func:`item_to_adjudicate`."""
    rows = ItemEvent.objects.select_related("assignment__item__queue", "assignment__item__answer")
    return access.fetch(rows, user, Action.ADJUDICATE, pk, path="assignment__item__queue__project_id")


def complete_answers() -> QuerySet[Answer]:
    """Answers with their set and question. Those of an unfinished import are left out, since ``purge`` deletes them."""
    return Answer.objects.filter(answer_set__is_unfinished=False).select_related("answer_set", "question")


def answer_to_override(user: UserOrAnonymous, pk: int | str) -> Answer:
    """Return an answer for a lead or an assigned expert.

    :raises Http404: if the user has no role in the project, or is a reviewer who has not rated the answer.
    :raises PermissionDenied: if the user may only read the answer."""
    answer = _get_or_404(complete_answers(), pk)
    _check_override(user, answer.answer_set.project_id, lambda person: may_override(person, answer))
    return answer


def run_to_override(user: UserOrAnonymous, pk: int | str) -> Run:
    """Return a run for a lead, or for an expert who has rated an answer of it; raises as :func:`answer_to_override`."""
    run = _get_or_404(Run.objects.all(), pk)

    def is_allowed(person: User) -> bool:
        rated_assignments = overridable_by_rater(person).filter(item__answer__answer_set_id=run.answer_set_id)
        is_expert = access.may(person, run.project_id, Action.RATE) and rated_assignments.exists()
        return is_expert or access.may(person, run.project_id, Action.OVERRIDE)

    _check_override(user, run.project_id, is_allowed)
    return run


def _check_override(user: UserOrAnonymous, project_id: int, is_allowed: Callable[[User], bool]) -> None:
    if not isinstance(user, User) or not access.roles_in(user, project_id):
        raise Http404
    if not is_allowed(user):
        raise PermissionDenied if access.may(user, project_id, Action.VIEW) else Http404


def _clamped_id(pk: int | str) -> int:
    """Limit a primary key to the range of both databases; a larger one matches no row."""
    return min(int(pk), MAX_ID)


def _get_or_404(rows: QuerySet[M], pk: int | str) -> M:
    try:
        return rows.get(pk=pk)
    except ObjectDoesNotExist:
        raise Http404 from None
