"""What the home page tells: what needs a person now, and the headline of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.accounts import access
from evaluation.core.roles import Action
from evaluation.extensions import Waiting, features
from evaluation.models import Run, User
from review.decisions.cases import open_cases
from review.models import ReviewQueue
from review.queues.access import cases_for_lead
from review.queues.progress import OwnProgress, own_progresses
from review.reports.report import Report
from review.reports.verdict import MetricTrust, verdict_of


@dataclass(frozen=True, slots=True)
class Headline:
    """The most trustworthy overall figure there is, and which of the three (``kind``) it is: ``value`` with its
    interval, or ``withheld`` with a reason code. ``worst`` is the rated metric of the run's judge that can be trusted
    least, of ``judged`` rated metrics; ``None`` without ratings. ``rated``: how many answers experts have rated of
    ``answers``. ``label`` is ``overall_score`` unless the figure is of some parts only."""

    kind: str
    value: float | None
    low: float | None
    high: float | None
    withheld: str
    label: str
    weight: float
    worst: MetricTrust | None
    judged: int
    rated: int
    answers: int


def headline(report: Report) -> Headline:
    """Corrected where it is offered, else reviewed where anything was rated, else judge-only."""
    overall = report.overall
    kind, figure = "judge", overall.judge_only
    if overall.part_only is not None:
        kind, figure = "plain-mark", overall.part_only
    elif overall.corrected.value is not None:
        kind, figure = "corrected", overall.corrected
    elif overall.reviewed_answers:
        kind, figure = "expert", overall.reviewed
    metrics = [one for one in verdict_of(report).metrics if one.figures.n]
    return Headline(
        kind=kind,
        value=figure.value,
        low=figure.low,
        high=figure.high,
        withheld=figure.withheld,
        label=str(overall.label),
        weight=overall.weight,
        worst=metrics[0] if metrics else None,
        judged=len(metrics),
        rated=overall.reviewed_answers,
        answers=overall.answers,
    )


USUAL_SECONDS = 60.0  # a first guess for people who have no pace of their own yet


@dataclass(frozen=True, slots=True)
class WaitingQueue:
    """A queue with answers for the person to rate, and about how many seconds they will take."""

    queue: ReviewQueue
    waiting: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Attention:
    """Everything of the person's projects that waits for them. ``others`` are to-dos of features; ``disputed``
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
        others=tuple(todo for feature in features() if feature.waiting for todo in feature.waiting(user)),
        disputed=tuple(_disputed(user)),
        drafts=tuple(run for run in open_runs if run.state == Run.State.DRAFT),
        incomplete=tuple(run for run in open_runs if run.state == Run.State.INCOMPLETE),
    )


def _waiting(queue: ReviewQueue, own: OwnProgress) -> WaitingQueue:
    return WaitingQueue(queue, own.left, own.left * (own.median_seconds or USUAL_SECONDS))


def _disputed(user: User) -> Sequence[tuple[ReviewQueue, int]]:
    counted = Counter(case.item.queue for case in open_cases(cases_for_lead(user)))
    return sorted(counted.items(), key=lambda one: one[0].pk)
