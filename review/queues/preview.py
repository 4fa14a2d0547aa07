"""What a queue would be before it is made: how many answers, how much work for each reviewer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Max

from evaluation.core.errors import Refused
from evaluation.models import MetricDefinition, Run
from review.models import Rating
from review.models.queue_spec import FEW, QueueSpec
from review.queues.draws import Turns, draw_in_turn, frame_of, left_over, steering_metrics
from review.queues.making import ParamsByRun, params_of, shares, takes_part
from review.queues.sharing import needs_of, repeat_window
from review.statistics.correction.frame import LEAST_LABELS
from review.statistics.sampling.draw import CERTAIN, draw
from review.statistics.sampling.member import Drawn, DrawParams, Strategy, union_probability

SECONDS_PER_METRIC = 25.0  # a first guess, until the project has a pace of its own
READING_SECONDS = 30.0
RECENT = 500


@dataclass(frozen=True, slots=True)
class InTurn:
    """``each`` of ``criteria`` are asked of an answer. ``labels``: how many ratings the part that gets fewest can count
    on; ``rare``: the parts (by primary key) that apply to fewer answers than a correction takes, so that
    they count as unrated unless all are rated."""

    each: int
    criteria: int
    labels: float
    rare: frozenset[int]

    def enough(self, size: int) -> int:
        """How many answers have to be drawn, where ``size`` gave ``labels``, until every part can be corrected."""
        return size if self.labels >= LEAST_LABELS else math.ceil(size * LEAST_LABELS / max(self.labels, 1e-9))


@dataclass(frozen=True, slots=True)
class QueuePreview:
    """``items`` answers of ``frame``, in ``strata``, that take so many ``ratings``; where chance decides how many they
    are, the expected number. ``earlier`` of them were drawn before and are not rated by all metrics.
    ``per_reviewer`` is how many each rates, repeats among them, and ``seconds_each`` what that takes.
    ``measured`` tells whether the pace, in seconds an answer, is the project's own. ``by_run`` has what would be drawn
    from each run, by its primary key. ``in_turn``: only where criteria are asked in turn."""

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
    in_turn: InTurn | None = None

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
    strata, by_run, turns = 0, {}, []
    for run, share in zip(runs, shares(runs, spec.size), strict=True):
        members = frame_of(run, steering_metrics(run, asked))
        told = replace(params_of(run, params) or DrawParams(), spread=members.spread)
        drawn: Sequence[Drawn] = []
        if members.members and takes_part(share, spec.strategy):
            if spec.in_turn(len(metrics)):
                turns.append(draw_in_turn(run, metrics, spec.strategy, share, 0, told))
            drawn = turns[-1].drawn if turns else draw(members.members, spec.strategy, share, 0, told)
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
    pace = usual or reading_seconds(min(len(metrics), FEW) if turns else len(metrics))
    return QueuePreview(
        *(len(chances), items, len(earlier), strata, ratings, each, each * pace, usual is not None, pace, by_run),
        in_turn=_fewest(turns) if turns else None,
    )


def _fewest(turns: Sequence[Turns]) -> InTurn:
    """What the criterion gets that is rated least, of those that apply to enough answers."""
    applies, labels = Counter[int](), Counter[int]()
    for one in turns:
        applies.update(one.applies_to)
        labels.update(pk for several in one.asked.values() for pk in several)
    most = max(applies.values(), default=0)
    # What does not apply everywhere may by chance come more rarely than in the draw that was tried.
    sure = {pk: labels[pk] - (math.sqrt(labels[pk]) if count < most else 0.0) for pk, count in applies.items()}
    common = {pk: count for pk, count in sure.items() if applies[pk] >= LEAST_LABELS}
    return InTurn(FEW, len(applies), min(common.values(), default=0.0), frozenset(applies.keys() - common.keys()))


def reading_seconds(metrics: int) -> float:
    """A first guess of the seconds it takes to rate an answer by so many metrics."""
    return READING_SECONDS + SECONDS_PER_METRIC * max(metrics, 1)


def usual_seconds(project_id: int) -> float | None:
    """The median time of the project's recent ratings in seconds; ``None`` without any."""
    looked = Rating.objects.filter(assignment__item__queue__project_id=project_id, active_ms__isnull=False)
    newest = looked.values("assignment").annotate(ms=Max("active_ms")).order_by("-assignment")[:RECENT]
    times = sorted(row["ms"] for row in newest)
    return times[len(times) // 2] / 1000 if times else None
