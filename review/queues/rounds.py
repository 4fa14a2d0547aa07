"""Planned rounds of a review: the next round of a queue, made from the plan of the first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from django.db import transaction
from django.db.models import Exists, F, OuterRef
from django.db.models.functions import Coalesce

from evaluation.core.errors import DomainError
from evaluation.models import Run, User
from review.models import Draw, ReviewItem, ReviewQueue
from review.models.queue_spec import COLUMNS, Coverage, Distribution, QueueSpec
from review.queues.creation import make_queue
from review.queues.design import DEFAULT_GUESS, design_samples, draw_params_by_run
from review.statistics.paired_tests.gate import gate_confidence

NO_ROUND_LEFT, ROUND_NOT_FINISHED = "no_round_left", "round_not_finished"


@dataclass(frozen=True, slots=True)
class RoundPlan:
    """Place of a queue in its plan: round ``number`` of ``looks``, at whose verdicts intervals have ``confidence``.

    ``queues`` are all queues of the plan, in order. ``next_size`` is the number of answers of the next round, and
    ``None`` if this is not the latest queue or no round is left. ``waiting`` counts the answers that must be rated
    before it, unless the queue is closed."""

    number: int
    looks: int
    confidence: float
    queues: tuple[ReviewQueue, ...]
    next_size: int | None
    waiting: int


def round_plan(queue: ReviewQueue) -> RoundPlan:
    """Load the plan of a queue. At most four queries; none if it plans one round."""
    first = queue.first_round or queue
    queues = [first]
    if queue.looks > 1:
        queues += ReviewQueue.objects.filter(first_round=first).order_by("round_number")
    is_open_end = queues[-1].pk == queue.pk and queue.round_number < queue.looks
    waiting = 0
    if is_open_end and queue.state == ReviewQueue.State.OPEN:
        waiting = queue.items.filter(state=ReviewItem.State.OPEN).count()
    next_size = (first.later_size or _drawn_size(first)) if is_open_end else None
    return RoundPlan(queue.round_number, queue.looks, gate_confidence(queue.looks), tuple(queues), next_size, waiting)


class OpenRound(NamedTuple):
    """The latest queue of a plan with rounds left, and the number of answers in its next round."""

    queue_id: int
    size: int


def open_round(run: Run) -> OpenRound | None:
    """Find the newest plan on a run that has rounds left. One query, and one for its first queue if there is one."""
    later = ReviewQueue.objects.filter(
        first_round=Coalesce(OuterRef("first_round"), OuterRef("pk")), round_number__gt=OuterRef("round_number")
    )
    queues = ReviewQueue.objects.filter(draws__run=run, round_number__lt=F("looks")).exclude(Exists(later))
    queue = queues.select_related("first_round").order_by("-pk").first()
    if queue is None:
        return None
    first = queue.first_round or queue
    return OpenRound(queue.pk, first.later_size or _drawn_size(first))


def make_next_round(queue: ReviewQueue, *, by: User | None) -> ReviewQueue:
    """Create the queue of the next planned round, with the settings and people of the latest one.

    Items that were assigned by tag or one by one are left for a lead to assign.

    :raises DomainError: ``no_round_left``; ``round_not_finished`` while answers of an open queue wait for ratings; as
    :func:`review.queues.creation.make_queue`."""
    with transaction.atomic():
        latest = ReviewQueue.objects.select_for_update().get(pk=queue.latest_round.pk)
        plan = round_plan(latest)
        if plan.next_size is None:
            raise DomainError(NO_ROUND_LEFT, looks=latest.looks)
        if plan.waiting:
            raise DomainError(ROUND_NOT_FINISHED, count=plan.waiting)
        spec = _next_spec(latest, plan.next_size)
        runs = _runs_of(latest)
        metrics = [row.metric for row in latest.metrics.select_related("metric")]
        designs = design_samples(runs, metrics, plan.next_size, DEFAULT_GUESS)
        return make_queue(
            runs,
            spec,
            metrics=[metric.name for metric in metrics],
            reviewers=[member.reviewer for member in latest.members.select_related("reviewer").order_by("pk")],
            params=draw_params_by_run(designs, spec),
            by=by,
            previous=latest,
        )


def _next_spec(queue: ReviewQueue, size: int) -> QueueSpec:
    draw = _draws(queue)[0]
    settings = {name: getattr(queue, name) for name in COLUMNS} | {
        "name": f"{(queue.first_round or queue).name[:190]} ({queue.round_number + 1})",
        "distribution": Distribution.PER_ITEM if queue.distribution == Distribution.BY_TAG else queue.distribution,
        "deadline": None,
        "seed": None,
        "size": size,
        "strategy": draw.strategy,
        # Only rotated criteria have draws of their own.
        "coverage": Coverage.CORRECTED if draw.metric_id else Coverage.FEWEST,
        "fail_below": draw.params.get("fail_below"),
        "share": draw.params.get("share"),
    }
    return QueueSpec(**settings)


def _draws(queue: ReviewQueue) -> list[Draw]:
    """Draws of a queue, one for each run."""
    draws = {draw.run_id: draw for draw in queue.draws.select_related("run").order_by("-pk")}
    return [draws[run_id] for run_id in sorted(draws, key=lambda run_id: draws[run_id].pk)]


def _drawn_size(queue: ReviewQueue) -> int:
    return sum(int(draw.params["size"]) for draw in _draws(queue))


def _runs_of(queue: ReviewQueue) -> list[Run]:
    return [draw.run for draw in _draws(queue)]
