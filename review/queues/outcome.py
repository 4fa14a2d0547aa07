"""Overall score that a run would have once every answer of a planned queue is rated.

The ratings are made up, with the judge's values; everything else is computed as the run page will compute it. Whether a
score can be corrected depends on the sample alone, so the page of a new queue promises what the results will show."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from django.utils import timezone

from evaluation.core.errors import DomainError
from evaluation.core.metric_specs import JUDGED_KINDS
from evaluation.models import MetricDefinition, Run
from review.evidence.carried import CarriedRatings, RatingOrigin, equal_answers
from review.evidence.experts import ExpertRating
from review.evidence.sampling import QueueDraw
from review.evidence.scorers import AnswerMetricKey
from review.models.queue_spec import Mode, QueueSpec
from review.models.queues import FIRST_OCCASION
from review.queues.design import (
    ExpectedInterval,
    SampleDesign,
    combined_half_width,
    expected_interval,
    unrated_range,
)
from review.queues.draws import RunSample
from review.queues.sampling import ParamsByRun, QueuePlan, plan_queue, split_size
from review.reports.estimates import corrected_score
from review.reports.figure import Figure
from review.reports.inputs import Correction, ReportInputs, labels_by_metric
from review.statistics.correction.outcome import Target, WithheldReason
from review.statistics.sampling.draw import ALL
from review.statistics.sampling.member import Inclusion, Strategy

# Key of the queue that does not exist yet, and of its assignments.
_PLANNED = -1
_RATER = "planned"
MAX_TRIES = 8
# Reasons that more ratings of a random sample remove.
_MORE_RATINGS_HELP = {
    str(reason)
    for reason in (WithheldReason.TOO_FEW_LABELS, WithheldReason.SMALL_FRAME, WithheldReason.STRATUM_TOO_FEW_LABELS)
}


def scores_after_review(
    bases: Mapping[int, ReportInputs], metrics: Sequence[MetricDefinition], spec: QueueSpec, plan: QueuePlan
) -> dict[int, Figure]:
    """Corrected overall score of each run, for questions like these, once the queue is rated: its value means nothing,
    but whether it is withheld, and why, will hold. Assisted ratings change nothing."""
    draws = [draw for run_sample in plan.samples.values() for draw in _queue_draws(run_sample)]
    metrics_by_answer = {
        answer: [metric for metric in metrics if not item.metric_ids or metric.pk in item.metric_ids]
        for answer, item in plan.items.items()
    }
    return {
        pk: corrected_score(basis, Target.QUESTIONS_LIKE_THESE)
        if spec.mode is Mode.ASSISTED
        else _score_with_ratings(
            _with_equal_answers(basis, bases, metrics_by_answer), metrics_by_answer, draws, metrics
        )
        for pk, basis in bases.items()
    }


def _with_equal_answers(
    basis: ReportInputs, bases: Mapping[int, ReportInputs], metrics_by_answer: Mapping[int, Sequence[MetricDefinition]]
) -> ReportInputs:
    """Add the ratings that the planned queue will give to answers of earlier answer sets, where the run has equal
    answers: they will stand for these. Two queries for each other answer set."""
    answer_set = basis.run.answer_set_id
    earlier_runs = {other.run.answer_set_id: other.run.pk for other in bases.values()}
    planned: dict[AnswerMetricKey, CarriedRatings] = {}
    for earlier_set, run_id in earlier_runs.items():
        if earlier_set >= answer_set:
            continue
        for answer, earlier in equal_answers(answer_set, earlier_set):
            for metric in metrics_by_answer.get(earlier, ()):
                rating = _rating(basis, answer, metric)
                origin = RatingOrigin(earlier, earlier_set, run_id, "", (), rating.at)
                planned[answer, metric.pk] = CarriedRatings(origin, [rating], [rating])
    return replace(basis, evidence=replace(basis.evidence, standing={**planned, **basis.evidence.standing}))


def waiting_elsewhere(bases: Mapping[int, ReportInputs], metrics: Sequence[MetricDefinition], plan: QueuePlan) -> int:
    """Number of answers that earlier draws took and that are neither rated nor part of the planned queue. The expected
    interval counts on them."""
    waiting = {
        answer
        for basis in bases.values()
        for metric in metrics
        for answer in basis.samples.unserved_answers(metric.pk, basis.evidence.ratings_by_metric.get(metric.pk, ()))
    }
    return len(waiting - plan.items.keys())


def score_after_waiting(basis: ReportInputs) -> Figure:
    """Corrected overall score once all answers that earlier draws took are rated, as :func:`scores_after_review`."""
    metrics_by_answer: dict[int, list[MetricDefinition]] = {}
    for pk, metric in basis.evidence.metrics.items():
        for answer in basis.samples.unserved_answers(pk, basis.evidence.ratings_by_metric.get(pk, ())):
            metrics_by_answer.setdefault(answer, []).append(metric)
    return _score_with_ratings(basis, metrics_by_answer, [], [])


def score_if_all_rated(basis: ReportInputs) -> Figure:
    """Corrected overall score if experts rated every answer that the system gave, as :func:`scores_after_review`."""
    answers = [key for key, answer in basis.evidence.answers.items() if not answer.failed]
    metrics = [metric for metric in basis.evidence.metrics.values() if metric.kind in JUDGED_KINDS]
    draw = QueueDraw(_PLANNED, None, False, dict.fromkeys(answers, Inclusion(1.0, ALL, True)))
    return _score_with_ratings(basis, dict.fromkeys(answers, metrics), [draw], metrics)


def _score_with_ratings(
    basis: ReportInputs,
    metrics_by_answer: Mapping[int, Sequence[MetricDefinition]],
    draws: Sequence[QueueDraw],
    metrics: Sequence[MetricDefinition],
) -> Figure:
    """Corrected overall score with more ratings and draws."""
    evidence = basis.evidence
    ratings = [
        _rating(basis, answer, metric)
        for answer, rated_metrics in metrics_by_answer.items()
        if answer in evidence.answers and answer not in evidence.sealed
        for metric in rated_metrics
    ]
    own_draws = [draw for draw in draws if not draw.members.keys().isdisjoint(evidence.answers)]
    evidence = replace(
        evidence,
        ratings=[*evidence.ratings, *ratings],
        metrics=dict(evidence.metrics) | {metric.pk: metric for metric in metrics},
    )
    samples = basis.samples.with_queue(own_draws, [metric.pk for metric in metrics])
    correction = Correction(evidence, labels_by_metric(evidence, samples), basis.correction.acceptance)
    return corrected_score(
        replace(basis, evidence=evidence, samples=samples, correction=correction), Target.QUESTIONS_LIKE_THESE
    )


def _queue_draws(run_sample: RunSample) -> list[QueueDraw]:
    return [
        QueueDraw(
            _PLANNED,
            planned.metric.pk if planned.metric else None,
            planned.after_looking,
            {answer.key: Inclusion(answer.probability, answer.stratum, answer.sampled) for answer in planned.answers},
        )
        for planned in run_sample.draws
    ]


def _rating(basis: ReportInputs, answer_id: int, metric: MetricDefinition) -> ExpertRating:
    """Rating with the judge's value, or the lowest one if there is none."""
    scale, judged = metric.read_scale(), basis.evidence.scored.get(metric.pk, {}).get(answer_id)
    value = judged.value if judged else None
    label = (judged.label if judged else None) or (scale.labels[0] if scale.labels else None)
    if label is None and value is None:
        value = scale.low
    return ExpertRating(
        pk=0,
        answer_id=answer_id,
        metric_id=metric.pk,
        rater=_RATER,
        imported=False,
        phase="initial",
        blind=True,
        value=None if scale.labels else value,
        label=label if scale.labels else None,
        cannot_judge=False,
        sampling="",
        probability=None,
        occasion=FIRST_OCCASION,
        assignment_id=_PLANNED,
        queue_id=_PLANNED,
        example=False,
        at=timezone.now(),
    )


