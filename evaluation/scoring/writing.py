"""The one place that turns results into score rows, together with the end of the unit that gave them; which scores
count, and how many of each status a run has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from evaluation.core.canonical import content_hash
from evaluation.core.samples import Result, Status
from evaluation.models import Finding, MetricDefinition, Run, Score, WorkUnit
from evaluation.storage import bulk
from evaluation.work import units

FAILED_SHARE_LIMIT = 0.10  # above it a run is incomplete: no headline, only bounds


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many answers a metric could be computed for."""

    metric: str
    scored: int
    failed: int
    not_applicable: int

    @property
    def failed_share(self) -> float:
        """Failed results among those that should have been scored, 0 where there were none."""
        due = self.scored + self.failed
        return self.failed / due if due else 0.0


def current(scores: QuerySet[Score]) -> QuerySet[Score]:
    """Of several rounds with one origin, the scores of the highest."""
    newer = Score.objects.filter(
        origin=OuterRef("origin"), metric_id=OuterRef("metric_id"), round__gt=OuterRef("round")
    )
    return scores.filter(~Exists(newer))


def counting(run: Run) -> QuerySet[Score]:
    """The scores that count in a run: rules and the primary judge of each rubric, newest round, no imported ones."""
    primary = run.judges.filter(primary=True).values_list("judge_version_id", "rubric_version_id")
    judged = Q(judge_version__isnull=True, author="")
    for judge_id, rubric_id in primary:
        judged |= Q(judge_version_id=judge_id, rubric_version_id=rubric_id)
    return current(Score.objects.filter(run=run)).filter(judged)


#: :func:`counting` in SQL: a condition on a score ``s`` of one run.
COUNTING = """
(s.judge_version_id IS NULL AND s.author = '' OR EXISTS (
  SELECT 1 FROM evaluation_runjudge p WHERE p.run_id = s.run_id AND p."primary"
  AND p.judge_version_id = s.judge_version_id AND p.rubric_version_id = s.rubric_version_id))
AND NOT EXISTS (
  SELECT 1 FROM evaluation_score n WHERE n.origin = s.origin AND n.metric_id = s.metric_id AND n.round > s.round)
"""


def coverage(run: Run, counted: QuerySet[Score] | None = None) -> list[Coverage]:
    """Coverage of each metric of the run, by name. ``counted`` is :func:`counting` of it where that is at hand."""
    rows = (
        (counting(run) if counted is None else counted)
        .values("metric__name")
        .annotate(
            scored=Count("id", filter=Q(status="scored")),
            failed=Count("id", filter=Q(status="failed")),
            left_out=Count("id", filter=Q(status="not_applicable")),
        )
        .order_by("metric__name")
    )
    return [Coverage(row["metric__name"], row["scored"], row["failed"], row["left_out"]) for row in rows]


def incomplete_metrics(run: Run) -> list[Coverage]:
    """Metrics of which too many results failed for a headline."""
    return [c for c in coverage(run) if c.failed_share > FAILED_SHARE_LIMIT]


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
        Finding(score=score, position=position, **asdict(finding))
        for score, (_, result) in zip(scores, rows, strict=True)
        for position, finding in enumerate(result.findings)
    )


def _scored_before(origins: Sequence[str]) -> set[tuple[str, int]]:
    """Origin and metric of the scores that need no second one."""
    if not origins:
        return set()
    rows = Score.objects.filter(origin__in=origins, status=Status.SCORED)
    return set(rows.values_list("origin", "metric_id"))


def _score(unit: WorkUnit, origin: str, answer_id: int, metric: MetricDefinition, result: Result, at: datetime) -> Row:
    judge = unit.run_judge
    return (
        *(at, unit.run_id, answer_id, metric.pk, unit.pk, origin, unit.round, unit.repeat),
        *(judge.judge_version_id if judge else None, judge.rubric_version_id if judge else None, ""),
        *(str(result.status), result.value, result.label, result.reason, dict(result.detail)),
    )
