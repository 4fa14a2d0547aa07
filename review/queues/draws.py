"""Draws: sampling frame of a run, the sample, and the stored stratum and probability of every answer in the frame."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q

from evaluation.core.canonical import content_hash
from evaluation.core.errors import DomainError
from evaluation.core.samples import Status
from evaluation.core.scales import ScaleKind
from evaluation.models import Answer, MetricDefinition, Run, Score, User
from evaluation.scoring.scores import counting_scores
from evaluation.worker.lifecycle import RunConfig
from review.evidence.answers import new_seed
from review.evidence.invalidation import invalidate_figures
from review.evidence.scorers import CombinedScore, combined_scores
from review.models import Draw, FrameMember, Rating, ReviewItem, ReviewQueue
from review.models.queue_spec import CRITERIA_PER_ANSWER, QueueSpec
from review.statistics.sampling.draw import CERTAIN, draw
from review.statistics.sampling.member import DrawnAnswer, DrawParams, Member, Strategy
from review.statistics.sampling.rotation import min_stratum_size, rotate_criteria


@dataclass(frozen=True, slots=True)
class Stratum:
    """A stratum of a stored draw."""

    name: str
    size: int
    sampled: int


@dataclass(frozen=True, slots=True)
class SamplingFrame:
    """Answers that a draw can take, and the spread of the judge's repeated values on each."""

    members: tuple[Member, ...]
    spread: Mapping[int, float]

    @property
    def keys(self) -> set[int]:
        """Primary keys of the answers."""
        return {member.key for member in self.members}


def make_draw(
    run: Run,
    strategy: Strategy | str,
    size: int,
    seed: int | None = None,
    by: User | None = None,
    queue: ReviewQueue | None = None,
    metric: MetricDefinition | None = None,
    params: DrawParams | None = None,
) -> Draw:
    """Draw and store a sample of a run's answers for review.

    The frame includes answers on which the judge failed, but none that the system failed to give. Strata follow the
    judge's values of ``metric``, else of the queue's metrics, else of all judged metrics of the run. Where an earlier
    draw over these answers has ratings, the draw is stored as planned after looking: answers of that draw are certain,
    and the rest is drawn on its own. Hand-picked answers correct nothing and leave earlier draws unchanged.

    :raises DomainError: as :func:`review.statistics.sampling.draw.draw`, or ``size_below_one``."""
    strategy = Strategy(strategy)
    if size < 1 and strategy not in {Strategy.ALL, Strategy.HAND_PICKED}:
        raise DomainError("size_below_one", size=size)
    metric_ids = queue.metrics.values_list("metric", flat=True) if queue else ()
    metrics = [metric] if metric else steering_metrics(run, metric_ids)
    frame = sampling_frame(run, metrics)
    earlier_keys = set() if strategy == Strategy.HAND_PICKED else earlier_answers(run, metrics) & frame.keys
    draw_params = params or DrawParams()
    draw_params = replace(
        draw_params, certain=draw_params.certain | earlier_keys, spread=draw_params.spread or frame.spread
    )
    seed = new_seed() if seed is None else seed
    sample = draw(frame.members, strategy, size, seed, draw_params)
    facts = {"queue": queue, "run": run, "strategy": strategy.value, "seed": seed, "created_by": by}
    return _store_draw(
        sample, params=_stored_params(draw_params, size, metrics), planned_after_looking=bool(earlier_keys), **facts
    )


def make_rotated_draws(
    run: Run, spec: QueueSpec, size: int, seed: int, queue: ReviewQueue, params: DrawParams | None, by: User | None
) -> dict[int, list[int]]:
    """Draw answers of which each gets a few of the queue's metrics, and store one draw for each metric.

    Returns answer -> primary keys of the metrics to rate. Where an earlier draw for a metric has ratings, the draw is
    stored as planned after looking; answers that it left unrated are included again.

    :raises DomainError: as :func:`review.statistics.sampling.draw.draw`."""
    metrics = [row.metric for row in queue.metrics.select_related("metric").order_by("position", "pk")]
    rotated_draw = draw_rotated(run, metrics, spec.strategy, size, seed, params)
    metrics_by_answer: dict[int, list[int]] = {}
    for metric in metrics:
        if metric.pk not in rotated_draw.samples_by_metric:
            # The metric applies to no answer of the run.
            continue
        sample, earlier_keys = rotated_draw.samples_by_metric[metric.pk], set[int]()
        if spec.strategy != Strategy.HAND_PICKED:
            earlier_keys = earlier_answers(run, [metric]) & {drawn_answer.key for drawn_answer in sample}
        pending_keys = pending_answers(earlier_keys, [metric.pk]) if earlier_keys else set()
        answer_ids = {
            key for key, metric_ids in rotated_draw.metrics_by_answer.items() if metric.pk in metric_ids
        } - earlier_keys | pending_keys
        for answer in answer_ids:
            metrics_by_answer.setdefault(answer, []).append(metric.pk)
        _store_draw(
            [
                DrawnAnswer(drawn_answer.key, CERTAIN, 1.0, True) if drawn_answer.key in earlier_keys else drawn_answer
                for drawn_answer in sample
            ],
            queue=queue,
            run=run,
            metric=metric,
            strategy=spec.strategy.value,
            params=_stored_params(rotated_draw.params, size, [metric]),
            seed=seed,
            planned_after_looking=bool(earlier_keys),
            created_by=by,
        )
    return metrics_by_answer


