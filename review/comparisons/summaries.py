"""Home page summaries: open work of a user, and the headline of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.accounts import access
from evaluation.core.roles import Action
from evaluation.extensions import TodoItem, features
from evaluation.models import Run, User
from review.decisions.cases import open_cases
from review.models import ReviewQueue
from review.queues.access import cases_for_lead, outside_readers_language
from review.queues.pace import queue_seconds
from review.queues.progress import OwnProgress, own_progress_by_queue, rating_counts
from review.reports.report import Report
from review.reports.verdict import MetricTrust, verdict_of


@dataclass(frozen=True, slots=True)
class Headline:
    """The most trustworthy overall figure of a run.

    ``kind`` names the figure; it has a ``value`` with its interval, or the reason code ``withheld``. ``worst`` is the
    least trustworthy of ``judged`` rated metrics of the run's judge, ``None`` without ratings. Experts rated ``rated``
    of ``answers`` answers. ``label`` is ``overall_score`` unless the figure covers some parts only."""

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
    """Return the corrected figure if available, otherwise the reviewed one if anything was rated, otherwise
    judge-only."""
    overall = report.overall
    kind, figure = "judge", overall.judge_only
    if overall.part_only is not None:
        kind, figure = "plain-mark", overall.part_only
    elif overall.corrected.value is not None:
        kind, figure = "corrected", overall.corrected
    elif overall.reviewed_answers:
        kind, figure = "expert", overall.reviewed
    metrics = [metric for metric in verdict_of(report).metrics if metric.figures.n]
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


@dataclass(frozen=True, slots=True)
class WaitingQueue:
    """A queue with answers for the user to rate, and an estimate of the seconds this takes."""

    queue: ReviewQueue
    waiting: int
    seconds: float


@dataclass(frozen=True, slots=True)
class OpenWork:
    """Open work of a user.

    ``todos`` come from features. ``disputed`` are queues with their number of disputes, for leads. Drafts and
    incomplete runs are for users who may run evaluations."""

    queues: tuple[WaitingQueue, ...]
    todos: tuple[TodoItem, ...]
    disputed: tuple[tuple[ReviewQueue, int], ...]
    drafts: tuple[Run, ...]
    incomplete: tuple[Run, ...]


def load_open_work(user: User) -> OpenWork:
    """Collect the user's open work."""
    own_queues = ReviewQueue.objects.filter(state=ReviewQueue.State.OPEN, members__reviewer=user)
    own_queues = own_queues.filter(project__in=access.projects_with(user, Action.RATE).values("pk")).order_by(
        "deadline", outside_readers_language(), "pk"
    )
    queues = list(own_queues)
    progress = own_progress_by_queue(queues, user)
    remaining = _remaining_items(queues, progress)
    seconds = queue_seconds({queue: progress[queue.pk].median_seconds for queue in queues if remaining[queue.pk]})
    waiting = [
        WaitingQueue(queue, remaining[queue.pk], remaining[queue.pk] * seconds[queue.pk])
        for queue in queues
        if remaining[queue.pk]
    ]
    runs = access.visible(Run.objects.select_related(Run.NAME_RELATION), user, Action.EVALUATE)
    open_runs = list(runs.filter(state__in=[Run.State.DRAFT, Run.State.INCOMPLETE]).order_by("-pk")[:20])
    return OpenWork(
        queues=tuple(waiting),
        todos=tuple(todo for feature in features() if feature.todo_items for todo in feature.todo_items(user)),
        disputed=tuple(_disputed_queues(user)),
        drafts=tuple(run for run in open_runs if run.state == Run.State.DRAFT),
        incomplete=tuple(run for run in open_runs if run.state == Run.State.INCOMPLETE),
    )


def _remaining_items(queues: Sequence[ReviewQueue], progress: Mapping[int, OwnProgress]) -> dict[int, int]:
    """Items that the person may still rate, by queue: in a pool without repeats at most the ratings that all members
    still owe."""
    remaining = {queue.pk: progress[queue.pk].remaining for queue in queues}
    pools = [
        queue
        for queue in queues
        if queue.distribution == ReviewQueue.Distribution.POOL and remaining[queue.pk] and not queue.repeat_share
    ]
    counts = rating_counts(pools) if pools else {}
    return remaining | {pk: min(remaining[pk], max(0, needed - given)) for pk, (given, needed) in counts.items()}


def _disputed_queues(user: User) -> Sequence[tuple[ReviewQueue, int]]:
    counts = Counter(case.item.queue for case in open_cases(cases_for_lead(user)))
    return sorted(counts.items(), key=lambda pair: pair[0].pk)
