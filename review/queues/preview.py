"""What a queue would be before it is made: how many answers, how much work for each reviewer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Max

from evaluation.runs.models import Run
from evaluation.scores.models import MetricDefinition
from review.draws import frame_of
from review.models.ratings import Rating
from review.queues.making import shares
from review.sampling.draw import draw
from review.sampling.member import DrawParams, Strategy

SECONDS_PER_METRIC = 25.0  # a first guess, until the project has a pace of its own
READING_SECONDS = 30.0
RECENT = 500


@dataclass(frozen=True, slots=True)
class QueuePreview:
    """``items`` answers of ``frame``, in ``strata``; ``per_reviewer`` ratings of an answer each and their seconds.
    ``measured`` tells whether the pace is the project's own."""

    frame: int
    items: int
    strata: int
    per_reviewer: int
    seconds_each: float
    measured: bool


def queue_preview(
    runs: Sequence[Run],
    metrics: Sequence[MetricDefinition],
    *,
    strategy: Strategy | str,
    size: int,
    reviewers: int,
    reviews_needed: int,
) -> QueuePreview:
    """Draw without keeping anything, and count.

    :raises Refused: what :func:`review.sampling.draw.draw` refuses.
    """
    frame, items, strata = 0, 0, 0
    for run, share in zip(runs, shares(runs, size), strict=True):
        members = frame_of(run, metrics)
        params = DrawParams(spread=members.spread)
        drawn = draw(members.members, Strategy(strategy), share, 0, params) if members.members else ()
        frame += len(members.members)
        items += sum(one.sampled for one in drawn)
        strata += len({one.stratum for one in drawn})
    each = math.ceil(items * reviews_needed / max(reviewers, 1))
    pace = usual_seconds(runs[0].project_id)
    guess = READING_SECONDS + SECONDS_PER_METRIC * max(len(metrics), 1)
    return QueuePreview(frame, items, strata, each, each * (pace or guess), pace is not None)


def usual_seconds(project_id: int) -> float | None:
    """The median time of the project's recent ratings in seconds; ``None`` without any."""
    looked = Rating.objects.filter(assignment__item__queue__project_id=project_id, active_ms__isnull=False)
    newest = looked.values("assignment").annotate(ms=Max("active_ms")).order_by("-assignment")[:RECENT]
    times = sorted(row["ms"] for row in newest)
    return times[len(times) // 2] / 1000 if times else None
