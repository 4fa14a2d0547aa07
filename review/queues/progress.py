"""How far and how fast the people of a queue are, for its lead by name and never ranked, for a reviewer the own part
alone; which of a reviewer's last steps can be taken back; and which questions may be at fault themselves."""

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
from evaluation.models import MetricDefinition, Question, User
from review.evidence.rating_input import FlagKind
from review.evidence.seals import readable
from review.models import Assignment, ItemEvent, Rating, ReviewItem, ReviewQueue
from review.models.queues import FIRST_OCCASION
from review.models.statements import KEPT_FOR, LAST_RATED, NOT_FOR_ALL, OWN_PROGRESS
from review.queues.draws import share_of_scale
from review.ratings.settling import RATED

MOST_UNDER_WAY = 5  # queues that the start page tells of, the newest first
QUICK_MS = 3_000  # a decision about a whole answer in less is worth a look, and no error


@dataclass(frozen=True, slots=True)
class Pace:
    """``median_seconds`` looked at an answer (``None`` where nothing was measured), ``quick``: how many of ``measured``
    took under three seconds, ``week``: answers rated in the last seven days, ``last`` the newest rating."""

    median_seconds: float | None
    measured: int
    quick: int
    week: int
    last: datetime


def paces(queue: ReviewQueue, now: datetime | None = None) -> dict[int, Pace]:
    """Reviewer -> pace, of those who have rated. One query."""
    since = (now or timezone.now()) - timedelta(days=7)
    looked = Rating.objects.filter(assignment__item__queue=queue, phase="initial", reviewer__isnull=False)
    rows = looked.order_by().values_list("reviewer", "assignment").annotate(Max("active_ms"), Max("created_at"))
    found: dict[int, list[tuple[int | None, datetime]]] = {}
    for reviewer, _, milliseconds, moment in rows:
        found.setdefault(reviewer, []).append((milliseconds, moment))
    return {reviewer: _pace(ratings, since) for reviewer, ratings in found.items()}


def _pace(ratings: list[tuple[int | None, datetime]], since: datetime) -> Pace:
    times = [milliseconds for milliseconds, _ in ratings if milliseconds is not None]
    return Pace(
        median_seconds=statistics.median(times) / 1000 if times else None,
        measured=len(times),
        quick=sum(time < QUICK_MS for time in times),
        week=sum(moment >= since for _, moment in ratings),
        last=max(moment for _, moment in ratings),
    )


State = Assignment.State


@dataclass(frozen=True, slots=True)
class OwnProgress:
    """A reviewer's own part. ``items`` counts what the queue has for them, given out or not, with the hidden repeats
    that are to be expected; ``median_seconds`` is the own median time looked at one of the last thirty, ``None``
    without one."""

    items: int
    rated: int
    skipped: int
    flagged: int
    median_seconds: float | None

    @property
    def passed_on(self) -> int:
        """How many items were put down without a rating."""
        return self.skipped + self.flagged

    @property
    def left(self) -> int:
        """How many items may still come to the person."""
        return max(0, self.items - self.rated - self.passed_on)


@dataclass(frozen=True, slots=True)
class ReviewerProgress:
    """One member's part, for the lead; by name and never ranked."""

    reviewer: User
    rated: int
    open: int
    skipped: int
    flagged: int


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """Items by state, ratings given and needed, and every member's part. ``reached`` counts items with a rating."""

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
        """Ratings given of those needed, 0 to 1."""
        return min(1.0, self.ratings / self.ratings_needed) if self.ratings_needed else 0.0


def own_progress(queue: ReviewQueue, user: User) -> OwnProgress:
    """The person's own progress and pace."""
    return own_progresses([queue], user)[queue.pk]


def own_progresses(queues: Sequence[ReviewQueue], user: User) -> dict[int, OwnProgress]:
    """The same for several queues, by primary key, in two queries, or three where items are kept for people. None of
    them walks a queue: a reviewer waits for this with every item."""
    found = {pk: done for pk, *done in OWN_PROGRESS.rows(user=user.pk, queues=[queue.pk for queue in queues])}
    items = _own_items(queues, user)
    own = {}
    for queue in queues:
        rated, skipped, flagged, median_ms = found.get(queue.pk, (0, 0, 0, None))
        median = None if median_ms is None else float(median_ms) / 1000
        all_of_them = items[queue.pk] + _repeats(queue, items[queue.pk])
        own[queue.pk] = OwnProgress(all_of_them, rated, skipped, flagged, median)
    return own


