"""Progress and pace of reviewers, undo of the last step, and questions that may be faulty.

Leads see reviewers by name and never ranked; reviewers see only their own progress."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.core.cache import cache
from django.db.models import Count, Max, Min, Q, QuerySet, Sum
from django.utils import timezone

from evaluation.core.scales import ScaleKind
from evaluation.models import MetricDefinition, Question, Run, User
from review.evidence.rating_input import FlagKind
from review.evidence.seals import readable
from review.models import Assignment, ItemEvent, Rating, ReviewItem, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.models.statements import LAST_RATED, OUTSIDE_POOL, OWN_PROGRESS, RESERVED_FOR_USER
from review.queues.draws import share_of_scale
from review.ratings.item_state import RATED

# Limit of queues on the start page, newest first.
MAX_ACTIVE_QUEUES = 5
# Faster decisions about a whole answer are worth a look, but are no error.
QUICK_RATING_MS = 3_000


@dataclass(frozen=True, slots=True)
class Pace:
    """A reviewer's pace: median active seconds per answer (``None`` without measurements), ``quick_count`` of
    ``measured_count`` answers took under three seconds, ``week_count`` answers in the last seven days, and the time
    of the last rating."""

    median_seconds: float | None
    measured_count: int
    quick_count: int
    week_count: int
    last_at: datetime


def reviewer_paces(queue: ReviewQueue, now: datetime | None = None) -> dict[int, Pace]:
    """Map each reviewer with ratings to the pace. One query."""
    since = (now or timezone.now()) - timedelta(days=7)
    initial_ratings = Rating.objects.filter(assignment__item__queue=queue, phase="initial", reviewer__isnull=False)
    rows = (
        initial_ratings.order_by().values_list("reviewer", "assignment").annotate(Max("active_ms"), Max("created_at"))
    )
    times_by_reviewer: dict[int, list[tuple[int | None, datetime]]] = {}
    for reviewer, _, milliseconds, moment in rows:
        times_by_reviewer.setdefault(reviewer, []).append((milliseconds, moment))
    return {reviewer: _pace(ratings, since) for reviewer, ratings in times_by_reviewer.items()}


def _pace(ratings: list[tuple[int | None, datetime]], since: datetime) -> Pace:
    times = [milliseconds for milliseconds, _ in ratings if milliseconds is not None]
    return Pace(
        median_seconds=statistics.median(times) / 1000 if times else None,
        measured_count=len(times),
        quick_count=sum(time < QUICK_RATING_MS for time in times),
        week_count=sum(moment >= since for _, moment in ratings),
        last_at=max(moment for _, moment in ratings),
    )


State = Assignment.State


@dataclass(frozen=True, slots=True)
class OwnProgress:
    """A reviewer's own progress.

    ``items`` counts all items for the person, expected hidden repeats included. ``median_seconds`` is the median active
    time of the last thirty items, ``None`` with fewer than ten."""

    items: int
    rated: int
    skipped: int
    flagged: int
    median_seconds: float | None

    @property
    def passed_count(self) -> int:
        """Number of skipped and flagged items."""
        return self.skipped + self.flagged

    @property
    def remaining(self) -> int:
        """Number of items the person may still get."""
        return max(0, self.items - self.rated - self.passed_count)


@dataclass(frozen=True, slots=True)
class ReviewerProgress:
    """A member's progress, for leads."""

    reviewer: User
    rated: int
    open: int
    skipped: int
    flagged: int


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """Items by state, ratings given and needed, and the progress of every member. ``reached`` counts items with a
    rating."""

    items: int
    open: int
    done: int
    disputed: int
    withdrawn: int
    reached: int
    ratings: int
    ratings_needed: int
    reviewers: tuple[ReviewerProgress, ...]

    @property
    def share(self) -> float:
        """Share of the needed ratings that were given, 0 to 1."""
        return min(1.0, self.ratings / self.ratings_needed) if self.ratings_needed else 0.0


def own_progress(queue: ReviewQueue, user: User) -> OwnProgress:
    return own_progress_by_queue([queue], user)[queue.pk]


