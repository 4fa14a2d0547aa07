"""The one place that turns results into score rows, together with the end of the unit that gave them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from evaluation.core import samples
from evaluation.core.canonical import content_hash
from evaluation.core.samples import Result, Status
from evaluation.models import Finding, MetricDefinition, Score, WorkUnit
from evaluation.storage import bulk
from evaluation.work import units

_FIELDS = (
    *("created_at", "run_id", "answer_id", "metric_id", "unit_id", "origin", "round", "repeat"),
    *("judge_version_id", "rubric_version_id", "author", "status", "value", "label", "reason", "detail"),
)
Row = tuple[Any, ...]


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
    """Identifies the unit's scores over all its rounds: run, unit key and repeat. What is embedded for a judge is the
    end of that judge's step: whichever of the two units ends it gives the same score."""
    step = unit.needs if unit.kind == WorkUnit.Kind.EMBED and unit.needs is not None else unit
    return content_hash([unit.run_id, step.key, unit.repeat])


def write(outcomes: Sequence[Outcome]) -> int:
    """End each unit and insert its scores, all in one transaction; how many units were still held.

    A unit whose claim was lost meanwhile writes nothing: whoever holds it now will. In a later round only the
    metrics that are not scored yet are written, so that a retry never replaces a good score.
    """
    by_unit, now = {outcome.unit: outcome for outcome in outcomes}, timezone.now()
    with transaction.atomic():
        kept = [by_unit[unit] for unit in units.end({o.unit: o.failure for o in outcomes})]
        origins = {outcome.unit: origin_of(outcome.unit) for outcome in kept}
        good = _scored_before([origins[o.unit] for o in kept if o.unit.round])
        rows = [
            (_score(outcome.unit, origin, answer_id, metric, result, now), result)
            for outcome in kept
            if (answer_id := outcome.unit.answer_id) is not None and (origin := origins[outcome.unit])
            for metric, result in outcome.results.items()
            if (origin, metric.pk) not in good
        ]
        bulk.insert(Score, _FIELDS, [row for row, result in rows if not result.findings])
        _insert_with_findings([(row, result) for row, result in rows if result.findings])
    return len(kept)


def _insert_with_findings(rows: Sequence[tuple[Row, Result]]) -> None:
    """Findings refer to their scores, whose ids have to be known."""
    scores = Score.objects.bulk_create(Score(**dict(zip(_FIELDS, row, strict=True))) for row, _ in rows)
    Finding.objects.bulk_create(
        _finding(score, position, finding)
        for score, (_, result) in zip(scores, rows, strict=True)
        for position, finding in enumerate(result.findings)
    )


def _scored_before(origins: Sequence[str]) -> set[tuple[str, int]]:
    """Origin and metric of the scores that need no second one."""
    if not origins:
        return set()
    rows = Score.objects.filter(origin__in=origins, status=Status.SCORED)
    return set(rows.values_list("origin", "metric_id"))


def _finding(score: Score, position: int, found: samples.Finding) -> Finding:
    return Finding(
        score=score,
        kind=found.kind,
        position=position,
        text=found.text,
        verdict=found.verdict,
        context=found.context,
        start=found.start,
        end=found.end,
        approximate=found.approximate,
        quote=found.quote,
        quote_start=found.quote_start,
        quote_end=found.quote_end,
        reason=found.reason,
    )


def _score(unit: WorkUnit, origin: str, answer_id: int, metric: MetricDefinition, result: Result, at: datetime) -> Row:
    judge = unit.run_judge
    return (
        *(at, unit.run_id, answer_id, metric.pk, unit.pk, origin, unit.round, unit.repeat),
        *(judge.judge_version_id if judge else None, judge.rubric_version_id if judge else None, ""),
        *(str(result.status), result.value, result.label, result.reason, dict(result.detail)),
    )
