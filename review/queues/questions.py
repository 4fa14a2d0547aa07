"""Which questions of a queue may be at fault themselves: nobody answered them well, or reviewers flagged them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db.models import Min

from evaluation.core.registry import ScaleKind
from evaluation.models import MetricDefinition, Question
from review.evidence.rating_input import FlagKind
from review.models import ItemEvent, Rating, ReviewQueue
from review.models.queues import FIRST_OCCASION

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
    found = [_doubtful(rows[pk], first[pk], shares.get(pk, {}), flags.get(pk, Counter())) for pk in wanted]
    return sorted(found, key=_doubt)


def _doubtful(
    question: Question, item_id: int, shares: Mapping[int, list[float]], flags: Counter[str]
) -> DoubtfulQuestion:
    return DoubtfulQuestion(
        question=question,
        item_id=item_id,
        answers=len(shares),
        ratings=sum(map(len, shares.values())),
        best=_best(shares) if shares else None,
        flags=dict(flags),
    )


def _doubt(one: DoubtfulQuestion) -> tuple[int, float, int]:
    return -sum(one.flags.values()), 1.0 if one.best is None else one.best, one.question.pk


def _best(of_answer: Mapping[int, Iterable[float]]) -> float:
    return max(math.fsum(values) / len(list(values)) for values in of_answer.values())


def _shares(queue: ReviewQueue, metrics: Mapping[int, MetricDefinition]) -> dict[int, dict[int, list[float]]]:
    """Question -> answer -> every reviewer's last first word, as a share of the scale with more being better."""
    rows = Rating.objects.filter(
        assignment__item__queue=queue, assignment__item__occasion=FIRST_OCCASION, phase="initial", value__isnull=False
    )
    last: dict[tuple[int, int], tuple[int, int, int, float]] = {}
    columns = ("assignment_id", "metric_id", "answer__question_id", "answer_id", "value")
    for assignment, metric, question, answer, value in rows.order_by("seq", "pk").values_list(*columns):
        last[assignment, metric] = (question, answer, metric, value)
    found: dict[int, dict[int, list[float]]] = {}
    for question, answer, metric, value in last.values():
        share = _share(metrics[metric], value) if metric in metrics else None
        if share is not None:
            found.setdefault(question, {}).setdefault(answer, []).append(share)
    return found


def _share(metric: MetricDefinition, value: float) -> float | None:
    scale = metric.read_scale()
    if scale.kind is ScaleKind.CLASS:
        return None
    share = (value - scale.low) / scale.width
    return 1.0 - share if metric.direction == "lower" else share


def _flags(queue: ReviewQueue) -> dict[int, Counter[str]]:
    """Question -> how many people flagged it or its reference, by kind."""
    kinds = [FlagKind.BAD_QUESTION.value, FlagKind.BAD_REFERENCE.value]
    rows = ItemEvent.objects.filter(assignment__item__queue=queue, verb="flag", kind__in=kinds).order_by()
    found: dict[int, Counter[str]] = {}
    columns = ("assignment__item__answer__question_id", "kind", "assignment__reviewer_id")
    for question, kind, _ in rows.values_list(*columns).distinct():
        found.setdefault(question, Counter())[kind] += 1
    return found