def expected_after_review(
    design: SampleDesign, figure: Figure, plan: QueuePlan, share: float
) -> ExpectedInterval | None:
    """Expected interval of a run's score once the queue is rated, which is ``figure`` then; ``None`` if it is withheld.

    ``share``: as for :func:`expected_interval`."""
    run_sample = plan.samples.get(design.basis.run.pk)
    if run_sample is None or figure.withheld:
        return None
    expected = expected_interval(design, run_sample.sample, share)
    if expected is None:
        return None
    half_width = combined_half_width(expected.half_width, design.earlier_half_width)
    return replace(expected, half_width=half_width + unrated_range(design.basis, figure))


def sufficient_size(
    bases: Mapping[int, ReportInputs],
    runs: Sequence[Run],
    metrics: Sequence[MetricDefinition],
    spec: QueueSpec,
    plan: QueuePlan,
    params: ParamsByRun,
    reviewer_ids: Sequence[int],
) -> int | None:
    """Number of answers to draw until the overall score of every run can be corrected; ``plan`` is for ``spec``.

    ``None`` if no number does. Larger samples are tried by the rule that decides in the end: the number is enough, and
    near the smallest."""
    if not spec.strategy.has_probabilities or spec.strategy is Strategy.ALL or spec.share is not None:
        return None
    shares = {run.pk: size for run, size in zip(runs, split_size(runs, plan.frame_size), strict=True)}
    for _ in range(MAX_TRIES):
        figures = scores_after_review(bases, metrics, spec, plan)
        withheld_figures = {pk: figure for pk, figure in figures.items() if figure.withheld}
        if not withheld_figures:
            return spec.size
        missing = {pk: _missing_labels(figure) for pk, figure in withheld_figures.items()}
        if spec.size >= plan.frame_size or not all(missing.values()):
            return None
        more = max(
            (count or 0) * plan.frame_size / max(1, shares[pk]) / spec.share_per_criterion(len(metrics))
            for pk, count in missing.items()
        )
        # Quicker steps where strata, not the total, are short of ratings.
        more = max(more, spec.size / 8.0)
        spec = spec.model_copy(update={"size": min(plan.frame_size, spec.size + math.ceil(more))})
        try:
            plan = plan_queue(runs, metrics, spec, params, seed=spec.seed or 0, reviewer_ids=reviewer_ids)
        except DomainError:
            return None
    return None


def _missing_labels(figure: Figure) -> int | None:
    """Ratings that the least rated part of a withheld score lacks; ``None`` if more ratings would not help."""
    missing = figure.extra.get("missing") or {}
    parts = list((missing.get("components") or {}).values()) or [{"reason": figure.withheld, **missing}]
    if any(part["reason"] not in _MORE_RATINGS_HELP for part in parts):
        return None
    return max(int(part.get("labels") or sum((part.get("strata") or {}).values())) for part in parts) or None