def own_progress_by_queue(queues: Sequence[ReviewQueue], user: User) -> dict[int, OwnProgress]:
    """Own progress in several queues, by primary key. Two queries, or three where items are reserved; no query walks a
    whole queue, because reviewers wait for this with every item."""
    counts_by_queue = {
        pk: queue_counts for pk, *queue_counts in OWN_PROGRESS.rows(user=user.pk, queues=[queue.pk for queue in queues])
    }
    items = _own_item_counts(queues, user)
    progress_by_queue = {}
    for queue in queues:
        rated, skipped, flagged, median_ms = counts_by_queue.get(queue.pk, (0, 0, 0, None))
        median = None if median_ms is None else float(median_ms) / 1000
        item_count = items[queue.pk] + _expected_repeats(queue, items[queue.pk])
        progress_by_queue[queue.pk] = OwnProgress(item_count, rated, skipped, flagged, median)
    return progress_by_queue


def _own_item_counts(queues: Sequence[ReviewQueue], user: User) -> dict[int, int]:
    """Count the items for the person in each queue, without repeats and withdrawn ones: reserved ones, and in a pool
    all that are not reserved for others."""
    pools = [queue for queue in queues if queue.distribution == ReviewQueue.Distribution.POOL]
    excluded_counts = {
        pk: (reserved_count, withdrawn_count)
        for pk, reserved_count, withdrawn_count in OUTSIDE_POOL.rows(queues=[queue.pk for queue in pools])
    }
    reserved_for_user: dict[int, int] = {}
    if len(pools) < len(queues) or any(reserved_count for reserved_count, _ in excluded_counts.values()):
        reserved_for_user = dict(RESERVED_FOR_USER.rows(user=user.pk))
    initial_counts = _initial_item_counts(pools)
    return {
        queue.pk: reserved_for_user.get(queue.pk, 0)
        + initial_counts.get(queue.pk, 0)
        - sum(excluded_counts.get(queue.pk, ()))
        for queue in queues
    }


def _initial_item_counts(queues: Sequence[ReviewQueue]) -> dict[int, int]:
    """Count the items each queue was created with. Cached: only repeats are added later."""
    keys = {queue.pk: f"items-made-{queue.pk}-{queue.created_at.timestamp()}" for queue in queues}
    cached_counts = cache.get_many(keys.values())
    missing_ids = [pk for pk, key in keys.items() if key not in cached_counts]
    if missing_ids:
        rows = ReviewItem.objects.filter(queue__in=missing_ids, occasion=FIRST_OCCASION).order_by()
        queried_counts = dict(rows.values_list("queue").annotate(Count("pk")))
        cached_counts |= {keys[pk]: queried_counts.get(pk, 0) for pk in missing_ids}
        cache.set_many({keys[pk]: cached_counts[keys[pk]] for pk in missing_ids}, timeout=24 * 3600)
    return {pk: int(cached_counts[key]) for pk, key in keys.items()}


def _expected_repeats(queue: ReviewQueue, own_items: int) -> int:
    """Expected number of hidden repeats. They count from the start, so that the total reveals nothing."""
    repeat_base = (
        own_items if queue.distribution != ReviewQueue.Distribution.POOL else queue.repeat_gap + queue.repeat_until
    )
    return round(queue.repeat_share * repeat_base)


def rating_counts(queues: Sequence[ReviewQueue]) -> dict[int, tuple[int, int]]:
    """Ratings given and needed in several queues, by primary key. Two queries."""
    rated_assignments = Assignment.objects.filter(
        item__queue__in=queues, item__occasion=FIRST_OCCASION, state__in=RATED
    ).order_by()
    rated_by_queue = dict(rated_assignments.values_list("item__queue").annotate(Count("pk")))
    live_items = ReviewItem.objects.filter(queue__in=queues, occasion=FIRST_OCCASION).exclude(
        state=ReviewItem.State.WITHDRAWN
    )
    needed = dict(live_items.order_by().values_list("queue").annotate(Sum("reviews_needed")))
    return {queue.pk: (rated_by_queue.get(queue.pk, 0), needed.get(queue.pk, 0)) for queue in queues}


@dataclass(frozen=True, slots=True)
class ActiveQueue:
    """An open queue with the number of ratings ``given`` and ``needed``."""

    queue: ReviewQueue
    given: int
    needed: int


