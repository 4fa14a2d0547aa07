"""Draws: sampling frame of a run, the sample, and the stored stratum and probability of every answer in the frame."""

from __future__ import annotations

import statistics
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
from review.evidence.effective import standing_answers
from review.evidence.experts import is_standing
from review.evidence.invalidation import invalidate_figures
from review.evidence.scorers import CombinedScore, combined_scores
from review.models import Draw, FrameMember, Rating, ReviewItem, ReviewQueue
from review.models.queue_spec import CRITERIA_PER_ANSWER, QueueSpec
from review.statistics.sampling.draw import CERTAIN, STANDING, draw
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


@dataclass(frozen=True, slots=True)
class PlannedDraw:
    """A draw before it is stored, for one ``metric`` or (``None``) for all of the queue.

    ``after_looking``: earlier draws have ratings; their answers are certain. ``params`` reproduce the draw."""

    metric: MetricDefinition | None
    answers: Sequence[DrawnAnswer]
    after_looking: bool
    params: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class RunSample:
    """Sample of a run for a queue, before it is stored.

    ``metrics_by_answer`` holds the answers to rate and the primary keys of the metrics to ask; an empty list means all
    of the queue. ``sample`` is the draw of answers, whatever is asked of them."""

    draws: tuple[PlannedDraw, ...]
    metrics_by_answer: Mapping[int, list[int]]
    sample: Sequence[DrawnAnswer]

    def store(self, run: Run, queue: ReviewQueue, seed: int, strategy: Strategy, by: User | None) -> None:
        """Store the draws with their whole frames."""
        for planned in self.draws:
            _store_draw(planned, queue=queue, run=run, seed=seed, strategy=strategy.value, created_by=by)


def make_draw(
    run: Run,
    strategy: Strategy | str,
    size: int,
    seed: int | None = None,
    by: User | None = None,
    metric: MetricDefinition | None = None,
    params: DrawParams | None = None,
) -> Draw:
    """Draw and store a sample of a run's answers for review, without a queue.

    The frame includes answers on which the judge failed, but none that the system failed to give. Strata follow the
    judge's values of ``metric``, else of all judged metrics of the run.

    :raises DomainError: as :func:`review.statistics.sampling.draw.draw`, or ``size_below_one``."""
    strategy = Strategy(strategy)
    if size < 1 and strategy not in {Strategy.ALL, Strategy.HAND_PICKED}:
        raise DomainError("size_below_one", size=size)
    seed = new_seed() if seed is None else seed
    planned = _plan_draw(run, strategy, size, seed, [metric] if metric else steering_metrics(run), params)
    return _store_draw(planned, queue=None, run=run, seed=seed, strategy=strategy.value, created_by=by)


def plan_sample(
    run: Run,
    metrics: Sequence[MetricDefinition],
    spec: QueueSpec,
    size: int,
    seed: int,
    params: DrawParams | None,
    same_queue: Sequence[RunSample] = (),
) -> RunSample:
    """Draw ``size`` answers of a run for a queue that asks these metrics. ``same_queue``: the queue's samples of other
    runs over the same answers.

    Strata follow the judge's values of the metrics. Where an earlier draw over these answers has ratings, the draw is
    planned after looking: answers of that draw are certain, and the rest is drawn on its own. Answers with a standing
    rating of every metric are certain too, and are not asked again. Selected answers (without probabilities) correct
    nothing and leave earlier draws unchanged.

    :raises DomainError: as :func:`review.statistics.sampling.draw.draw`."""
    if spec.rotates_criteria(len(metrics)) and not spec.strategy.draws_rated:
        return _plan_rotated(run, metrics, spec, size, seed, params, same_queue)
    metric_ids = [metric.pk for metric in metrics]
    standing = frozenset.intersection(*_standing_by_metric(run, metric_ids, spec.strategy).values())
    planned = _plan_draw(
        run, spec.strategy, size, seed, steering_metrics(run, metric_ids), params, same_queue, standing
    )
    earlier_keys = {answer.key for answer in planned.answers if planned.after_looking and answer.stratum == CERTAIN}
    finished_answers = earlier_keys - pending_answers(earlier_keys, metric_ids)
    answers = [answer.key for answer in planned.answers if answer.sampled and answer.key not in finished_answers]
    return RunSample((planned,), {answer: [] for answer in answers}, planned.answers)


