"""Scores that need no call: the rules step, derived metrics, and the scores of juries.

Derived metrics and juries are computed from other results of the same answer when no work is open any more. They
belong to no unit. Computing them again changes nothing where those results are the same; where they have changed (after
a retry) a row of the next round supersedes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet, prefetch_related_objects

from evaluation.core.canonical import content_hash
from evaluation.core.registry import Kind, Scale
from evaluation.core.samples import AnswerSpec, QuestionSpec, Result, Status
from evaluation.judges.shipping import define, definitions
from evaluation.judging.catalogue import family_for
from evaluation.judging.formulas import JuryRule, joined
from evaluation.metrics.catalogue import rule_metric_named
from evaluation.models import Answer, MetricDefinition, Run, RunJudge, Score, WorkUnit
from evaluation.profiles.per_answer import ANSWER_OVERALL, DERIVED_METRICS, answer_overall, has_answer_overall
from evaluation.profiles.spec import ProfileSpec, rule_settings
from evaluation.scoring.writing import Outcome, counting, current, write
from evaluation.work.lifecycle import RunConfig

RULE_BATCH = 200
RETRIEVAL_INPUTS = {"latency", "retrieved_ids"}  # what can be computed where the system only retrieved


def score_rules(run: Run, claimed: Sequence[WorkUnit]) -> None:
    """Compute and write the rule metrics of the claimed units."""
    config = RunConfig.model_validate(run.config)
    settings = rule_settings(ProfileSpec.model_validate(run.profile_version.spec), k=config.k)
    metrics = definitions(config.rules)
    prefetch_related_objects(claimed, "answer__question", "answer__contexts")

    def result(name: str, question: QuestionSpec, spec: AnswerSpec) -> Result:
        metric = rule_metric_named(name)
        if config.evaluation_type == "retrieval_only" and not RETRIEVAL_INPUTS & set(metric.spec.inputs):
            return Result.not_applicable("not_generated")
        return metric(question, spec, settings)

    def results(answer: Answer) -> dict[MetricDefinition, Result]:
        question, lost = answer.question.read(), answer.status == "failed"
        spec = AnswerSpec("") if lost else answer.read()
        found = {row: result(name, question, spec) for name, row in metrics.items()}
        if not lost:
            return found
        # What does not apply to the question does not fail with the answer.
        failed = Result.failed("upstream: " + answer.reason)
        return {row: r if r.status is Status.NOT_APPLICABLE else failed for row, r in found.items()}

    write([Outcome(unit, results(unit.answer)) for unit in claimed if unit.answer is not None])


def expected_metrics(run: Run, unit: WorkUnit) -> list[MetricDefinition]:
    """The metrics of a rules, judge or embedding unit; none for a unit that asks the system or has no answer yet."""
    if unit.answer_id is None or unit.kind == WorkUnit.Kind.ASK:
        return []
    if unit.kind == WorkUnit.Kind.RULES:
        names = list(RunConfig.model_validate(run.config).rules)
    elif unit.kind == WorkUnit.Kind.EMBED and unit.run_judge_id is None:
        names = list(RunConfig.model_validate(run.config).embeddings)
    elif unit.run_judge is not None:
        return [define(spec) for spec in family_for(unit.run_judge.rubric_version.rubric).given]
    else:
        names = []
    return list(definitions(names).values())


Row = tuple[str, float | None, str | None, str]  # status, value, label, reason


def folded(repeats: Sequence[Row]) -> Result:
    """One result of several repeats: the mean of the numbers that were scored (classes: the commonest, of several the
    first said), else the first failure, else the first reason why it does not apply."""
    values = [value for _, value, _, _ in repeats if value is not None]
    if values:
        return Result.scored(math.fsum(values) / len(values))
    labels = [label for _, _, label, _ in repeats if label is not None]
    if labels:
        return Result.labelled(statistics.mode(labels))
    failures = [reason for status, _, _, reason in repeats if status == Status.FAILED]
    return Result.failed(failures[0]) if failures else Result.not_applicable(repeats[0][3])


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
        if before is None or (before.status, before.value, before.reason) != (
            result.status,
            result.value,
            result.reason,
        ):
            origin = content_hash(["derived", run.pk, answer_id])
            rows.append(_next_score(before, result, run=run, answer_id=answer_id, metric=metrics[name], origin=origin))
    Score.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
    return len(rows)


def _next_score(before: Score | None, result: Result, **about: Any) -> Score:
    """A result that belongs to no unit, in the round after that of the score it supersedes."""
    return Score(
        round=before.round + 1 if before else 0,
        status=result.status,
        value=result.value,
        label=result.label,
        reason=result.reason,
        detail=dict(result.detail),
        **about,
    )


_Key = tuple[int, int]  # answer, metric


def judge_together(run: Run) -> int:
    """Insert the scores of the run's juries that are new; how many rows that were.

    Two workers may do it at once: the constraint on a score's origin keeps one row of each.
    """
    if not Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).exists():
        return 0
    seats = list(run.judges.select_related("judge_version", "rubric_version"))
    return sum(_join(run, seat, seats) for seat in seats if seat.judge_version.is_jury)


def _join(run: Run, jury: RunJudge, seats: Sequence[RunJudge]) -> int:
    spec = jury.judge_version.params["jury"]
    family = jury.rubric_version.family
    wanted = set(spec["members"])
    members = [seat for seat in seats if seat.rubric_version.family == family and str(seat.judge_version) in wanted]
    by_answer: dict[_Key, dict[str, Result]] = {}
    for member in members:
        for key, result in _judge_results(run, member):
            by_answer.setdefault(key, {})[str(member.judge_version)] = result
    before = {(score.answer_id, score.metric_id): score for score in _scores(run, jury).order_by("round")}
    rows = []
    for key, said in by_answer.items():
        result, old = joined(said, JuryRule(spec["rule"])), before.get(key)
        row = (result.status, result.value, result.label, dict(result.detail))
        if old is None or (old.status, old.value, old.label, old.detail) != row:
            about = {"run": run, "answer_id": key[0], "metric_id": key[1]}
            origin = content_hash(["jury", run.pk, jury.pk, key[0]])
            by = {"judge_version_id": jury.judge_version_id, "rubric_version_id": jury.rubric_version_id}
            rows.append(_next_score(old, result, **about, **by, origin=origin))
    Score.objects.bulk_create(rows, batch_size=BATCH, ignore_conflicts=True)
    return len(rows)


def _judge_results(run: Run, member: RunJudge) -> Iterator[tuple[_Key, Result]]:
    """The member's results with its repeats folded. One query."""
    repeats: dict[_Key, list[Score]] = {}
    for score in current(_scores(run, member)).order_by("repeat", "id").iterator(chunk_size=5000):
        repeats.setdefault((score.answer_id, score.metric_id), []).append(score)
    for key, several in repeats.items():
        yield key, folded([(one.status, one.value, one.label, one.reason) for one in several])


def _scores(run: Run, seat: RunJudge) -> QuerySet[Score]:
    return Score.objects.filter(run=run, judge_version=seat.judge_version_id, rubric_version=seat.rubric_version_id)