def active_queues(queues: QuerySet[ReviewQueue]) -> list[ActiveQueue]:
    """Return those of the queues that wait for ratings, in their order. Three queries."""
    open_queues = list(queues.filter(state=ReviewQueue.State.OPEN)[:MAX_ACTIVE_QUEUES])
    counts = rating_counts(open_queues)
    candidates = (ActiveQueue(queue, *counts[queue.pk]) for queue in open_queues)
    return [active_queue for active_queue in candidates if active_queue.given < active_queue.needed]


@dataclass(frozen=True, slots=True)
class UnratedAnswers:
    """Answers of a run that wait in an open queue without any rating, and the names of its reviewers."""

    queue: ReviewQueue
    count: int
    reviewers: tuple[str, ...]


def unrated_answers(run: Run) -> list[UnratedAnswers]:
    """Open queues with unrated answers of the run, most answers first. Three queries."""
    items = ReviewItem.objects.filter(
        answer__answer_set=run.answer_set_id,
        state=ReviewItem.State.OPEN,
        occasion=FIRST_OCCASION,
        queue__state=ReviewQueue.State.OPEN,
        queue__mode=ReviewQueue.Mode.BLIND,
    ).exclude(assignments__state__in=RATED)
    counts = dict(items.order_by().values_list("queue").annotate(count=Count("pk")))
    queues = ReviewQueue.objects.filter(pk__in=counts).prefetch_related("members__reviewer")
    waiting = [
        UnratedAnswers(
            queue, counts[queue.pk], tuple(sorted(member.reviewer.display_name for member in queue.members.all()))
        )
        for queue in queues
    ]
    return sorted(waiting, key=lambda answers: (-answers.count, answers.queue.pk))


def queue_progress(queue: ReviewQueue) -> QueueProgress:
    rows = (
        queue.items.filter(occasion=FIRST_OCCASION)
        .values("state")
        .annotate(n=Count("pk"), needed=Sum("reviews_needed"))
    )
    counts = {row["state"]: (row["n"], row["needed"]) for row in rows.order_by()}
    items = Counter({state: count for state, (count, _) in counts.items()})
    rated_assignments = Assignment.objects.filter(item__queue=queue, item__occasion=FIRST_OCCASION, state__in=RATED)
    totals = rated_assignments.aggregate(ratings=Count("pk"), reached=Count("item", distinct=True))
    needed = sum(needed for state, (_, needed) in counts.items() if state != ReviewItem.State.WITHDRAWN)
    state_counts = {state.value: items[state] for state in ReviewItem.State}
    return QueueProgress(
        items=items.total(), **totals, **state_counts, ratings_needed=needed, reviewers=tuple(_member_progress(queue))
    )


def _member_progress(queue: ReviewQueue) -> Iterable[ReviewerProgress]:
    in_queue = Q(reviewer__assignments__item__queue=queue)
    rows = (
        queue.members.select_related("reviewer")
        .annotate(
            rated=_assignment_count(in_queue & Q(reviewer__assignments__state__in=RATED)),
            leased=_assignment_count(in_queue & Q(reviewer__assignments__state=State.LEASED)),
            skipped=_assignment_count(in_queue & Q(reviewer__assignments__state=State.SKIPPED)),
            flagged=_assignment_count(in_queue & Q(reviewer__assignments__state=State.FLAGGED)),
        )
        .order_by("reviewer__username")
    )
    for row in rows:
        yield ReviewerProgress(row.reviewer, row.rated, row.leased, row.skipped, row.flagged)


def _assignment_count(condition: Q) -> Count:
    return Count("reviewer__assignments", filter=condition, distinct=True)


PASSING_VERBS = ("skip", "flag", "escalate")


def undoable_assignment(queue: ReviewQueue, user: User, progress: OwnProgress) -> int | None:
    """Return the assignment that the user submitted or skipped last; ``progress`` is the user's progress in the queue.

    ``None`` if the judge was shown for it, or if the last step was a flag or an escalation."""
    row = LAST_RATED.first(queue=queue.pk, user=user.pk)
    last_rated: Assignment | None = row[0] if row else None
    last_event = None
    if progress.passed_count:
        passed_assignments = Assignment.objects.filter(
            queue=queue, reviewer=user, state__in=[State.SKIPPED, State.FLAGGED]
        )
        last_event = (
            ItemEvent.objects.filter(assignment__in=passed_assignments, verb__in=PASSING_VERBS).order_by("-pk").first()
        )
    if last_event and (
        last_rated is None or last_rated.submitted_at is None or last_event.created_at > last_rated.submitted_at
    ):
        return last_event.assignment_id if last_event.verb == "skip" else None
    if last_rated and last_rated.revealed_at is None and last_rated.state in {State.SUBMITTED, State.FINISHED}:
        return last_rated.pk
    return None


