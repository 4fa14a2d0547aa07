"""Preview of a queue before it is created: items, ratings, and time per reviewer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from django.db.models import Max

from evaluation.core.errors import DomainError
from evaluation.models import MetricDefinition, Run
from review.models import Rating
from review.models.queue_spec import CRITERIA_PER_ANSWER, QueueSpec
from review.queues.creation import ParamsByRun, contributes_answers, params_for_run, split_size
from review.queues.distribution import repeat_window, reviews_per_item
from review.queues.draws import RotatedDraw, draw_rotated, pending_answers, sampling_frame, steering_metrics
from review.statistics.correction.frame import MIN_LABELS
from review.statistics.sampling.draw import CERTAIN, draw
from review.statistics.sampling.member import DrawnAnswer, DrawParams, Strategy, union_probability

# First guesses, used until the project has a pace of its own.
SECONDS_PER_METRIC = 25.0
READING_SECONDS = 30.0
RECENT_ASSIGNMENTS = 500


@dataclass(frozen=True, slots=True)
class RotationPreview:
    """Expected ratings when the criteria rotate over the answers.

    Each answer gets ``per_answer`` of ``criteria``. ``fewest_labels`` is the expected number of ratings of the least
    rated criterion. ``rare_metrics`` (primary keys) apply to too few answers for a correction; they count as unrated
    unless all their answers are rated."""

    per_answer: int
    criteria: int
    fewest_labels: float
    rare_metrics: frozenset[int]

    def answers_needed(self, size: int) -> int:
        """Return how many answers to draw until every criterion can be corrected; ``size`` answers give
        ``fewest_labels``."""
        return (
            size if self.fewest_labels >= MIN_LABELS else math.ceil(size * MIN_LABELS / max(self.fewest_labels, 1e-9))
        )


@dataclass(frozen=True, slots=True)
class QueuePreview:
    """A queue before it is created: ``items`` answers of ``frame_size``, in ``strata``, with so many ``ratings``.

    Counts are expected values where sampling is random. ``earlier_answers`` were drawn before and still lack ratings.
    ``per_reviewer`` is the number of answers per person, hidden repeats included, and takes ``seconds_per_reviewer``.
    ``pace`` is in seconds per answer; ``pace_measured`` says whether it is the project's own. ``samples_by_run`` maps a
    run's primary key to its sample. ``rotation`` is set where criteria rotate."""

    frame_size: int
    items: int
    earlier_answers: int
    strata: int
    ratings: int
    per_reviewer: int
    seconds_per_reviewer: float
    pace_measured: bool
    pace: float
    samples_by_run: Mapping[int, tuple[DrawnAnswer, ...]]
    rotation: RotationPreview | None = None

    @property
    def single_sample(self) -> tuple[DrawnAnswer, ...]:
        """The sample of a single run; empty for several runs."""
        return next(iter(self.samples_by_run.values())) if len(self.samples_by_run) == 1 else ()


