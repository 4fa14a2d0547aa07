"""A run as source 002 reads it: means of its metrics, and the answers with their own values. Judge-only figures.

And what has changed since a run was made. It goes on with what it was made with; this only says so.
"""

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

from evaluation.criteria.rubrics import Slot, all_in_force, slot_of
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
from evaluation.scoring.writing import IMPORTED, counting, coverage, current

#: Names of source 002 for the means of a run, and for the values of one answer.
FAITHFULNESS, RELEVANCY = "generation_faithfulness", "answer_relevancy"
VALUES = {
    "precision": "precision_at_k",
    "recall": "recall_at_k",
    "hit": "hit_at_k",
    "reciprocal_rank": "reciprocal_rank",
    "faithfulness": FAITHFULNESS,
    "answer_relevancy": RELEVANCY,
}


@dataclass(frozen=True, slots=True)
class MetricFigures:
    """A metric over the answers of a run: the mean of the scored ones on the metric's scale (``None`` for classes and
    without any), and the counts of results by status."""

    mean: float | None
    scored: int
    failed: int
    not_applicable: int


def figures(run: Run) -> dict[str, MetricFigures]:
    """The figures of every metric of the run, by name. The value of an answer is its mean over repeats.

    Scores are never changed, so that their number and the newest of them name what there is: who reads the answers of a
    large run page by page waits once for the sums of them all.
    """
    newest = Score.objects.filter(run=run).aggregate(count=Count("pk"), last=Max("pk"))
    key = f"figures-{run.pk}-{run.start_token}-{newest['count']}-{newest['last']}"
    found: dict[str, MetricFigures] | None = cache.get(key)
    if found is None:
        found = _figures(run)
        cache.set(key, found, timeout=24 * 3600)
    return found


def _figures(run: Run) -> dict[str, MetricFigures]:
    rows = counting(run).order_by()
    counts = sorted(coverage(run, rows), key=lambda each: each.metric)
    means = {one.metric: one.mean for one in counts}
    # With repeats an answer has several values, so the mean over answers is not the mean over scores.
    if run.judges.filter(repeat_count__gt=1).exists():
        means |= _means_over_answers(rows)
    return {c.metric: MetricFigures(means[c.metric], c.scored, c.failed, c.not_applicable) for c in counts}


def _means_over_answers(rows: QuerySet[Score]) -> dict[str, float | None]:
    values: dict[str, list[float]] = defaultdict(list)
    per_answer = rows.filter(value__isnull=False).values_list("metric__name", "answer_id").annotate(Avg("value"))
    for metric, _, mean in per_answer:
        values[metric].append(mean)
    return {metric: statistics.fmean(means) for metric, means in values.items()}


def with_scores(answers: QuerySet[Answer], run: Run) -> QuerySet[Answer]:
    """The answers with their contexts, and with every current score of the run and its findings as ``run_scores``."""
    scores = (
        current(Score.objects.filter(run=run))
        .annotate(imported=IMPORTED)
        .order_by("metric__name", "judge_version_id", "repeat", "id")
    )
    scores = scores.select_related("metric", "judge_version", "rubric_version").prefetch_related("findings")
    return answers.prefetch_related("contexts", Prefetch("scores", queryset=scores, to_attr="run_scores"))


def primary_pairs(run: Run) -> frozenset[tuple[int, int]]:
    """The judge and rubric of each primary judge of the run, by id."""
    return frozenset(run.judges.filter(primary=True).values_list("judge_version_id", "rubric_version_id"))


def enters(score: Any, primary: Collection[tuple[int, int]]) -> bool:
    """Whether a score of :func:`with_scores` enters the figures of its run, as :func:`counting` has it."""
    if score.judge_version_id is None:
        return not score.author or bool(score.imported)
    return (score.judge_version_id, score.rubric_version_id) in primary


def values_of(run: Run, answers: Collection[Answer]) -> dict[int, Mapping[str, float | None]]:
    """By answer id, the values under the names of source 002; ``None`` where there is none."""
    found: dict[tuple[int, str], list[float]] = defaultdict(list)
    rows = counting(run).filter(
        answer__in=[a.pk for a in answers], metric__name__in=VALUES.values(), value__isnull=False
    )
    for answer, metric, value in rows.values_list("answer_id", "metric__name", "value"):
        found[answer, metric].append(value or 0.0)
    means = {key: statistics.fmean(values) for key, values in found.items()}
    return {a.pk: {name: means.get((a.pk, metric)) for name, metric in VALUES.items()} for a in answers}


def updated_at(run: Run) -> datetime:
    """When anything last happened to the run: an event, a unit that ended."""
    unit = WorkUnit.objects.filter(run=run).aggregate(last=Max("finished_at"))["last"]
    event = run.events.aggregate(last=Max("created_at"))["last"]
    return max(moment for moment in (run.created_at, run.started_at, run.finished_at, unit, event) if moment)


class Part(StrEnum):
    """What a run is made of that has versions."""

    PROFILE = "profile"
    QUESTION_SET = "question_set"
    JUDGE = "judge"
    RUBRIC = "rubric"


@dataclass(frozen=True, slots=True)
class Drift:
    """A part of the run of which a newer version exists; the run keeps using ``used``."""

    part: Part
    name: str
    used: int
    newest: int


def drift(run: Run) -> tuple[Drift, ...]:
    """The parts of the run that have a newer version now."""
    found = [
        _drift(Part.PROFILE, run.profile_version, "project_id", "name"),
        _drift(Part.QUESTION_SET, run.answer_set.question_set, "project_id", "name"),
    ]
    seats = list(run.judges.select_related("judge_version", "rubric_version"))
    now = all_in_force(run.project_id)
    for judge in seats:
        found.append(_drift(Part.JUDGE, judge.judge_version, "project_id", "name"))
        found.append(_rubric_drift(judge, now))
    return tuple(dict.fromkeys(one for one in found if one))


def _rubric_drift(seat: RunJudge, now: Mapping[Slot, RubricVersion]) -> Drift | None:
    """Another version than the one used is in force for the judge ``now``, or a newer one of everybody's is there."""
    used = seat.rubric_version
    newest = now.get(slot_of(seat.judge_version, used.family, used.language))
    if newest is None:
        everybodys = RubricVersion.objects.filter(project=None, family=used.family, language=used.language)
        newest = everybodys.order_by("-version").first()
    return Drift(Part.RUBRIC, used.family, used.version, newest.version) if newest and newest.pk != used.pk else None


def _drift(part: Part, used: ProfileVersion | QuestionSet | JudgeVersion, *same: str) -> Drift | None:
    """``same``: the columns that all versions of it share."""
    versions = type(used)._default_manager.filter(**{name: getattr(used, name) for name in same})
    newest = versions.aggregate(newest=Max("version"))["newest"] or 0
    return Drift(part, used.name, used.version, newest) if newest > used.version else None