def _plan_draw(
    run: Run,
    strategy: Strategy,
    size: int,
    seed: int,
    metrics: Sequence[MetricDefinition],
    params: DrawParams | None,
    same_queue: Sequence[RunSample] = (),
    standing: frozenset[int] = frozenset(),
) -> PlannedDraw:
    frame = sampling_frame(run, metrics)
    earlier_keys = set[int]()
    if strategy.has_probabilities:
        earlier_keys = earlier_answers(run, metrics, same_queue) & frame.keys
    draw_params = params or DrawParams()
    draw_params = replace(
        draw_params,
        certain=draw_params.certain | earlier_keys | standing & frame.keys,
        spread=draw_params.spread or frame.spread,
    )
    sample = _mark_standing(draw(frame.members, strategy, size, seed, draw_params), standing)
    return PlannedDraw(None, sample, bool(earlier_keys), _stored_params(draw_params, size, metrics))


def _plan_rotated(
    run: Run,
    metrics: Sequence[MetricDefinition],
    spec: QueueSpec,
    size: int,
    seed: int,
    params: DrawParams | None,
    same_queue: Sequence[RunSample],
) -> RunSample:
    """Draw answers of which each gets a few of the metrics, with one draw for each metric.

    Answers of earlier draws are drawn again: they are certain only for the metrics they were rated by. Answers with a
    standing rating of a metric are not asked for it; those with one of each metric are not drawn. Where an earlier draw
    for a metric has ratings, the draw for it is planned after looking; answers that it left unrated are included
    again."""
    metric_ids = tuple(metric.pk for metric in metrics)
    frame = sampling_frame(run, steering_metrics(run, metric_ids))
    not_applicable = counting_scores(run).filter(metric_id__in=metric_ids, status=Status.NOT_APPLICABLE)
    inapplicable_pairs = set(not_applicable.values_list("answer_id", "metric_id"))
    applicable_metrics = {
        answer: tuple(pk for pk in metric_ids if (answer, pk) not in inapplicable_pairs) or metric_ids
        for answer in frame.keys
    }
    standing_by_metric = _standing_by_metric(run, metric_ids, spec.strategy)
    draw_params = params or DrawParams()
    draw_params = replace(
        draw_params,
        certain=frozenset.intersection(*standing_by_metric.values()) & frame.keys,
        spread=draw_params.spread or frame.spread,
        per_stratum=max(draw_params.per_stratum, min_stratum_size(len(metric_ids), CRITERIA_PER_ANSWER)),
    )
    sample = draw(frame.members, spec.strategy, size, seed, draw_params)
    assigned_metrics, samples_by_metric = rotate_criteria(
        sample, applicable_metrics, CRITERIA_PER_ANSWER, np.random.default_rng([seed, CRITERIA_PER_ANSWER])
    )
    metrics_by_answer: dict[int, list[int]] = {}
    draws = []
    for metric in metrics:
        if metric.pk not in samples_by_metric:
            # The metric applies to no answer of the run.
            continue
        metric_sample, earlier_keys, standing = samples_by_metric[metric.pk], set[int](), standing_by_metric[metric.pk]
        if spec.strategy.has_probabilities:
            earlier_keys = earlier_answers(run, [metric], same_queue) & frame.keys
        pending_keys = pending_answers(earlier_keys, [metric.pk])
        answer_ids = {key for key, assigned in assigned_metrics.items() if metric.pk in assigned}
        for answer in (answer_ids - earlier_keys | pending_keys) - standing:
            metrics_by_answer.setdefault(answer, []).append(metric.pk)
        certain_sample = [
            DrawnAnswer(drawn_answer.key, CERTAIN, 1.0, True) if drawn_answer.key in earlier_keys else drawn_answer
            for drawn_answer in metric_sample
        ]
        certain_sample = _mark_standing(certain_sample, standing)
        stored_params = _stored_params(draw_params, size, [metric])
        draws.append(PlannedDraw(metric, certain_sample, bool(earlier_keys), stored_params))
    return RunSample(tuple(draws), metrics_by_answer, sample)


