"""The one place that turns results into score rows, together with the end of the unit that gave them; which scores
count, and how many of each status a run has; and the scores that come of others: derived metrics and juries.

Derived metrics and juries are computed from other results of the same answer when no work is open any more. They
belong to no unit. Computing them again changes nothing where those results are the same; where they have changed (after
a retry) a row of the next round supersedes.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from django.db import transaction
from django.db.models import Avg, Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from evaluation.core.canonical import content_hash, text_hash
from evaluation.core.metric_specs import Kind
from evaluation.core.samples import BY_JUDGE_ALONE, Result, Status
from evaluation.core.samples import Finding as Part
from evaluation.core.scales import Scale
from evaluation.judges.shipping import define, definitions
from evaluation.judging.catalogue import family_for
from evaluation.judging.formulas import JuryRule, joined
from evaluation.models import Answer, Finding, ImportedJudge, MetricDefinition, Run, RunJudge, Score, WorkUnit
from evaluation.profiles.arithmetic import MOST_FAILED, lost_share
from evaluation.profiles.per_answer import ANSWER_OVERALL, DERIVED_METRICS, derived_results, has_answer_overall
from evaluation.profiles.spec import ProfileSpec
from evaluation.storage.statements import insert_values
from evaluation.worker import units
from evaluation.worker.lifecycle import RunConfig


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many answers a metric could be computed for. ``unconfirmed`` of the not applicable results are so by the
    judge's word alone; ``mean`` is over scores, ``None`` for classes and without any."""

    metric: str
    scored: int
    failed: int
    not_applicable: int
    mean: float | None
    unconfirmed: int = 0

    @property
    def lost(self) -> int:
        """Results that count towards the limit above which a run is incomplete."""
        return self.failed + self.unconfirmed

    @property
    def lost_share(self) -> float:
        """Failed and unconfirmed results among those that should have been scored, 0 where there were none."""
        return lost_share(self.scored, self.failed, self.unconfirmed)


def current(scores: QuerySet[Score]) -> QuerySet[Score]:
    """Of several rounds with one origin, the scores of the highest."""
    newer = Score.objects.filter(
        origin=OuterRef("origin"), metric_id=OuterRef("metric_id"), round__gt=OuterRef("round")
    )
    return scores.filter(~Exists(newer))


#: Whether a score is of the imported judge that counts.
IMPORTED = Exists(
    ImportedJudge.objects.filter(run=OuterRef("run"), metric=OuterRef("metric"), author=OuterRef("author"))
)


def counting(run: Run) -> QuerySet[Score]:
    """The scores that count in a run: rules, the primary judge of each rubric, and of imported judges those that
    :class:`ImportedJudge` names; newest round."""
    primary = run.judges.filter(primary=True).values_list("judge_version_id", "rubric_version_id")
    judged = Q(judge_version__isnull=True, author="") | Q(IMPORTED)
    for judge_id, rubric_id in primary:
        judged |= Q(judge_version_id=judge_id, rubric_version_id=rubric_id)
    return current(Score.objects.filter(run=run)).filter(judged)


