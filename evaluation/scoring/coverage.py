"""Which scores count, and how many of each status a run has."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from evaluation.models import Run, Score

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


def coverage(run: Run) -> list[Coverage]:
    """Coverage of each metric of the run, by name."""
    rows = (
        counting(run)
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