@dataclass(frozen=True, slots=True)
class RotatedDraw:
    """A draw with rotating criteria: metrics to rate by sampled answer, each metric's sample over the frame, the number
    of answers each metric applies to (by primary key), and the parameters of the draw."""

    sample: Sequence[DrawnAnswer]
    metrics_by_answer: Mapping[int, frozenset[int]]
    samples_by_metric: Mapping[int, Sequence[DrawnAnswer]]
    applicable_counts: Mapping[int, int]
    params: DrawParams


def draw_rotated(
    run: Run,
    metrics: Sequence[MetricDefinition],
    strategy: Strategy,
    size: int,
    seed: int,
    params: DrawParams | None = None,
) -> RotatedDraw:
    """Draw answers and distribute the metrics among them, without storing anything. Answers of earlier draws are drawn
    again: they are certain only for the metrics they were rated by."""
    metric_ids = tuple(metric.pk for metric in metrics)
    frame = sampling_frame(run, steering_metrics(run, metric_ids))
    not_applicable = counting_scores(run).filter(metric_id__in=metric_ids, status=Status.NOT_APPLICABLE)
    inapplicable_pairs = set(not_applicable.values_list("answer_id", "metric_id"))
    applicable_metrics = {
        answer: tuple(pk for pk in metric_ids if (answer, pk) not in inapplicable_pairs) or metric_ids
        for answer in frame.keys
    }
    draw_params = params or DrawParams()
    min_per_stratum = max(draw_params.per_stratum, min_stratum_size(len(metric_ids), CRITERIA_PER_ANSWER))
    draw_params = replace(
        draw_params, certain=frozenset(), spread=draw_params.spread or frame.spread, per_stratum=min_per_stratum
    )
    sample = draw(frame.members, strategy, size, seed, draw_params)
    metrics_by_answer, samples_by_metric = rotate_criteria(
        sample, applicable_metrics, CRITERIA_PER_ANSWER, np.random.default_rng([seed, CRITERIA_PER_ANSWER])
    )
    applicable_counts = Counter(pk for answer_metrics in applicable_metrics.values() for pk in answer_metrics)
    return RotatedDraw(sample, metrics_by_answer, samples_by_metric, applicable_counts, draw_params)


def _store_draw(sample: Sequence[DrawnAnswer], **facts: Any) -> Draw:
    """Store a draw with its whole frame."""
    with transaction.atomic():
        stored_draw = Draw.objects.create(frame_size=len(sample), **facts)
        rows = (
            FrameMember(
                draw=stored_draw,
                answer_id=drawn_answer.key,
                stratum=_shortened_stratum(drawn_answer.stratum),
                probability=drawn_answer.probability,
                sampled=drawn_answer.sampled,
            )
            for drawn_answer in sample
        )
        FrameMember.objects.bulk_create(rows, batch_size=2_000)
        invalidate_figures([drawn_answer.key for drawn_answer in sample[:1]])
    return stored_draw


def sampling_frame(run: Run, metrics: Sequence[MetricDefinition]) -> SamplingFrame:
    """Build the frame of a run: its answers with category and mean judge value."""
    judge_values = combined_scores(run, [metric.pk for metric in metrics])
    members, spread = [], {}
    for pk, question_id, category, group in _newest_answers(run):
        values = [(metric, judge_values[pk, metric.pk]) for metric in metrics if (pk, metric.pk) in judge_values]
        members.append(
            Member(
                key=pk,
                category=category,
                judge_score=_steering_value(values),
                failed=any(value.status == Status.FAILED for _, value in values),
                group=group or question_id,
            )
        )
        if values:
            spread[pk] = statistics.fmean(value.spread for _, value in values)
    return SamplingFrame(tuple(members), spread)


def steering_metrics(run: Run, metric_ids: Iterable[int] = ()) -> list[MetricDefinition]:
    """Metrics whose judge values form the strata: the given ones (primary keys) that a judge scored, else all judged
    ones."""
    judged_metrics = MetricDefinition.objects.filter(
        Exists(Score.objects.filter(run=run, metric=OuterRef("pk"), judge_version__isnull=False))
        | Q(pk__in=run.imported_judges.values("metric"))
    ).order_by("name", "version")
    candidates, selected_ids = list(judged_metrics), set(metric_ids)
    return [metric for metric in candidates if metric.pk in selected_ids] or candidates


def earlier_answers(run: Run, metrics: Sequence[MetricDefinition]) -> set[int]:
    """Answers that earlier draws for these metrics sampled, provided that any of their ratings may have been seen."""
    earlier_draws = Draw.objects.filter(
        Q(metric=None, queue__metrics__metric__in=metrics) | Q(metric__in=metrics),
        run__answer_set_id=run.answer_set_id,
        queue__mode=ReviewQueue.Mode.BLIND,
    )
    sampled_members = FrameMember.objects.filter(
        draw__in=earlier_draws.values("pk"), sampled=True, probability__isnull=False
    )
    ratings = Rating.objects.filter(
        answer__in=sampled_members.values("answer"), metric__in=metrics, phase="initial", source="review"
    )
    return set(sampled_members.values_list("answer_id", flat=True)) if ratings.exists() else set()