# Share of the scale from which an answer counts as right.
RIGHT_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class DoubtfulQuestion:
    """A question with the best share of the scale that its ``answers`` reached (0 to 1, over all criteria and
    reviewers; ``None`` without ratings), the number of ``ratings`` behind it, and its flags by kind. ``item_id`` is
    one of its items."""

    question: Question
    item_id: int
    answers: int
    ratings: int
    best: float | None
    flags: Mapping[str, int]

    @property
    def nobody_right(self) -> bool:
        """True if no answer reached half of the scale."""
        return self.best is not None and self.best < RIGHT_SHARE


def doubtful_questions(queue: ReviewQueue) -> list[DoubtfulQuestion]:
    """Questions that nobody answered well, and flagged ones: most flagged first, then worst answered. Five queries."""
    metrics = {row.metric_id: row.metric for row in queue.metrics.select_related("metric")}
    shares = _answer_shares(queue, metrics)
    flags = _flag_counts(queue)
    question_ids = {
        question for question, answer_shares in shares.items() if _best_share(answer_shares) < RIGHT_SHARE
    } | set(flags)
    rows = Question.objects.in_bulk(question_ids)
    items = queue.items.filter(answer__question__in=question_ids).order_by().values_list("answer__question")
    first_item_ids = dict(items.annotate(first=Min("pk")))
    doubts = []
    for pk in question_ids:
        answer_shares = shares.get(pk, {})
        ratings, best = sum(map(len, answer_shares.values())), _best_share(answer_shares) if answer_shares else None
        doubts.append(
            DoubtfulQuestion(rows[pk], first_item_ids[pk], len(answer_shares), ratings, best, dict(flags.get(pk, {})))
        )
    return sorted(
        doubts,
        key=lambda doubt: (-sum(doubt.flags.values()), 1.0 if doubt.best is None else doubt.best, doubt.question.pk),
    )


def _best_share(answer_shares: Mapping[int, Iterable[float]]) -> float:
    return max(map(statistics.fmean, answer_shares.values()))


def _answer_shares(queue: ReviewQueue, metrics: Mapping[int, MetricDefinition]) -> dict[int, dict[int, list[float]]]:
    """Map question -> answer -> each reviewer's last initial rating as a share of the scale, more being better."""
    rows = Rating.objects.filter(
        assignment__item__queue=queue, assignment__item__occasion=FIRST_OCCASION, phase="initial", value__isnull=False
    )
    rows = readable(rows)
    last_ratings: dict[tuple[int, int], tuple[int, int, int, float]] = {}
    columns = ("assignment_id", "metric_id", "answer__question_id", "answer_id", "value")
    for assignment, metric, question, answer, value in rows.order_by("seq", "pk").values_list(*columns):
        last_ratings[assignment, metric] = (question, answer, metric, value)
    shares_by_question: dict[int, dict[int, list[float]]] = {}
    for question, answer, metric, value in last_ratings.values():
        definition = metrics.get(metric)
        if definition and definition.read_scale().kind is not ScaleKind.CLASS:
            shares_by_question.setdefault(question, {}).setdefault(answer, []).append(share_of_scale(definition, value))
    return shares_by_question


def _flag_counts(queue: ReviewQueue) -> dict[int, Counter[str]]:
    """Map each question to its flags by kind: how many people flagged it or its reference."""
    kinds = [FlagKind.BAD_QUESTION.value, FlagKind.BAD_REFERENCE.value]
    rows = ItemEvent.objects.filter(assignment__item__queue=queue, verb="flag", kind__in=kinds).order_by()
    flags_by_question: dict[int, Counter[str]] = {}
    columns = ("assignment__item__answer__question_id", "kind", "assignment__reviewer_id")
    for question, kind, _ in rows.values_list(*columns).distinct():
        flags_by_question.setdefault(question, Counter())[kind] += 1
    return flags_by_question