def _own_items(queues: Sequence[ReviewQueue], user: User) -> dict[int, int]:
    """Items for the person, without repeats and withdrawn ones: those kept for the person, and in a pool all others
    that are not kept for somebody."""
    pools = [queue for queue in queues if queue.distribution == ReviewQueue.Distribution.POOL]
    left_out = {pk: (apart, gone) for pk, apart, gone in NOT_FOR_ALL.rows(queues=[queue.pk for queue in pools])}
    kept: dict[int, int] = {}
    if len(pools) < len(queues) or any(apart for apart, _ in left_out.values()):
        kept = dict(KEPT_FOR.rows(user=user.pk))
    made = _items_made(pools)
    return {
        queue.pk: kept.get(queue.pk, 0) + made.get(queue.pk, 0) - sum(left_out.get(queue.pk, ())) for queue in queues
    }


def _items_made(queues: Sequence[ReviewQueue]) -> dict[int, int]:
    """How many items the queues were made with: no item is added later but repeats, so that it is counted once."""
    keys = {queue.pk: f"items-made-{queue.pk}-{queue.created_at.timestamp()}" for queue in queues}
    known = cache.get_many(keys.values())
    unknown = [pk for pk, key in keys.items() if key not in known]
    if unknown:
        rows = ReviewItem.objects.filter(queue__in=unknown, occasion=FIRST_OCCASION).order_by()
        counted = dict(rows.values_list("queue").annotate(Count("pk")))
        known |= {keys[pk]: counted.get(pk, 0) for pk in unknown}
        cache.set_many({keys[pk]: known[keys[pk]] for pk in unknown}, timeout=24 * 3600)
    return {pk: int(known[key]) for pk, key in keys.items()}


def _repeats(queue: ReviewQueue, own: int) -> int:
    """How many hidden repeats are to be expected: they count from the beginning, so that the number tells nothing."""
    each = own if queue.distribution != ReviewQueue.Distribution.POOL else queue.repeat_gap + queue.repeat_until
    return round(queue.repeat_share * each)


def ratings_given(queues: Sequence[ReviewQueue]) -> dict[int, tuple[int, int]]:
    """Ratings given and needed of several queues, by primary key, in two queries."""
    given = Assignment.objects.filter(item__queue__in=queues, item__occasion=FIRST_OCCASION, state__in=RATED).order_by()
    rated = dict(given.values_list("item__queue").annotate(Count("pk")))
    served = ReviewItem.objects.filter(queue__in=queues, occasion=FIRST_OCCASION).exclude(
        state=ReviewItem.State.WITHDRAWN
    )
    needed = dict(served.order_by().values_list("queue").annotate(Sum("reviews_needed")))
    return {one.pk: (rated.get(one.pk, 0), needed.get(one.pk, 0)) for one in queues}


@dataclass(frozen=True, slots=True)
class UnderWay:
    """An open queue whose experts have ``given`` some of the ratings that are ``needed``."""

    queue: ReviewQueue
    given: int
    needed: int


def under_way(queues: QuerySet[ReviewQueue]) -> list[UnderWay]:
    """Those of the queues that wait for ratings, in their order. Three queries."""
    open_ones = list(queues.filter(state=ReviewQueue.State.OPEN)[:MOST_UNDER_WAY])
    counts = ratings_given(open_ones)
    found = (UnderWay(queue, *counts[queue.pk]) for queue in open_ones)
    return [one for one in found if one.given < one.needed]


def queue_progress(queue: ReviewQueue) -> QueueProgress:
    """The queue's progress for its lead."""
    rows = (
        queue.items.filter(occasion=FIRST_OCCASION)
        .values("state")
        .annotate(n=Count("pk"), needed=Sum("reviews_needed"))
    )
    counts = {row["state"]: (row["n"], row["needed"]) for row in rows.order_by()}
    items = Counter({state: count for state, (count, _) in counts.items()})
    given = Assignment.objects.filter(item__queue=queue, item__occasion=FIRST_OCCASION, state__in=RATED)
    counted = given.aggregate(ratings=Count("pk"), reached=Count("item", distinct=True))
    needed = sum(needed for state, (_, needed) in counts.items() if state != ReviewItem.State.WITHDRAWN)
    states = {state.value: items[state] for state in ReviewItem.State}
    return QueueProgress(
        items=items.total(), **counted, **states, ratings_needed=needed, reviewers=tuple(_members(queue))
    )


def _members(queue: ReviewQueue) -> Iterable[ReviewerProgress]:
    held = Q(reviewer__assignments__item__queue=queue)
    rows = (
        queue.members.select_related("reviewer")
        .annotate(
            rated=_count(held & Q(reviewer__assignments__state__in=RATED)),
            leased=_count(held & Q(reviewer__assignments__state=State.LEASED)),
            skipped=_count(held & Q(reviewer__assignments__state=State.SKIPPED)),
            flagged=_count(held & Q(reviewer__assignments__state=State.FLAGGED)),
        )
        .order_by("reviewer__username")
    )
    for row in rows:
        yield ReviewerProgress(row.reviewer, row.rated, row.leased, row.skipped, row.flagged)