def answers_to_review(stored_draw: Draw) -> list[int]:
    """Sampled answers that need an item. Certain answers are included only if they still lack ratings."""
    sampled_rows = stored_draw.frame.filter(sampled=True).order_by("answer_id").values_list("answer_id", "stratum")
    certain_answers = (
        {answer for answer, stratum in sampled_rows if stratum == CERTAIN}
        if stored_draw.planned_after_looking
        else set()
    )
    metric_ids = stored_draw.queue.metrics.values_list("metric", flat=True) if stored_draw.queue else ()
    finished_answers = certain_answers - pending_answers(certain_answers, metric_ids)
    return [answer for answer, _ in sampled_rows if answer not in finished_answers]


def pending_answers(certain_answers: Collection[int], metric_ids: Iterable[int]) -> set[int]:
    """Return those of the certain answers that need a new item: without a rating of each of these metrics (primary
    keys; none: any), and in no open queue for all of them. Two queries."""
    required_metrics = set(metric_ids)
    ratings = Rating.objects.filter(answer__in=certain_answers, phase="initial", source="review")
    open_items = ReviewItem.objects.filter(answer__in=certain_answers, queue__state=ReviewQueue.State.OPEN)
    open_item_metrics = open_items.values_list("answer", "queue__metrics__metric", "metric_ids")
    finished_answers: set[int] = set()
    for pairs in (
        set(ratings.values_list("answer", "metric")),
        {
            (answer, metric)
            for answer, metric, item_metrics in open_item_metrics
            if not item_metrics or metric in item_metrics
        },
    ):
        metrics_by_answer: dict[int, set[int]] = {}
        for answer, metric in pairs:
            metrics_by_answer.setdefault(answer, set()).add(metric)
        finished_answers |= {answer for answer, metrics in metrics_by_answer.items() if required_metrics <= metrics}
    return set(certain_answers) - finished_answers


def draw_strata(stored_draw: Draw) -> list[Stratum]:
    """Strata of a draw with their sizes, by name."""
    sizes = stored_draw.frame.values_list("stratum").annotate(Count("pk")).order_by("stratum")
    sampled_counts = dict(stored_draw.frame.filter(sampled=True).values_list("stratum").annotate(Count("pk")))
    return [Stratum(name, size, sampled_counts.get(name, 0)) for name, size in sizes]


def _newest_answers(run: Run) -> Iterable[tuple[int, str, str, str]]:
    """``(answer id, question id, category, group)`` of the newest successful answer per question and sample."""
    answers = Answer.objects.filter(answer_set_id=run.answer_set_id)
    if question_ids := RunConfig.model_validate(run.config).question_ids:
        answers = answers.filter(question__external_id__in=question_ids)
    rows = answers.order_by("round").values_list(
        *("question_id", "sample", "status", "pk"),
        *("question__external_id", "question__category", "question__group"),
    )
    newest_rows = {(question, sample): columns for question, sample, *columns in rows}
    return [(pk, name, category, group) for status, pk, name, category, group in newest_rows.values() if status == "ok"]


def _steering_value(values: Collection[tuple[MetricDefinition, CombinedScore]]) -> float | None:
    """Mean judge value; metrics on different scales are mapped to 0 to 1, more being better."""
    numbers = [(metric, value.value) for metric, value in values if value.value is not None]
    if not numbers:
        return None
    if len({(metric.scale, metric.direction) for metric, _ in numbers}) == 1:
        return statistics.fmean(value for _, value in numbers)
    return statistics.fmean(share_of_scale(metric, value) for metric, value in numbers)


def share_of_scale(metric: MetricDefinition, value: float) -> float:
    """Map a value to a share of the metric's scale, more being better."""
    scale = metric.read_scale()
    width = scale.width if scale.kind is not ScaleKind.CLASS else 1.0
    share = (value - scale.low) / width
    return 1.0 - share if metric.direction == "lower" else share


def _stored_params(params: DrawParams, size: int, metrics: Sequence[MetricDefinition]) -> dict[str, object]:
    """Parameters that, with the seed, reproduce the draw; certain answers and spreads follow from the frame."""
    return {
        "size": size,
        "metrics": [f"{metric.name} v{metric.version}" for metric in metrics],
        "merge_below": params.merge_below,
        "per_stratum": params.per_stratum,
        "fail_below": params.fail_below,
        "share": params.share,
        "pilot_sd": dict(params.pilot_sd),
    }


def _shortened_stratum(stratum: str) -> str:
    """Shorten a stratum name to its column. A shortened name keeps a hash, so that two strata never become one."""
    limit = 300
    return stratum if len(stratum) <= limit else f"{stratum[:260]}… {content_hash(stratum)[:32]}"
