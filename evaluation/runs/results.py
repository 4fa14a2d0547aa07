"""Results of a run under the names of the generation kind: means of metrics and values by answer, from judges and rules
only. Also lists the parts of a run that have newer versions; a run keeps the versions it was created with."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.core.cache import cache
from django.db.models import Avg, Count, Max, Prefetch, QuerySet

from evaluation.criteria.rubrics import RubricScope, active_rubrics, rubric_scope
from evaluation.models import (
    Answer,
    JudgeVersion,
    ProfileVersion,
    QuestionSet,
    RubricVersion,
    Run,
    RunJudge,
    Score,
    WorkUnit,
)
from evaluation.scoring.scores import IMPORTED, counting_scores, current_scores, metric_coverage

#: Names of the generation kind for the means of a run and for the values of an answer.
FAITHFULNESS, RELEVANCY = "generation_faithfulness", "answer_relevancy"
GENERATION_METRICS = {
    "precision": "precision_at_k",
    "recall": "recall_at_k",
    "hit": "hit_at_k",
    "reciprocal_rank": "reciprocal_rank",
    "faithfulness": FAITHFULNESS,
    "answer_relevancy": RELEVANCY,
}


@dataclass(frozen=True, slots=True)
class MetricFigures:
    """A metric over the answers of a run: the mean of the scored results on the metric's scale (``None`` for classes
    and without scores), and the counts of results by status."""

    mean: float | None
    scored: int
    failed: int
    not_applicable: int


def run_figures(run: Run) -> dict[str, MetricFigures]:
    """The figures of each metric of the run, by name. The value of an answer is its mean over repeats.

    Scores are immutable, so their number and the newest id form the cache key."""
    newest = Score.objects.filter(run=run).aggregate(count=Count("pk"), last=Max("pk"))
    key = f"figures-{run.pk}-{run.start_token}-{newest['count']}-{newest['last']}"
    cached: dict[str, MetricFigures] | None = cache.get(key)
    if cached is None:
        cached = _compute_figures(run)
        cache.set(key, cached, timeout=24 * 3600)
    return cached


def _compute_figures(run: Run) -> dict[str, MetricFigures]:
    rows = counting_scores(run).order_by()
    counts = sorted(metric_coverage(run, rows), key=lambda counts_row: counts_row.metric)
    means = {counts_row.metric: counts_row.mean for counts_row in counts}
    # With repeats, an answer has several values, so the mean over answers differs from the mean over scores.
    if run.judges.filter(repeat_count__gt=1).exists():
        means |= _means_over_answers(rows)
    return {row.metric: MetricFigures(means[row.metric], row.scored, row.failed, row.not_applicable) for row in counts}


def _means_over_answers(rows: QuerySet[Score]) -> dict[str, float | None]:
    values: dict[str, list[float]] = defaultdict(list)
    per_answer = rows.filter(value__isnull=False).values_list("metric__name", "answer_id").annotate(Avg("value"))
    for metric, _, mean in per_answer:
        values[metric].append(mean)
    return {metric: statistics.fmean(means) for metric, means in values.items()}


def with_scores(answers: QuerySet[Answer], run: Run) -> QuerySet[Answer]:
    """The answers with their contexts, and all current scores of the run with their findings as ``run_scores``."""
    scores = (
        current_scores(Score.objects.filter(run=run))
        .annotate(imported=IMPORTED)
        .order_by("metric__name", "judge_version_id", "repeat", "id")
    )
    scores = scores.select_related("metric", "judge_version", "rubric_version").prefetch_related("findings")
    return answers.prefetch_related("contexts", Prefetch("scores", queryset=scores, to_attr="run_scores"))


def primary_pairs(run: Run) -> frozenset[tuple[int, int]]:
    """The judge and rubric of each primary judge of the run, by id."""
    return frozenset(run.judges.filter(primary=True).values_list("judge_version_id", "rubric_version_id"))


def counts_in_figures(score: Any, primary: Collection[tuple[int, int]]) -> bool:
    """Return whether a score of :func:`with_scores` counts in the run's figures; as :func:`counting_scores`."""
    if score.judge_version_id is None:
        return not score.author or bool(score.imported)
    return (score.judge_version_id, score.rubric_version_id) in primary


def generation_values(run: Run, answers: Collection[Answer]) -> dict[int, Mapping[str, float | None]]:
    """The values by answer id under the names of the generation kind; ``None`` if there is none."""
    values_by_answer: dict[tuple[int, str], list[float]] = defaultdict(list)
    rows = counting_scores(run).filter(
        answer__in=[answer_row.pk for answer_row in answers],
        metric__name__in=GENERATION_METRICS.values(),
        value__isnull=False,
    )
    for answer, metric, value in rows.values_list("answer_id", "metric__name", "value"):
        values_by_answer[answer, metric].append(value or 0.0)
    means = {key: statistics.fmean(values) for key, values in values_by_answer.items()}
    return {
        answer_row.pk: {name: means.get((answer_row.pk, metric)) for name, metric in GENERATION_METRICS.items()}
        for answer_row in answers
    }


def updated_at(run: Run) -> datetime:
    """The time of the run's last event or ended unit."""
    unit = WorkUnit.objects.filter(run=run).aggregate(last=Max("finished_at"))["last"]
    event = run.events.aggregate(last=Max("created_at"))["last"]
    return max(moment for moment in (run.created_at, run.started_at, run.finished_at, unit, event) if moment)


class VersionedPart(StrEnum):
    """A versioned part of a run."""

    PROFILE = "profile"
    QUESTION_SET = "question_set"
    JUDGE = "judge"
    RUBRIC = "rubric"


@dataclass(frozen=True, slots=True)
class Drift:
    """A part of the run of which a newer version exists; the run keeps using ``used``."""

    part: VersionedPart
    name: str
    used: int
    newest: int


def drift(run: Run) -> tuple[Drift, ...]:
    """The parts of the run that have a newer version."""
    drifts = [
        _version_drift(VersionedPart.PROFILE, run.profile_version, "project_id", "name"),
        _version_drift(VersionedPart.QUESTION_SET, run.answer_set.question_set, "project_id", "name"),
    ]
    run_judges = list(run.judges.select_related("judge_version", "rubric_version"))
    in_force = active_rubrics(run.project_id)
    for judge in run_judges:
        drifts.append(_version_drift(VersionedPart.JUDGE, judge.judge_version, "project_id", "name"))
        drifts.append(_rubric_drift(judge, in_force))
    return tuple(dict.fromkeys(part_drift for part_drift in drifts if part_drift))


def _rubric_drift(run_judge: RunJudge, in_force: Mapping[RubricScope, RubricVersion]) -> Drift | None:
    """Another version than the one used is active for the judge, or a newer shared version exists."""
    used = run_judge.rubric_version
    newest = in_force.get(rubric_scope(run_judge.judge_version, used.family, used.language))
    if newest is None:
        shared_versions = RubricVersion.objects.filter(project=None, family=used.family, language=used.language)
        newest = shared_versions.order_by("-version").first()
    return (
        Drift(VersionedPart.RUBRIC, used.family, used.version, newest.version)
        if newest and newest.pk != used.pk
        else None
    )


def _version_drift(
    part: VersionedPart, used: ProfileVersion | QuestionSet | JudgeVersion, *shared_columns: str
) -> Drift | None:
    """Compare with the newest version; ``shared_columns`` are equal in all versions."""
    versions = type(used)._default_manager.filter(**{name: getattr(used, name) for name in shared_columns})
    newest = versions.aggregate(newest=Max("version"))["newest"] or 0
    return Drift(part, used.name, used.version, newest) if newest > used.version else None