def _count(condition: Q) -> Count:
    return Count("reviewer__assignments", filter=condition, distinct=True)


PASSED_ON = ("skip", "flag", "escalate")


def undoable(queue: ReviewQueue, user: User, own: OwnProgress) -> int | None:
    """The assignment that was submitted or skipped last; ``None`` without one, where the judge was shown for it, or
    where the last step was to hand an item to a lead. ``own`` is the person's progress in the queue."""
    row = LAST_RATED.first(queue=queue.pk, user=user.pk)
    rated: Assignment | None = row[0] if row else None
    last = None
    if own.passed_on:
        gone = Assignment.objects.filter(queue=queue, reviewer=user, state__in=[State.SKIPPED, State.FLAGGED])
        last = ItemEvent.objects.filter(assignment__in=gone, verb__in=PASSED_ON).order_by("-pk").first()
    if last and (rated is None or rated.submitted_at is None or last.created_at > rated.submitted_at):
        return last.assignment_id if last.verb == "skip" else None
    if rated and rated.revealed_at is None and rated.state in {State.SUBMITTED, State.FINISHED}:
        return rated.pk
    return None


RIGHT = 0.5  # of the scale: below it no answer to the question counts as right


@dataclass(frozen=True, slots=True)
class DoubtfulQuestion:
    """A question with the best its ``answers`` reached (0 to 1 of the scale, over all criteria and reviewers; ``None``
    where none was rated), how many ``ratings`` that rests on, and its flags by kind. ``item_id`` is one of its
    items."""

    question: Question
    item_id: int
    answers: int
    ratings: int
    best: float | None
    flags: Mapping[str, int]

    @property
    def nobody_right(self) -> bool:
        """Whether no system's answer reached half of the scale."""
        return self.best is not None and self.best < RIGHT


def doubtful_questions(queue: ReviewQueue) -> list[DoubtfulQuestion]:
    """The questions nobody answered well and the flagged ones: flagged by most people first, then the worst answered.
    Five queries."""
    metrics = {row.metric_id: row.metric for row in queue.metrics.select_related("metric")}
    shares = _shares(queue, metrics)
    flags = _flags(queue)
    wanted = {question for question, of in shares.items() if _best(of) < RIGHT} | set(flags)
    rows = Question.objects.in_bulk(wanted)
    items = queue.items.filter(answer__question__in=wanted).order_by().values_list("answer__question")
    first = dict(items.annotate(first=Min("pk")))
    found = []
    for pk in wanted:
        of = shares.get(pk, {})
        ratings, best = sum(map(len, of.values())), _best(of) if of else None
        found.append(DoubtfulQuestion(rows[pk], first[pk], len(of), ratings, best, dict(flags.get(pk, {}))))
    return sorted(
        found,
        key=lambda one: (-sum(one.flags.values()), 1.0 if one.best is None else one.best, one.question.pk),
    )


def _best(of_answer: Mapping[int, Iterable[float]]) -> float:
    return max(map(statistics.fmean, of_answer.values()))


def _shares(queue: ReviewQueue, metrics: Mapping[int, MetricDefinition]) -> dict[int, dict[int, list[float]]]:
    """Question -> answer -> every reviewer's last first word, as a share of the scale with more being better."""
    rows = Rating.objects.filter(
        assignment__item__queue=queue, assignment__item__occasion=FIRST_OCCASION, phase="initial", value__isnull=False
    )
    rows = readable(rows)
    last: dict[tuple[int, int], tuple[int, int, int, float]] = {}
    columns = ("assignment_id", "metric_id", "answer__question_id", "answer_id", "value")
    for assignment, metric, question, answer, value in rows.order_by("seq", "pk").values_list(*columns):
        last[assignment, metric] = (question, answer, metric, value)
    found: dict[int, dict[int, list[float]]] = {}
    for question, answer, metric, value in last.values():
        asked = metrics.get(metric)
        if asked and asked.read_scale().kind is not ScaleKind.CLASS:
            found.setdefault(question, {}).setdefault(answer, []).append(share_of_scale(asked, value))
    return found


def _flags(queue: ReviewQueue) -> dict[int, Counter[str]]:
    """Question -> how many people flagged it or its reference, by kind."""
    kinds = [FlagKind.BAD_QUESTION.value, FlagKind.BAD_REFERENCE.value]
    rows = ItemEvent.objects.filter(assignment__item__queue=queue, verb="flag", kind__in=kinds).order_by()
    found: dict[int, Counter[str]] = {}
    columns = ("assignment__item__answer__question_id", "kind", "assignment__reviewer_id")
    for question, kind, _ in rows.values_list(*columns).distinct():
        found.setdefault(question, Counter())[kind] += 1
    return found
