"""What needs a person now: answers to rate, disputes to settle, runs to start or to repair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.accounts import access
from evaluation.core.roles import Action
from evaluation.models import Run, User
from evaluation.work.plugins import Waiting, extras
from review.decisions.cases import open_cases
from review.models import ReviewQueue
from review.queues.access import cases_for_lead
from review.queues.progress import OwnProgress, own_progresses

USUAL_SECONDS = 60.0  # a first guess for people who have no pace of their own yet


@dataclass(frozen=True, slots=True)
class WaitingQueue:
    """A queue with answers for the person to rate, and about how many seconds they will take."""

    queue: ReviewQueue
    waiting: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Attention:
    """Everything of the person's projects that waits for them. ``others`` are what extras have for them; ``disputed``
    are queues with their number of items in dispute, for leads; drafts and incomplete runs are for who may run
    things."""

    queues: tuple[WaitingQueue, ...]
    others: tuple[Waiting, ...]
    disputed: tuple[tuple[ReviewQueue, int], ...]
    drafts: tuple[Run, ...]
    incomplete: tuple[Run, ...]


def attention(user: User) -> Attention:
    """What needs the person now."""
    mine = ReviewQueue.objects.filter(state=ReviewQueue.State.OPEN, members__reviewer=user)
    mine = mine.filter(project__in=access.projects_with(user, Action.RATE).values("pk")).order_by("deadline", "pk")
    queues = list(mine)
    progress = own_progresses(queues, user)
    waiting = [found for queue in queues if (found := _waiting(queue, progress[queue.pk])).waiting]
    runs = access.visible(Run.objects.select_related(Run.NAMED_BY), user, Action.EVALUATE)
    open_runs = list(runs.filter(state__in=[Run.State.DRAFT, Run.State.INCOMPLETE]).order_by("-pk")[:20])
    return Attention(
        queues=tuple(waiting),
        others=tuple(one for extra in extras() if extra.waiting for one in extra.waiting(user)),
        disputed=tuple(_disputed(user)),
        drafts=tuple(run for run in open_runs if run.state == Run.State.DRAFT),
        incomplete=tuple(run for run in open_runs if run.state == Run.State.INCOMPLETE),
    )


def _waiting(queue: ReviewQueue, own: OwnProgress) -> WaitingQueue:
    return WaitingQueue(queue, own.left, own.left * (own.median_seconds or USUAL_SECONDS))


def _disputed(user: User) -> Sequence[tuple[ReviewQueue, int]]:
    counted = Counter(case.item.queue for case in open_cases(cases_for_lead(user)))
    return sorted(counted.items(), key=lambda one: one[0].pk)