def queue_preview(
    runs: Sequence[Run],
    metrics: Sequence[MetricDefinition],
    spec: QueueSpec,
    *,
    reviewers: int,
    params: ParamsByRun = None,
) -> QueuePreview:
    """Draw without storing anything and count the items. Answers that ``params`` marks as certain, because earlier
    draws took them, count only if they still lack ratings.

    :raises DomainError: as :func:`review.statistics.sampling.draw.draw`, ``nothing_picked`` or
    ``too_few_for_repeats``."""
    metric_ids = [metric.pk for metric in metrics]
    probabilities: dict[int, list[float]] = {}
    strata, by_run, rotated_draws = 0, {}, []
    for run, share in zip(runs, split_size(runs, spec.size), strict=True):
        frame = sampling_frame(run, steering_metrics(run, metric_ids))
        draw_params = replace(params_for_run(run, params) or DrawParams(), spread=frame.spread)
        sample: Sequence[DrawnAnswer] = []
        if frame.members and contributes_answers(share, spec.strategy):
            if spec.rotates_criteria(len(metrics)):
                rotated_draws.append(draw_rotated(run, metrics, spec.strategy, share, 0, draw_params))
            sample = (
                rotated_draws[-1].sample if rotated_draws else draw(frame.members, spec.strategy, share, 0, draw_params)
            )
        probabilities |= {member.key: [] for member in frame.members if member.key not in probabilities}
        for drawn_answer in sample:
            if drawn_answer.stratum != CERTAIN:
                probabilities[drawn_answer.key].append(
                    float(drawn_answer.sampled) if drawn_answer.probability is None else drawn_answer.probability
                )
        strata += len({drawn_answer.stratum for drawn_answer in sample} - {CERTAIN})
        by_run[run.pk] = tuple(sample)
    pending_keys = pending_answers(
        {drawn_answer.key for sample in by_run.values() for drawn_answer in sample if drawn_answer.stratum == CERTAIN},
        metric_ids,
    )
    new = [union_probability(values) or 0.0 for key, values in probabilities.items() if key not in pending_keys]
    items = round(math.fsum(new)) + len(pending_keys)
    if not items and spec.strategy == Strategy.HAND_PICKED:
        raise DomainError("nothing_picked")
    ratings = sum(reviews_per_item(items, spec.reviews_needed, spec.overlap_share, 0))
    repeat_window(spec.repeat_share, ratings, reviewers)
    ratings_each = math.ceil(ratings * (1 + spec.repeat_share) / max(reviewers, 1))
    measured_pace = measured_seconds(runs[0].project_id)
    pace = measured_pace or estimated_seconds(min(len(metrics), CRITERIA_PER_ANSWER) if rotated_draws else len(metrics))
    counts = (len(probabilities), items, len(pending_keys), strata, ratings, ratings_each)
    return QueuePreview(
        *counts,
        ratings_each * pace,
        measured_pace is not None,
        pace,
        by_run,
        rotation=_rotation_preview(rotated_draws) if rotated_draws else None,
    )


def _rotation_preview(rotated_draws: Sequence[RotatedDraw]) -> RotationPreview:
    """Expected ratings of the least rated criterion, among those that apply to enough answers."""
    answer_counts, labels = Counter[int](), Counter[int]()
    for rotated_draw in rotated_draws:
        answer_counts.update(rotated_draw.applicable_counts)
        labels.update(pk for metric_ids in rotated_draw.metrics_by_answer.values() for pk in metric_ids)
    highest_count = max(answer_counts.values(), default=0)
    # A criterion that does not apply to all answers may get fewer ratings than in this trial draw.
    lower_bounds = {
        pk: labels[pk] - (math.sqrt(labels[pk]) if count < highest_count else 0.0)
        for pk, count in answer_counts.items()
    }
    common_bounds = {pk: count for pk, count in lower_bounds.items() if answer_counts[pk] >= MIN_LABELS}
    return RotationPreview(
        CRITERIA_PER_ANSWER,
        len(answer_counts),
        min(common_bounds.values(), default=0.0),
        frozenset(answer_counts.keys() - common_bounds.keys()),
    )


def estimated_seconds(metric_count: int) -> float:
    """Estimate the seconds one answer takes with so many metrics."""
    return READING_SECONDS + SECONDS_PER_METRIC * max(metric_count, 1)


def measured_seconds(project_id: int) -> float | None:
    """Median seconds per answer of the project's recent ratings; ``None`` without ratings."""
    timed_ratings = Rating.objects.filter(assignment__item__queue__project_id=project_id, active_ms__isnull=False)
    newest_rows = (
        timed_ratings.values("assignment").annotate(ms=Max("active_ms")).order_by("-assignment")[:RECENT_ASSIGNMENTS]
    )
    times = sorted(row["ms"] for row in newest_rows)
    return times[len(times) // 2] / 1000 if times else None
