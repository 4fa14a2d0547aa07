"""The one place that turns results into score rows, together with the end of the unit that gave them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from evaluation.canonical import content_hash
from evaluation.samples import Result, Status
from evaluation.scores.models import Finding, MetricDefinition, Score
from evaluation.work import units
from evaluation.work.models import WorkUnit


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a step gave for one unit: a result per metric. ``reason`` is set where the step as a whole failed."""

    unit: WorkUnit
    results: Mapping[MetricDefinition, Result]
    reason: str = ""

    @property
    def failure(self) -> str:
        """Why the unit counts as failed; empty when every metric came out scored or not applicable."""
        failed = [r.reason for r in self.results.values() if r.status is Status.FAILED]
        return self.reason or (failed[0] if failed else "")


def origin_of(unit: WorkUnit) -> str:
    """Identifies the unit's scores over all its rounds: run, unit key and repeat."""
    return content_hash([unit.run_id, unit.key, unit.repeat])


def write(outcomes: Sequence[Outcome]) -> int:
    """End each unit and insert its scores, all in one transaction; how many units were still held.

    A unit whose claim was lost meanwhile writes nothing: whoever holds it now will. In a later round only the
    metrics that are not scored yet are written, so that a retry never replaces a good score.
    """
    with transaction.atomic():
        kept = [o for o in outcomes if (units.fail(o.unit, o.failure) if o.failure else units.finish(o.unit))]
        retried = [origin_of(o.unit) for o in kept if o.unit.round]
        good = set(
            Score.objects.filter(origin__in=retried, status=Status.SCORED).values_list("origin", "metric_id")
            if retried
            else []
        )
        pairs = [
            (_score(outcome.unit, answer_id, metric, result), result)
            for outcome in kept
            if (answer_id := outcome.unit.answer_id) is not None
            for metric, result in outcome.results.items()
            if (origin_of(outcome.unit), metric.pk) not in good
        ]
        Score.objects.bulk_create([score for score, _ in pairs])
        Finding.objects.bulk_create(
            Finding(
                score=score,
                kind=f.kind,
                position=i,
                text=f.text,
                verdict=f.verdict,
                context=f.context,
                start=f.start,
                end=f.end,
                approximate=f.approximate,
                quote=f.quote,
                quote_start=f.quote_start,
                quote_end=f.quote_end,
                reason=f.reason,
            )
            for score, result in pairs
            for i, f in enumerate(result.findings)
        )
    return len(kept)


def _score(unit: WorkUnit, answer_id: int, metric: MetricDefinition, result: Result) -> Score:
    judge = unit.run_judge
    return Score(
        run_id=unit.run_id,
        answer_id=answer_id,
        metric=metric,
        unit=unit,
        origin=origin_of(unit),
        round=unit.round,
        repeat=unit.repeat,
        judge_version_id=judge.judge_version_id if judge else None,
        rubric_version_id=judge.rubric_version_id if judge else None,
        status=result.status,
        value=result.value,
        label=result.label,
        reason=result.reason,
        detail=dict(result.detail),
    )