#: :func:`counting` in SQL: a condition on a score ``s`` of one run.
COUNTING = """
(s.judge_version_id IS NULL AND s.author = '' OR EXISTS (
  SELECT 1 FROM evaluation_runjudge p WHERE p.run_id = s.run_id AND p."primary"
  AND p.judge_version_id = s.judge_version_id AND p.rubric_version_id = s.rubric_version_id)
OR s.author <> '' AND EXISTS (
  SELECT 1 FROM evaluation_importedjudge i
  WHERE i.run_id = s.run_id AND i.metric_id = s.metric_id AND i.author = s.author))
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
            mean=Avg("value"),
            unconfirmed=Count("id", filter=Q(status="not_applicable", reason__in=BY_JUDGE_ALONE)),
        )
        .order_by("metric__name")
    )
    columns = ("metric__name", "scored", "failed", "left_out", "mean", "unconfirmed")
    return [Coverage(*row) for row in rows.values_list(*columns)]


def incomplete_metrics(run: Run) -> list[Coverage]:
    """Metrics of which too many results failed, or are unconfirmed, for a headline."""
    return [c for c in coverage(run) if c.lost_share > MOST_FAILED]


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
    return text_hash([unit.run_id, step.key, unit.repeat])


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
            (_score(outcome.unit, origin, answer_id, metric, result, now), result.findings)
            for outcome in kept
            if (answer_id := outcome.unit.answer_id) is not None and (origin := origins[outcome.unit])
            for metric, result in outcome.results.items()
            if (origin, metric.pk) not in good
        ]
        insert_scores(rows)
    return len(kept)


_ORIGIN, _METRIC, _ROUND = (_FIELDS.index(name) for name in ("origin", "metric_id", "round"))
PARTS = tuple(field.name for field in fields(Part))
_parts_of = attrgetter(*PARTS)


def insert_scores(rows: Sequence[tuple[Row, Sequence[Part]]]) -> None:
    """Insert some hundred scores and the findings behind them, which refer to their scores by the ids that the database
    gave."""
    insert_values(Score, _FIELDS, [row for row, _ in rows])
    found = {(row[_ORIGIN], row[_METRIC], row[_ROUND]): (row[0], parts) for row, parts in rows if parts}
    stored = Score.objects.filter(origin__in={origin for origin, _, _ in found}) if found else Score.objects.none()
    columns = ("created_at", "score_id", "position", *PARTS)
    insert_values(
        Finding,
        columns,
        [
            (found[key][0], pk, position, *_parts_of(finding))
            for pk, *about in stored.values_list("pk", "origin", "metric_id", "round")
            if (key := tuple(about)) in found
            for position, finding in enumerate(found[key][1])
        ],
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


Repeat = tuple[str, float | None, str | None, str]  # status, value, label, reason


def folded(repeats: Sequence[Repeat]) -> Result:
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


def derive(run: Run) -> int:
    """Compute the derived metrics of the run's profile and insert what is new; how many rows that were.

    Two workers may do it at once: the constraint on a score's origin keeps one row of each.
    """
    profile = ProfileSpec.model_validate(run.profile_version.spec)
    wanted = [metric for metric in DERIVED_METRICS if metric.spec.name in profile.metrics]
    overall = has_answer_overall(profile)
    states = [Run.State.RUNNING, *Run.ENDED]
    if not (wanted or overall) or not Run.objects.filter(pk=run.pk, state__in=states).exists():
        return 0
    rows = definitions([*(metric.spec.name for metric in wanted), *([ANSWER_OVERALL.name] if overall else [])])
    answers = Answer.objects.filter(answer_set=run.answer_set_id).order_by("pk").values_list("pk", flat=True)
    count, scales, ids = 0, dict[str, Scale](), list(answers)
    for first in range(0, len(ids), DERIVED_AT_ONCE):
        some = {"answer__gte": ids[first], "answer__lte": ids[first : first + DERIVED_AT_ONCE][-1]}
        made: dict[tuple[int, str], Result] = {}
        for answer_id, category, results in list(_results(run, some, scales)):
            derived = derived_results(profile, results, scales, category)
            made |= {(answer_id, name): result for name, result in derived.items()}
        count += _insert(run, some, rows, made)
    return count


DERIVED_AT_ONCE = 2_000  # answers whose results are held
_Range = Mapping[str, int]  # the first and the last answer, as conditions on a score


def _results(run: Run, some: _Range, scales: dict[str, Scale]) -> Iterator[tuple[int, str, dict[str, Result]]]:
    """The counting results of some answers of the run, repeats folded, by answer, with the category of its question;
    puts the scales of their metrics down. One query."""
    rows = counting(run).filter(**some).exclude(metric__kind=Kind.DERIVED).order_by("answer_id", "id")
    columns = ("answer_id", "answer__question__category", "metric__name", "metric__scale")
    found = rows.values_list(*columns, "status", "value", "label", "reason").iterator(chunk_size=5000)
    for (answer_id, category), group in groupby(found, key=itemgetter(0, 1)):
        repeats: dict[str, list[Repeat]] = {}
        for _, _, name, scale, status, value, label, reason in group:
            if name not in scales:
                scales[name] = Scale.parse(scale)
            repeats.setdefault(name, []).append((status, value, label, reason))
        yield answer_id, category, {name: folded(several) for name, several in repeats.items()}


def _insert(
    run: Run, some: _Range, metrics: Mapping[str, MetricDefinition], made: Mapping[tuple[int, str], Result]
) -> int:
    names = {row.pk: name for name, row in metrics.items()}
    newest: dict[tuple[int, str], Score] = {}
    earlier = Score.objects.filter(run=run, **some, metric_id__in=names, unit=None, author="")
    earlier = earlier.order_by("round")
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
            origin = text_hash(["derived", run.pk, answer_id])
            about = {"run_id": run.pk, "answer_id": answer_id, "metric_id": metrics[name].pk, "origin": origin}
            rows.append(_next_score(before, result, **about))
    _insert_new(rows)
    return len(rows)


def _next_score(before: Score | None, result: Result, **about: Any) -> Row:
    """A result that belongs to no unit, in the round after that of the score it supersedes."""
    return score_row(
        **about,
        created_at=timezone.now(),
        round=before.round + 1 if before else 0,
        status=str(result.status),
        value=result.value,
        label=result.label,
        reason=result.reason,
        detail=dict(result.detail),
    )


def score_row(**given: Any) -> Row:
    """A score that belongs to no unit as :func:`insert_scores` takes it."""
    given = _NO_UNIT | given
    return tuple(given[name] for name in _FIELDS)


_NO_UNIT = {"unit_id": None, "repeat": 1, "judge_version_id": None, "rubric_version_id": None, "author": ""}


def _insert_new(rows: Sequence[Row]) -> None:
    """Insert what nobody else has inserted meanwhile, so many at a time that others get their turn to write."""
    for first in range(0, len(rows), BATCH):
        insert_values(Score, _FIELDS, rows[first : first + BATCH], ignore_conflicts=True)


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
            about = {"run_id": run.pk, "answer_id": key[0], "metric_id": key[1]}
            origin = content_hash(["jury", run.pk, jury.pk, key[0]])
            by = {"judge_version_id": jury.judge_version_id, "rubric_version_id": jury.rubric_version_id}
            rows.append(_next_score(old, result, **about, **by, origin=origin))
    _insert_new(rows)
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
