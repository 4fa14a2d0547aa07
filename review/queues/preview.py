"""What a queue would be before it is made: how many answers, how much work for each reviewer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Max

from evaluation.core.errors import Refused
from evaluation.models import MetricDefinition, Run
from review.models import Rating
from review.models.queue_spec import QueueSpec
from review.queues.draws import frame_of, left_over, steering_metrics
from review.queues.making import ParamsByRun, params_of, shares, takes_part
from review.queues.sharing import needs_of, repeat_window
from review.statistics.sampling.draw import CERTAIN, draw
from review.statistics.sampling.member import Drawn, DrawParams, Strategy
from review.statistics.sampling.union import union_probability

SECONDS_PER_METRIC = 25.0  # a first guess, until the project has a pace of its own
READING_SECONDS = 30.0
RECENT = 500


@dataclass(frozen=True, slots=True)
class QueuePreview:
    """``items`` answers of ``frame``, in ``strata``, that take so many ``ratings``; where chance decides how many they
    are, the expected number. ``earlier`` of them were drawn before and are not rated by all metrics.
    ``per_reviewer`` is how many each rates, repeats among them, and ``seconds_each`` what that takes.
    ``measured`` tells whether the pace, in seconds an answer, is the project's own. ``by_run`` has what would be drawn
    from each run, by its primary key."""

    frame: int
    items: int
    earlier: int
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
    spec: QueueSpec,
    *,
    reviewers: int,
    params: ParamsByRun = None,
) -> QueuePreview:
    """Draw without keeping anything, and count what would get an item: of answers that ``params`` call certain, because
    they were drawn earlier, those that are left over.

    :raises Refused: what :func:`review.statistics.sampling.draw.draw` refuses, ``nothing_picked`` and
        ``too_few_for_repeats``.
    """
    asked = [metric.pk for metric in metrics]
    chances: dict[int, list[float]] = {}
    strata, by_run = 0, {}
    for run, share in zip(runs, shares(runs, spec.size), strict=True):
        members = frame_of(run, steering_metrics(run, asked))
        told = replace(params_of(run, params) or DrawParams(), spread=members.spread)
        takes = members.members and takes_part(share, spec.strategy)
        drawn = draw(members.members, spec.strategy, share, 0, told) if takes else []
        chances |= {member.key: [] for member in members.members if member.key not in chances}
        for one in drawn:
            if one.stratum != CERTAIN:
                chances[one.key].append(float(one.sampled) if one.probability is None else one.probability)
        strata += len({one.stratum for one in drawn} - {CERTAIN})
        by_run[run.pk] = tuple(drawn)
    earlier = left_over({one.key for drawn in by_run.values() for one in drawn if one.stratum == CERTAIN}, asked)
    new = round(math.fsum(union_probability(found) or 0.0 for key, found in chances.items() if key not in earlier))
    items = new + len(earlier)
    if not items and spec.strategy == Strategy.HAND_PICKED:
        raise Refused("nothing_picked")
    ratings = sum(needs_of(items, spec.reviews_needed, spec.overlap_share, 0))
    repeat_window(spec.repeat_share, ratings, reviewers)
    each = math.ceil(ratings * (1 + spec.repeat_share) / max(reviewers, 1))
    usual = usual_seconds(runs[0].project_id)
    pace = usual or reading_seconds(len(metrics))
    return QueuePreview(
        len(chances), items, len(earlier), strata, ratings, each, each * pace, usual is not None, pace, by_run
    )


def reading_seconds(metrics: int) -> float:
    """A first guess of the seconds it takes to rate an answer by so many metrics."""
    return READING_SECONDS + SECONDS_PER_METRIC * max(metrics, 1)


def usual_seconds(project_id: int) -> float | None:
    """The median time of the project's recent ratings in seconds; ``None`` without any."""
    looked = Rating.objects.filter(assignment__item__queue__project_id=project_id, active_ms__isnull=False)
    newest = looked.values("assignment").annotate(ms=Max("active_ms")).order_by("-assignment")[:RECENT]
    times = sorted(row["ms"] for row in newest)
    return times[len(times) // 2] / 1000 if times else None
