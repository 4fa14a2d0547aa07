"""Sample of a new queue from all its runs, before anything is stored: the preview and the queue draw by it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from evaluation.core.errors import DomainError
from evaluation.models import MetricDefinition, Run
from review.evidence.answers import ring_offset
from review.evidence.effective import standing_answers
from review.models import Rating, ReviewItem, ReviewQueue
from review.models.queue_spec import Distribution, QueueSpec
from review.queues.draws import RunSample, plan_sample, sampling_frame
from review.statistics.sampling.member import DrawParams, Strategy
from review.statistics.standing import recheck_size

# One set of parameters for all runs, or one per run by primary key.
ParamsByRun = DrawParams | Mapping[int, DrawParams] | None

_NOTHING_TO_RATE = {
    Strategy.HAND_PICKED: "nothing_picked",
    Strategy.SECOND_OPINION: "nothing_rated_once",
    Strategy.RECHECK: "nothing_to_recheck",
}


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    """An answer that one person rated: the metrics rated, and the reviewers who have not rated it, by primary key."""

    metric_ids: list[int]
    reviewer_ids: frozenset[int]


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """An item to create: the run whose judge is shown, and the metrics to rate; an empty list means all."""

    run_id: int
    metric_ids: list[int]


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """Samples of a queue by run, the seed of each, and the items to create by answer.

    ``frame_size`` counts the answers that could be drawn. ``second_opinions`` is empty unless the strategy asks for
    them."""

    samples: Mapping[int, RunSample]
    seeds: Mapping[int, int]
    items: Mapping[int, PlannedItem]
    frame_size: int
    second_opinions: Mapping[int, SecondOpinion]

    @property
    def follows_ratings(self) -> bool:
        """Return whether earlier draws of any run have ratings."""
        return any(draw.after_looking for run_sample in self.samples.values() for draw in run_sample.draws)


def plan_queue(
    runs: Sequence[Run],
    metrics: Sequence[MetricDefinition],
    spec: QueueSpec,
    params: ParamsByRun,
    *,
    seed: int,
    reviewer_ids: Collection[int],
) -> QueuePlan:
    """Draw from each run, without storing anything. The first run takes the queue's own seed; seeds of the others
    derive from it, so that draws are independent.

    :raises DomainError: ``size_below_one``, ``nothing_picked``, ``nothing_rated_once``, ``nothing_to_recheck``,
    ``all_rated`` or ``second_opinion_pool``; as draws."""
    if spec.strategy is not Strategy.RECHECK and not _contributes_answers(spec.size, spec.strategy):
        raise DomainError("size_below_one", size=spec.size)
    second_opinions: dict[int, SecondOpinion] = {}
    if spec.strategy is Strategy.SECOND_OPINION:
        if spec.distribution is not Distribution.POOL:
            raise DomainError("second_opinion_pool")
        second_opinions = _find_second_opinions(runs, metrics, reviewer_ids, spec.reviews_needed)
    rated_metrics = {answer: opinion.metric_ids for answer, opinion in second_opinions.items()}
    samples: dict[int, RunSample] = {}
    seeds: dict[int, int] = {}
    items: dict[int, PlannedItem] = {}
    frame_answers: set[int] = set()
    for run, share in zip(runs, split_size(runs, spec.size), strict=True):
        draw_params = params_for_run(run, params) or DrawParams()
        if spec.strategy is Strategy.RECHECK:
            rechecks, share = _find_rechecks(run, metrics)
            rated_metrics |= rechecks
        if spec.strategy.draws_rated:
            draw_params = replace(draw_params, keys=frozenset(rated_metrics.keys() & sampling_frame(run, []).keys))
            share = min(share, len(draw_params.keys))
        if not _contributes_answers(share, spec.strategy):
            frame_answers |= sampling_frame(run, []).keys
            continue
        seeds[run.pk] = ring_offset(seed, -run.pk) if seeds else seed
        same_answers = [
            samples[other.pk] for other in runs if other.pk in samples and other.answer_set_id == run.answer_set_id
        ]
        samples[run.pk] = plan_sample(run, metrics, spec, share, seeds[run.pk], draw_params, same_answers)
        frame_answers.update(answer.key for answer in samples[run.pk].sample)
        for answer, metric_ids in samples[run.pk].metrics_by_answer.items():
            planned_item = items.setdefault(answer, PlannedItem(run.pk, []))
            asked_ids = rated_metrics.get(answer, metric_ids)
            planned_item.metric_ids.extend(pk for pk in asked_ids if pk not in planned_item.metric_ids)
    if not items:
        raise DomainError(_NOTHING_TO_RATE.get(spec.strategy, "all_rated"))
    return QueuePlan(samples, seeds, items, len(frame_answers), second_opinions)


def params_for_run(run: Run, params: ParamsByRun) -> DrawParams | None:
    return params if params is None or isinstance(params, DrawParams) else params.get(run.pk)


def _contributes_answers(share: int, strategy: Strategy) -> bool:
    """Return whether a run contributes answers: with a share below one, only for strategies that ignore the size."""
    return share >= 1 or strategy in {Strategy.ALL, Strategy.HAND_PICKED}


def split_size(runs: Sequence[Run], size: int) -> list[int]:
    """Split ``size`` among the runs in proportion to their frames, by largest remainder."""
    if len(runs) == 1:
        return [size]
    frame_sizes = [len(sampling_frame(run, []).members) for run in runs]
    total = sum(frame_sizes) or 1
    counts = [size * frame_size // total for frame_size in frame_sizes]
    by_remainder = sorted(range(len(runs)), key=lambda i: (-(size * frame_sizes[i] % total), i))
    for i in by_remainder[: max(0, size - sum(counts))]:
        counts[i] += 1
    return counts


def _find_second_opinions(
    runs: Sequence[Run], metrics: Sequence[MetricDefinition], reviewer_ids: Collection[int], reviews_needed: int
) -> dict[int, SecondOpinion]:
    """Find the answers that exactly one person rated blind, and that enough of the reviewers have not rated. Answers
    that wait in an open queue are left out. Two queries."""
    answer_sets = {run.answer_set_id for run in runs}
    rows = Rating.objects.filter(
        answer__answer_set__in=answer_sets, metric__in=metrics, phase="initial", blind=True, cannot_judge=False
    )
    raters: dict[int, set[tuple[int | None, str]]] = {}
    metric_ids: dict[int, set[int]] = {}
    for answer, metric, reviewer, author in rows.order_by().values_list("answer", "metric", "reviewer", "author"):
        raters.setdefault(answer, set()).add((reviewer, author))
        metric_ids.setdefault(answer, set()).add(metric)
    waiting = ReviewItem.objects.filter(
        answer__answer_set__in=answer_sets, state=ReviewItem.State.OPEN, queue__state=ReviewQueue.State.OPEN
    )
    for answer in waiting.values_list("answer", flat=True):
        raters.pop(answer, None)
    people = frozenset(reviewer_ids)
    second_opinions = {}
    for answer, answer_raters in raters.items():
        others = people - {reviewer for reviewer, _ in answer_raters}
        if len(answer_raters) == 1 and len(others) >= reviews_needed:
            asked_ids = [metric.pk for metric in metrics if metric.pk in metric_ids[answer]]
            second_opinions[answer] = SecondOpinion(asked_ids, others)
    return second_opinions


def _find_rechecks(run: Run, metrics: Sequence[MetricDefinition]) -> tuple[dict[int, list[int]], int]:
    """Find the standing answers of a run that nobody rated again: the metrics with a standing rating by answer, and the
    number of answers that are due. Answers that wait in an open queue are left out, and count as rated again."""
    standing_by_metric = standing_answers(run, [metric.pk for metric in metrics])
    metric_ids: dict[int, list[int]] = {}
    for metric, answers in standing_by_metric.items():
        for answer in answers:
            metric_ids.setdefault(answer, []).append(metric)
    ratings = Rating.objects.filter(answer__in=metric_ids, metric__in=metrics, phase="initial")
    waiting = ReviewItem.objects.filter(
        answer__in=metric_ids, state=ReviewItem.State.OPEN, queue__state=ReviewQueue.State.OPEN
    )
    repeated = {*ratings.values_list("answer", flat=True), *waiting.values_list("answer", flat=True)}
    due = recheck_size(len(metric_ids)) - len(repeated)
    return {answer: ids for answer, ids in metric_ids.items() if answer not in repeated}, max(0, due)
