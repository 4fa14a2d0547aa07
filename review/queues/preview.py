"""Preview of a queue before it is created: items, ratings, and time per reviewer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluation.models import MetricDefinition, Run, User
from review.evidence.answers import exposed_answers
from review.models.queue_spec import CRITERIA_PER_ANSWER, Mode, QueueSpec
from review.queues.distribution import repeat_window, reviews_per_item
from review.queues.pace import answer_pace
from review.queues.sampling import ParamsByRun, QueuePlan, plan_queue
from review.statistics.sampling.draw import CERTAIN, STANDING


@dataclass(frozen=True, slots=True)
class QueuePreview:
    """A queue before it is created: ``items`` answers of ``frame_size``, in ``strata``, with so many ``ratings``.

    ``earlier_answers`` were drawn before and still lack ratings. ``per_reviewer`` is the number of answers per person,
    hidden repeats included, and takes ``seconds_per_reviewer``. ``pace`` is in seconds per answer; ``pace_measured``
    says whether it is the project's own. ``criteria_per_answer`` is lower than the number of criteria where they
    rotate. ``exposed`` are reviewers who can no longer rate so many of the answers blind; empty in assisted mode.
    ``plan`` is the sample."""

    frame_size: int
    items: int
    earlier_answers: int
    strata: int
    ratings: int
    per_reviewer: int
    seconds_per_reviewer: float
    pace_measured: bool
    pace: float
    criteria_per_answer: int
    exposed: Mapping[User, int]
    plan: QueuePlan


def queue_preview(
    runs: Sequence[Run],
    metrics: Sequence[MetricDefinition],
    spec: QueueSpec,
    *,
    reviewers: Sequence[User],
    params: ParamsByRun = None,
) -> QueuePreview:
    """Draw without storing anything and count the items. With the seed of the queue, its draw is the same.

    :raises DomainError: as :func:`review.queues.sampling.plan_queue`, or ``too_few_for_repeats``."""
    plan = plan_queue(
        runs, metrics, spec, params, seed=spec.seed or 0, reviewer_ids=[reviewer.pk for reviewer in reviewers]
    )
    samples = [run_sample.sample for run_sample in plan.samples.values()]
    earlier_answers = {
        answer.key
        for run_sample in plan.samples.values()
        for planned in run_sample.draws
        for answer in planned.answers
        if answer.stratum == CERTAIN
    }
    ratings = sum(reviews_per_item(len(plan.items), spec.reviews_needed, spec.overlap_share, 0))
    repeat_window(spec.repeat_share, ratings, len(reviewers))
    ratings_each = math.ceil(ratings * (1 + spec.repeat_share) / max(len(reviewers), 1))
    criteria = min(len(metrics), CRITERIA_PER_ANSWER) if spec.rotates_criteria(len(metrics)) else len(metrics)
    exposed: dict[User, int] = {}
    if spec.mode == Mode.BLIND:
        seen = exposed_answers([reviewer.pk for reviewer in reviewers], plan.items)
        exposed = {reviewer: len(seen[reviewer.pk]) for reviewer in reviewers if seen.get(reviewer.pk)}
    pace = answer_pace(runs[0].project_id, criteria, list(plan.items))
    return QueuePreview(
        frame_size=plan.frame_size,
        items=len(plan.items),
        earlier_answers=len(earlier_answers & plan.items.keys()),
        strata=sum(len({answer.stratum for answer in sample} - {CERTAIN, STANDING}) for sample in samples),
        ratings=ratings,
        per_reviewer=ratings_each,
        seconds_per_reviewer=ratings_each * pace.seconds,
        pace_measured=pace.measured,
        pace=pace.seconds,
        criteria_per_answer=criteria,
        exposed=exposed,
        plan=plan,
    )
