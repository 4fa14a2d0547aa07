"""What a queue would be before it is made: how many answers, how much work for each reviewer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Max

from evaluation.runs.models import Run
from evaluation.scores.models import MetricDefinition
from review.draws import frame_of
from review.models.ratings import Rating
from review.queues.making import ParamsByRun, params_of, shares
from review.queues.sharing import Sharing, needs_of, repeat_window
from review.sampling.draw import CERTAIN, draw
from review.sampling.member import Drawn, DrawParams, Strategy

SECONDS_PER_METRIC = 25.0  # a first guess, until the project has a pace of its own
READING_SECONDS = 30.0
RECENT = 500


@dataclass(frozen=True, slots=True)
class QueuePreview:
    """``items`` answers of ``frame``, in ``strata``, that take so many ``ratings``; ``per_reviewer`` is how many each
    rates, repeats among them, and ``seconds_each`` what that takes.
    ``measured`` tells whether the pace, in seconds an answer, is the project's own. ``by_run`` has what would be drawn
    from each run, by its primary key."""

    frame: int
    items: int
    strata: int
    ratings: int
    per_reviewer: int
    seconds_each: float
    measured: bool
    pace: float
    by_run: Mapping[int, tuple[Drawn, ...]]

    @property
    def drawn(self) -> tuple[Drawn, ...]:
        """The draw of a single run; empty for several, whose strata are apart."""
        return next(iter(self.by_run.values())) if len(self.by_run) == 1 else ()


def queue_preview(
    runs: Sequence[Run],
    metrics: Sequence[MetricDefinition],
    *,
    strategy: Strategy | str,
    size: int,
    reviewers: int,
    reviews_needed: int,
    sharing: Sharing | None = None,
    params: ParamsByRun = None,
) -> QueuePreview:
    """Draw without keeping anything, and count what is new: answers that ``params`` call certain were drawn earlier.

    :raises Refused: what :func:`review.sampling.draw.draw` refuses, and ``too_few_for_repeats``.
    """
    sharing = sharing or Sharing()
    new: set[int] = set()
    frame: set[int] = set()
    strata, by_run = 0, {}
    for run, share in zip(runs, shares(runs, size), strict=True):
        members = frame_of(run, metrics)
        told = replace(params_of(run, params) or DrawParams(), spread=members.spread)
        drawn = draw(members.members, Strategy(strategy), share, 0, told) if members.members else []
        frame |= {member.key for member in members.members}
        new |= {one.key for one in drawn if one.sampled and one.stratum != CERTAIN}
        strata += len({one.stratum for one in drawn} - {CERTAIN})
        by_run[run.pk] = tuple(drawn)
    ratings = sum(needs_of(len(new), reviews_needed, sharing.overlap_share, 0))
    repeat_window(sharing.repeat_share, ratings, reviewers)
    each = math.ceil(ratings * (1 + sharing.repeat_share) / max(reviewers, 1))
    usual = usual_seconds(runs[0].project_id)
    pace = usual or reading_seconds(len(metrics))
    return QueuePreview(len(frame), len(new), strata, ratings, each, each * pace, usual is not None, pace, by_run)


def reading_seconds(metrics: int) -> float:
    """A first guess of the seconds it takes to rate an answer by so many metrics."""
    return READING_SECONDS + SECONDS_PER_METRIC * max(metrics, 1)


def usual_seconds(project_id: int) -> float | None:
    """The median time of the project's recent ratings in seconds; ``None`` without any."""
    looked = Rating.objects.filter(assignment__item__queue__project_id=project_id, active_ms__isnull=False)
    newest = looked.values("assignment").annotate(ms=Max("active_ms")).order_by("-assignment")[:RECENT]
    times = sorted(row["ms"] for row in newest)
    return times[len(times) // 2] / 1000 if times else None
