"""Time that a review takes: the measured pace of reviewers, and never less than reading takes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.core.cache import cache
from django.db.models import Count, Max

from evaluation.models import Answer
from review.models import QueueMetric, Rating, ReviewItem, ReviewQueue
from review.models.queue_spec import CRITERIA_PER_ANSWER

# First guesses, used until enough answers were timed.
SECONDS_PER_METRIC = 25.0
READING_SECONDS = 30.0
RECENT_ASSIGNMENTS = 500
# The median of fewer timed answers says little.
MIN_TIMED_ANSWERS = 10
# Silent reading of 238 words a minute (M. Brysbaert, 2019, Journal of Memory and Language 109), six letters each with
# the space. In UTF-8 a Hangul syllable counts as three letters, which gives the speed of Korean readers.
READ_BYTES_PER_SECOND = 24.0
MAX_SAMPLED_TEXTS = 50


@dataclass(frozen=True, slots=True)
class AnswerPace:
    """Seconds that one answer takes a reviewer. ``measured``: the median of timed answers, not a guess."""

    seconds: float
    measured: bool


def answer_pace(project_id: int, metric_count: int, answer_ids: Sequence[int] = ()) -> AnswerPace:
    """Expected pace for these answers: the median of at least ten recent answers of the project, otherwise a guess by
    the number of metrics; at least the time to read question and answer. Two queries."""
    measured = measured_seconds(project_id)
    seconds = measured or guessed_seconds(metric_count)
    return AnswerPace(max(seconds, reading_seconds(answer_ids)), measured is not None)


def guessed_seconds(metric_count: int) -> float:
    """Guess the seconds that one answer takes with so many metrics."""
    return READING_SECONDS + SECONDS_PER_METRIC * max(metric_count, 1)


def measured_seconds(project_id: int) -> float | None:
    """Median seconds per answer of the project's recent ratings; ``None`` with fewer than ten timed answers."""
    timed_ratings = Rating.objects.filter(assignment__item__queue__project_id=project_id, active_ms__isnull=False)
    newest_rows = (
        timed_ratings.values("assignment").annotate(ms=Max("active_ms")).order_by("-assignment")[:RECENT_ASSIGNMENTS]
    )
    times = [row["ms"] for row in newest_rows]
    return statistics.median(times) / 1000 if len(times) >= MIN_TIMED_ANSWERS else None


def reading_seconds(answer_ids: Sequence[int]) -> float:
    """Mean time to read question and answer, from at most 50 of the answers. Passages are left out, because reviewers
    look things up in them. 0 without answers."""
    texts = Answer.objects.filter(pk__in=sorted(answer_ids)[:MAX_SAMPLED_TEXTS]).values_list("question__text", "text")
    return statistics.fmean(_reading_seconds(*pair) for pair in texts) if texts else 0.0


def _reading_seconds(question: str, answer: str) -> float:
    return len(f"{question}{answer}".encode()) / READ_BYTES_PER_SECOND


def queue_seconds(own_medians: Mapping[ReviewQueue, float | None]) -> dict[int, float]:
    """Expected seconds per answer of each queue for a reviewer with these median paces (``None``: unknown).

    Three queries, and one for each project where a pace is unknown; the reading times are cached."""
    reading = _queue_reading_seconds(list(own_medians))
    unknown = [queue for queue, median in own_medians.items() if median is None]
    rows = QueueMetric.objects.filter(queue__in=unknown).order_by().values_list("queue").annotate(Count("pk"))
    criteria = dict(rows) if unknown else {}
    paces = {project_id: measured_seconds(project_id) for project_id in {queue.project_id for queue in unknown}}
    return {
        queue.pk: max(
            reading[queue.pk],
            median or paces[queue.project_id] or guessed_seconds(min(criteria.get(queue.pk, 1), CRITERIA_PER_ANSWER)),
        )
        for queue, median in own_medians.items()
    }


def _queue_reading_seconds(queues: Sequence[ReviewQueue]) -> dict[int, float]:
    """Mean reading time of a few answers of each queue, by primary key. Cached, because answers never change."""
    keys = {queue.pk: f"reading-seconds-{queue.pk}-{queue.created_at.timestamp()}" for queue in queues}
    cached: dict[str, float] = cache.get_many(keys.values())
    answers_by_queue: dict[int, list[int]] = {pk: [] for pk, key in keys.items() if key not in cached}
    items = ReviewItem.objects.filter(queue__in=answers_by_queue).order_by("pk").values_list("queue", "answer")
    for queue_id, answer_id in items if answers_by_queue else ():
        if len(answers_by_queue[queue_id]) < MAX_SAMPLED_TEXTS:
            answers_by_queue[queue_id].append(answer_id)
    sampled = {answer for answers in answers_by_queue.values() for answer in answers}
    texts = Answer.objects.filter(pk__in=sampled).values_list("pk", "question__text", "text") if sampled else ()
    seconds = {pk: _reading_seconds(question, answer) for pk, question, answer in texts}
    new = {
        keys[queue_id]: statistics.fmean(seconds[answer] for answer in answers) if answers else 0.0
        for queue_id, answers in answers_by_queue.items()
    }
    cache.set_many(new, timeout=24 * 3600)
    return {pk: (cached | new)[key] for pk, key in keys.items()}
