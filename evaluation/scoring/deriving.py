"""Derived metrics: computed from the other results of the same answer when no work is open any more.

They belong to no unit. Deriving again changes nothing where the results are the same; where they have changed (after a
retry) a row of the next round supersedes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluation.core.canonical import content_hash
from evaluation.core.registry import Kind
from evaluation.core.samples import Result
from evaluation.core.scales import Scale
from evaluation.judges.definitions import definitions
from evaluation.models import MetricDefinition, Run, Score
from evaluation.profiles.derived.answer_overall import SPEC as ANSWER_OVERALL
from evaluation.profiles.derived.answer_overall import answer_overall, has_answer_overall
from evaluation.profiles.derived.catalogue import DERIVED_METRICS
from evaluation.profiles.spec import ProfileSpec
from evaluation.scoring.coverage import counting
from evaluation.scoring.folding import Row, folded

BATCH = 1000


@dataclass(frozen=True, slots=True)
class _Found:
    """The results of one answer by metric, repeats folded, and the category of its question."""

    category: str
    results: dict[str, Result]


def derive(run: Run) -> int:
    """Compute the derived metrics of the run's profile and insert what is new; how many rows that were.

    Two workers may do it at once: the constraint on a score's origin keeps one row of each.
    """
    profile = ProfileSpec.model_validate(run.profile_version.spec)
    wanted = [metric for metric in DERIVED_METRICS if metric.spec.name in profile.metrics]
    overall = has_answer_overall(profile)
    if not (wanted or overall) or not Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).exists():
        return 0
    rows = definitions([*(metric.spec.name for metric in wanted), *([ANSWER_OVERALL.name] if overall else [])])
    found, scales = _results(run)
    made: dict[tuple[int, str], Result] = {}
    for answer_id, one in found.items():
        for metric in wanted:
            made[answer_id, metric.spec.name] = one.results[metric.spec.name] = metric.compute(one.results)
            scales[metric.spec.name] = metric.spec.scale
        if overall:
            made[answer_id, ANSWER_OVERALL.name] = answer_overall(profile, one.results, scales, one.category)
    return _insert(run, rows, made)


def _results(run: Run) -> tuple[dict[int, _Found], dict[str, Scale]]:
    """The counting results of the run by answer, and the scales of their metrics. One query."""
    scales: dict[str, Scale] = {}
    repeats: dict[int, dict[str, list[Row]]] = {}
    categories: dict[int, str] = {}
    rows = counting(run).exclude(metric__kind=Kind.DERIVED).order_by("answer_id", "id")
    for answer_id, category, name, scale, *row in rows.values_list(
        *("answer_id", "answer__question__category", "metric__name", "metric__scale"),
        *("status", "value", "label", "reason"),
    ).iterator(chunk_size=5000):
        if name not in scales:
            scales[name] = Scale.parse(scale)
        categories[answer_id] = category
        status, value, label, reason = row
        repeats.setdefault(answer_id, {}).setdefault(name, []).append((status, value, label, reason))
    found = {
        answer_id: _Found(categories[answer_id], {name: folded(several) for name, several in by_name.items()})
        for answer_id, by_name in repeats.items()
    }
    return found, scales


def _insert(run: Run, metrics: Mapping[str, MetricDefinition], made: Mapping[tuple[int, str], Result]) -> int:
    names = {row.pk: name for name, row in metrics.items()}
    newest: dict[tuple[int, str], Score] = {}
    earlier = Score.objects.filter(run=run, metric_id__in=names, unit=None, author="").order_by("round")
    for score in earlier.iterator(chunk_size=5000):
        newest[score.answer_id, names[score.metric_id]] = score
    rows = []
    for (answer_id, name), result in made.items():
        before = newest.get((answer_id, name))
        if before is None or _said(before) != (result.status, result.value, result.reason):
            rows.append(_score(run, answer_id, metrics[name], result, before.round + 1 if before else 0))
    Score.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
    return len(rows)


def _said(score: Score) -> tuple[str, float | None, str]:
    return score.status, score.value, score.reason


def _score(run: Run, answer_id: int, metric: MetricDefinition, result: Result, number: int) -> Score:
    return Score(
        run=run,
        answer_id=answer_id,
        metric=metric,
        origin=content_hash(["derived", run.pk, answer_id]),
        round=number,
        status=result.status,
        value=result.value,
        reason=result.reason,
        detail=dict(result.detail),
    )