def _store_draw(planned: PlannedDraw, **facts: Any) -> Draw:
    """Store a draw with its whole frame."""
    with transaction.atomic():
        stored_draw = Draw.objects.create(
            frame_size=len(planned.answers),
            metric=planned.metric,
            params=dict(planned.params),
            planned_after_looking=planned.after_looking,
            **facts,
        )
        rows = (
            FrameMember(
                draw=stored_draw,
                answer_id=drawn_answer.key,
                stratum=_shortened_stratum(drawn_answer.stratum),
                probability=drawn_answer.probability,
                sampled=drawn_answer.sampled,
            )
            for drawn_answer in planned.answers
        )
        FrameMember.objects.bulk_create(rows, batch_size=2_000)
        invalidate_figures([drawn_answer.key for drawn_answer in planned.answers[:1]])
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


def earlier_answers(run: Run, metrics: Sequence[MetricDefinition], same_queue: Sequence[RunSample] = ()) -> set[int]:
    """Answers that earlier draws for these metrics sampled, provided that any of their ratings may have been seen.
    Draws of the new queue itself then count as earlier."""
    earlier_draws = Draw.objects.filter(
        Q(metric=None, queue__metrics__metric__in=metrics) | Q(metric__in=metrics),
        run__answer_set_id=run.answer_set_id,
        queue__mode=ReviewQueue.Mode.BLIND,
        baseline=None,
    )
    sampled_members = FrameMember.objects.filter(
        draw__in=earlier_draws.values("pk"), sampled=True, probability__isnull=False
    )
    ratings = Rating.objects.filter(
        answer__in=sampled_members.values("answer"), metric__in=metrics, phase="initial", source="review"
    )
    if not ratings.exists():
        return set()
    metric_ids = {metric.pk for metric in metrics}
    return set(sampled_members.values_list("answer_id", flat=True)) | {
        answer.key
        for run_sample in same_queue
        for planned in run_sample.draws
        if planned.metric is None or planned.metric.pk in metric_ids
        for answer in planned.answers
        if answer.sampled and answer.probability is not None
    }


def _standing_by_metric(run: Run, metric_ids: Sequence[int], strategy: Strategy) -> dict[int, frozenset[int]]:
    """Answers with a standing rating by metric, which a queue does not ask for. None if a person picks the answers."""
    return standing_answers(run, metric_ids) if strategy.has_probabilities else dict.fromkeys(metric_ids, frozenset())


def _mark_standing(answers: Sequence[DrawnAnswer], standing: Collection[int]) -> list[DrawnAnswer]:
    """Put answers with a standing rating into a stratum of their own, from which nothing is sampled."""
    return [
        DrawnAnswer(answer.key, STANDING, 1.0, sampled=False) if answer.key in standing else answer
        for answer in answers
    ]


def pending_answers(certain_answers: Collection[int], metric_ids: Iterable[int]) -> set[int]:
    """Return those of the certain answers that need a new item: without a rating of each of these metrics (primary
    keys; none: any), and in no open queue for all of them. Two queries, or none without answers."""
    if not certain_answers:
        return set()
    required_metrics = set(metric_ids)
    ratings = Rating.objects.filter(is_standing(), answer__in=certain_answers, phase="initial", source="review")
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
