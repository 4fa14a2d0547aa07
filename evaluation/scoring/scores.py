"""Storing scores together with the end of their unit, selecting the scores that count, and computing derived metrics
and juries.

Derived metrics and juries are computed from other results of the same answer when no work is open. They belong to no
unit. Recomputing them changes nothing while those results are the same; after a retry, a row of the next round
supersedes."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any

from django.db import connection, transaction
from django.db.models import Avg, Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from evaluation.core.canonical import content_hash, text_hash
from evaluation.core.metric_specs import MetricKind
from evaluation.core.samples import JUDGE_ONLY_REASONS, Result, Status
from evaluation.core.samples import Finding as ResultFinding
from evaluation.core.scales import Scale
from evaluation.judges.shipped import definitions, metric_row
from evaluation.judging.catalogue import family_for
from evaluation.judging.formulas import JuryRule, jury_result
from evaluation.models import Answer, Finding, ImportedJudge, MetricDefinition, Run, RunJudge, Score, WorkUnit
from evaluation.profiles.arithmetic import MAX_FAILED_SHARE, lost_share
from evaluation.profiles.per_answer import ANSWER_OVERALL, DERIVED_METRICS, derived_results, has_answer_overall
from evaluation.profiles.spec import ProfileSpec
from evaluation.storage.statements import insert_values
from evaluation.worker import units
from evaluation.worker.lifecycle import RunConfig


@dataclass(frozen=True, slots=True)
class MetricCoverage:
    """Counts of a metric's results by status. ``unconfirmed`` results are not applicable by the judge's word only;
    ``mean`` is over scores, ``None`` for classes and without scores."""

    metric: str
    scored: int
    failed: int
    not_applicable: int
    mean: float | None
    unconfirmed: int = 0

    @property
    def lost_results(self) -> int:
        """The results that count towards the limit above which a run is incomplete."""
        return self.failed + self.unconfirmed

    @property
    def lost_share(self) -> float:
        """The share of failed and unconfirmed results among those that should be scored; 0 if there are none."""
        return lost_share(self.scored, self.failed, self.unconfirmed)


def current_scores(scores: QuerySet[Score]) -> QuerySet[Score]:
    """The scores of the highest round of each origin."""
    newer = Score.objects.filter(
        origin=OuterRef("origin"), metric_id=OuterRef("metric_id"), round__gt=OuterRef("round")
    )
    return scores.filter(~Exists(newer))


#: Whether a score belongs to the imported judge that counts.
IMPORTED = Exists(
    ImportedJudge.objects.filter(run=OuterRef("run"), metric=OuterRef("metric"), author=OuterRef("author"))
)


def counting_scores(run: Run) -> QuerySet[Score]:
    """The scores that count in a run, newest round: rules, the primary judge of each rubric, and the imported judges
    that
    :class:`ImportedJudge` names."""
    primary = run.judges.filter(primary=True).values_list("judge_version_id", "rubric_version_id")
    condition = Q(judge_version__isnull=True, author="") | Q(IMPORTED)
    for judge_id, rubric_id in primary:
        condition |= Q(judge_version_id=judge_id, rubric_version_id=rubric_id)
    return current_scores(Score.objects.filter(run=run)).filter(condition)


#: :func:`counting_scores` in SQL: a condition on a score ``s`` of one run.
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


def metric_coverage(run: Run, scores: QuerySet[Score] | None = None) -> list[MetricCoverage]:
    """Coverage of each metric of the run, by name. Pass :func:`counting_scores` as ``scores`` if it is already
    known."""
    rows = (
        (counting_scores(run) if scores is None else scores)
        .values("metric__name")
        .annotate(
            scored=Count("id", filter=Q(status="scored")),
            failed=Count("id", filter=Q(status="failed")),
            left_out=Count("id", filter=Q(status="not_applicable")),
            mean=Avg("value"),
            unconfirmed=Count("id", filter=Q(status="not_applicable", reason__in=JUDGE_ONLY_REASONS)),
        )
        .order_by("metric__name")
    )
    columns = ("metric__name", "scored", "failed", "left_out", "mean", "unconfirmed")
    return [MetricCoverage(*row) for row in rows.values_list(*columns)]


def incomplete_metrics(run: Run) -> list[MetricCoverage]:
    """Metrics with too many failed or unconfirmed results for a headline. The overall score of answers is named only if
    none of its parts is."""
    incomplete = [row for row in metric_coverage(run) if row.lost_share > MAX_FAILED_SHARE]
    return [row for row in incomplete if row.metric != ANSWER_OVERALL.name] or incomplete


_FIELDS = (
    *("created_at", "run_id", "answer_id", "metric_id", "unit_id", "origin", "round", "repeat"),
    *("judge_version_id", "rubric_version_id", "author", "status", "value", "label", "reason", "detail"),
)
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class UnitOutcome:
    """The results of one unit, by metric. ``reason`` is set if the unit failed as a whole."""

    unit: WorkUnit
    results: Mapping[MetricDefinition, Result]
    reason: str = ""

    @property
    def failure(self) -> str:
        """The reason why the unit failed; empty if every metric is scored or not applicable."""
        failed = [r.reason for r in self.results.values() if r.status is Status.FAILED]
        return self.reason or (failed[0] if failed else "")


def write_scores(outcomes: Sequence[UnitOutcome]) -> int:
    """End each unit and insert its scores in one transaction; the number of units still held.

    A unit whose claim was lost writes nothing, because another worker holds it. In a later round only metrics that are
    not scored yet are written, so that a retry never replaces a good score."""
    by_unit, now = {outcome.unit: outcome for outcome in outcomes}, timezone.now()
    with transaction.atomic():
        ended = [by_unit[unit] for unit in units.end({o.unit: o.failure for o in outcomes})]
        origins = {outcome.unit: outcome.unit.score_origin for outcome in ended}
        scored = _scored_origins([origins[o.unit] for o in ended if o.unit.round])
        rows = [
            (_unit_score(outcome.unit, origin, answer_id, metric, result, now), result.findings)
            for outcome in ended
            if (answer_id := outcome.unit.answer_id) is not None and (origin := origins[outcome.unit])
            for metric, result in outcome.results.items()
            if (origin, metric.pk) not in scored
        ]
        insert_scores(rows)
    return len(ended)


_ORIGIN, _METRIC, _ROUND = (_FIELDS.index(name) for name in ("origin", "metric_id", "round"))
FINDING_FIELDS = tuple(field.name for field in fields(ResultFinding))
_finding_values = attrgetter(*FINDING_FIELDS)


def insert_scores(rows: Sequence[tuple[Row, Sequence[ResultFinding]]]) -> None:
    """Insert scores and their findings, which refer to the new ids. For some hundred rows at a time."""
    insert_values(Score, _FIELDS, [row for row, _ in rows])
    findings_by_key = {(row[_ORIGIN], row[_METRIC], row[_ROUND]): (row[0], parts) for row, parts in rows if parts}
    stored_scores = (
        Score.objects.filter(origin__in={origin for origin, _, _ in findings_by_key})
        if findings_by_key
        else Score.objects.none()
    )
    columns = ("created_at", "score_id", "position", *FINDING_FIELDS)
    insert_values(
        Finding,
        columns,
        [
            (findings_by_key[key][0], pk, position, *_finding_values(finding))
            for pk, *key_parts in stored_scores.values_list("pk", "origin", "metric_id", "round")
            if (key := tuple(key_parts)) in findings_by_key
            for position, finding in enumerate(findings_by_key[key][1])
        ],
    )


_CONTENT = "answer_id, metric_id, status, value, label, reason, detail"
_PART = ", ".join(("position", *(f'"{name}"' for name in FINDING_FIELDS)))


def copy_scores(scores: QuerySet[Score], copies: Sequence[WorkUnit]) -> int:
    """End units of a run, and give them copies of other scores of their answers, in one transaction; the number of
    units still held. The database copies the rows, so that nothing of them is read and written again."""
    with transaction.atomic(), connection.cursor() as cursor:
        ended = units.end(dict.fromkeys(copies, ""))
        if not ended:
            return 0
        chosen = scores.filter(answer__in=[unit.answer_id for unit in ended]).order_by().values("pk")
        chosen_sql, chosen_values = chosen.query.sql_with_params()
        run_id, now = ended[0].run_id, connection.ops.adapt_datetimefield_value(timezone.now())
        unit_values = [value for unit in ended for value in (unit.answer_id, unit.pk, unit.score_origin)]
        unit_rows = ", ".join(["(%s, %s, %s)"] * len(ended))
        cursor.execute(
            f"""WITH copy (of_answer, unit_id, origin) AS (VALUES {unit_rows})
            INSERT INTO evaluation_score (created_at, run_id, unit_id, origin, round, repeat, author, {_CONTENT})
            SELECT %s, %s, unit_id, origin, 0, 1, '', {_CONTENT}
            FROM (SELECT {_CONTENT} FROM evaluation_score WHERE id IN ({chosen_sql})) chosen
            JOIN copy ON of_answer = answer_id""",  # noqa: S608 -- columns of ours
            [*unit_values, now, run_id, *chosen_values],
        )
        cursor.execute(
            f"""INSERT INTO evaluation_finding (created_at, score_id, {_PART})
            SELECT %s, copy_id, {_PART} FROM evaluation_finding JOIN (
                SELECT source.id AS source_id, copy.id AS copy_id FROM evaluation_score source
                JOIN evaluation_score copy ON copy.answer_id = source.answer_id AND copy.metric_id = source.metric_id
                WHERE copy.run_id = %s AND copy.unit_id IN ({", ".join(["%s"] * len(ended))})
                AND source.id IN ({chosen_sql})
            ) pair ON score_id = source_id""",  # noqa: S608 -- columns of ours
            [now, run_id, *(unit.pk for unit in ended), *chosen_values],
        )
    return len(ended)


def _scored_origins(origins: Sequence[str]) -> set[tuple[str, int]]:
    """Origin and metric of existing scores."""
    if not origins:
        return set()
    rows = Score.objects.filter(origin__in=origins, status=Status.SCORED)
    return set(rows.values_list("origin", "metric_id"))


def _unit_score(
    unit: WorkUnit, origin: str, answer_id: int, metric: MetricDefinition, result: Result, at: datetime
) -> Row:
    judge = unit.run_judge
    return (
        *(at, unit.run_id, answer_id, metric.pk, unit.pk, origin, unit.round, unit.repeat),
        *(judge.judge_version_id if judge else None, judge.rubric_version_id if judge else None, ""),
        *(str(result.status), result.value, result.label, result.reason, dict(result.detail)),
    )


def expected_metrics(run: Run, unit: WorkUnit) -> list[MetricDefinition]:
    """The metrics of a unit that scores; empty for a collection unit and for a unit without an answer."""
    if unit.answer_id is None or unit.kind == WorkUnit.Kind.ASK:
        return []
    if unit.kind == WorkUnit.Kind.RULES:
        names = list(RunConfig.model_validate(run.config).rules)
    elif unit.kind == WorkUnit.Kind.OWN:
        names = [unit.metric]
    elif unit.kind == WorkUnit.Kind.EMBED and unit.run_judge_id is None:
        names = list(RunConfig.model_validate(run.config).embeddings)
    elif unit.run_judge is not None:
        return [metric_row(spec) for spec in family_for(unit.run_judge.rubric_version.rubric).produced_metrics]
    else:
        names = []
    return list(definitions(names).values())


# Status, value, label, reason.
Repeat = tuple[str, float | None, str | None, str]


def fold_repeats(repeats: Sequence[Repeat]) -> Result:
    """Combine repeats into one result: the mean of the scored numbers, or the most common class (the first of several),
    else the first failure, else the first reason why it does not apply."""
    values = [value for _, value, _, _ in repeats if value is not None]
    if values:
        return Result.scored(math.fsum(values) / len(values))
    labels = [label for _, _, label, _ in repeats if label is not None]
    if labels:
        return Result.labelled(statistics.mode(labels))
    failures = [reason for status, _, _, reason in repeats if status == Status.FAILED]
    return Result.failed(failures[0]) if failures else Result.not_applicable(repeats[0][3])


INSERT_BATCH = 1000


def derive_scores(run: Run) -> int:
    """Compute the derived metrics of the run's profile and insert new scores; their number.

    Safe for two workers at once: the constraint on a score's origin keeps one row of each."""
    profile = ProfileSpec.model_validate(run.profile_version.spec)
    derived_metrics = [metric for metric in DERIVED_METRICS if metric.spec.name in profile.metrics]
    overall = has_answer_overall(profile)
    states = [Run.State.RUNNING, *Run.ENDED]
    if not (derived_metrics or overall) or not Run.objects.filter(pk=run.pk, state__in=states).exists():
        return 0
    definitions_by_name = definitions(
        [*(metric.spec.name for metric in derived_metrics), *([ANSWER_OVERALL.name] if overall else [])]
    )
    answers = Answer.objects.filter(answer_set=run.answer_set_id).order_by("pk").values_list("pk", flat=True)
    count, scales, ids = 0, dict[str, Scale](), list(answers)
    for first in range(0, len(ids), DERIVE_PAGE):
        answer_range = {"answer__gte": ids[first], "answer__lte": ids[first : first + DERIVE_PAGE][-1]}
        new_results: dict[tuple[int, str], Result] = {}
        for answer_id, category, results in list(_results_by_answer(run, answer_range, scales)):
            results_by_name = derived_results(profile, results, scales, category)
            new_results |= {(answer_id, name): result for name, result in results_by_name.items()}
        count += _insert_derived(run, answer_range, definitions_by_name, new_results)
    return count


# Answers whose results are in memory at once.
DERIVE_PAGE = 2_000
# The first and last answer, as conditions on a score.
_AnswerRange = Mapping[str, int]


def _results_by_answer(
    run: Run, answer_range: _AnswerRange, scales: dict[str, Scale]
) -> Iterator[tuple[int, str, dict[str, Result]]]:
    """The counting results of a range of answers, repeats folded, with the category of each question. Adds the scales
    of their metrics to ``scales``. One query."""
    rows = (
        counting_scores(run).filter(**answer_range).exclude(metric__kind=MetricKind.DERIVED).order_by("answer_id", "id")
    )
    columns = ("answer_id", "answer__question__category", "metric__name", "metric__scale")
    score_rows = rows.values_list(*columns, "status", "value", "label", "reason").iterator(chunk_size=5000)
    for (answer_id, category), group in groupby(score_rows, key=itemgetter(0, 1)):
        repeats: dict[str, list[Repeat]] = {}
        for _, _, name, scale, status, value, label, reason in group:
            if name not in scales:
                scales[name] = Scale.parse(scale)
            repeats.setdefault(name, []).append((status, value, label, reason))
        yield answer_id, category, {name: fold_repeats(metric_repeats) for name, metric_repeats in repeats.items()}


def _insert_derived(
    run: Run,
    answer_range: _AnswerRange,
    metrics: Mapping[str, MetricDefinition],
    new_results: Mapping[tuple[int, str], Result],
) -> int:
    names = {row.pk: name for name, row in metrics.items()}
    newest: dict[tuple[int, str], Score] = {}
    earlier = Score.objects.filter(run=run, **answer_range, metric_id__in=names, unit=None, author="")
    earlier = earlier.order_by("round")
    for score in earlier.iterator(chunk_size=5000):
        newest[score.answer_id, names[score.metric_id]] = score
    rows = []
    for (answer_id, name), result in new_results.items():
        earlier_score = newest.get((answer_id, name))
        if earlier_score is None or (earlier_score.status, earlier_score.value, earlier_score.reason) != (
            result.status,
            result.value,
            result.reason,
        ):
            origin = text_hash(["derived", run.pk, answer_id])
            identity = {"run_id": run.pk, "answer_id": answer_id, "metric_id": metrics[name].pk, "origin": origin}
            rows.append(_next_score(earlier_score, result, **identity))
    _insert_new_scores(rows)
    return len(rows)


def _next_score(previous: Score | None, result: Result, **identity: Any) -> Row:
    """A score without a unit, in the round after the one it supersedes."""
    return score_row(
        **identity,
        created_at=timezone.now(),
        round=previous.round + 1 if previous else 0,
        status=str(result.status),
        value=result.value,
        label=result.label,
        reason=result.reason,
        detail=dict(result.detail),
    )


def score_row(**columns: Any) -> Row:
    """A score without a unit, as a row for :func:`insert_scores`."""
    columns = _NO_UNIT | columns
    return tuple(columns[name] for name in _FIELDS)


_NO_UNIT = {"unit_id": None, "repeat": 1, "judge_version_id": None, "rubric_version_id": None, "author": ""}


def _insert_new_scores(rows: Sequence[Row]) -> None:
    """Insert rows that do not exist yet, in batches so that other writers get their turn."""
    for first in range(0, len(rows), INSERT_BATCH):
        insert_values(Score, _FIELDS, rows[first : first + INSERT_BATCH], ignore_conflicts=True)


# Answer and metric.
_Key = tuple[int, int]


def combine_juries(run: Run) -> int:
    """Insert new scores of the run's juries; their number.

    Safe for two workers at once: the constraint on a score's origin keeps one row of each."""
    if not Run.objects.filter(pk=run.pk, state=Run.State.RUNNING).exists():
        return 0
    run_judges = list(run.judges.select_related("judge_version", "rubric_version"))
    return sum(_combine_jury(run, run_judge, run_judges) for run_judge in run_judges if run_judge.judge_version.is_jury)


def _combine_jury(run: Run, jury: RunJudge, run_judges: Sequence[RunJudge]) -> int:
    spec = jury.judge_version.params["jury"]
    family = jury.rubric_version.family
    member_names = set(spec["members"])
    members = [
        run_judge
        for run_judge in run_judges
        if run_judge.rubric_version.family == family and str(run_judge.judge_version) in member_names
    ]
    by_answer: dict[_Key, dict[str, Result]] = {}
    for member in members:
        for key, result in _member_results(run, member):
            by_answer.setdefault(key, {})[str(member.judge_version)] = result
    earlier_scores = {(score.answer_id, score.metric_id): score for score in _scores_of(run, jury).order_by("round")}
    rows = []
    for key, member_results in by_answer.items():
        result, previous = jury_result(member_results, JuryRule(spec["rule"])), earlier_scores.get(key)
        row = (result.status, result.value, result.label, dict(result.detail))
        if previous is None or (previous.status, previous.value, previous.label, previous.detail) != row:
            identity = {"run_id": run.pk, "answer_id": key[0], "metric_id": key[1]}
            origin = content_hash(["jury", run.pk, jury.pk, key[0]])
            scorer = {"judge_version_id": jury.judge_version_id, "rubric_version_id": jury.rubric_version_id}
            rows.append(_next_score(previous, result, **identity, **scorer, origin=origin))
    _insert_new_scores(rows)
    return len(rows)


def _member_results(run: Run, member: RunJudge) -> Iterator[tuple[_Key, Result]]:
    """The member's results with repeats folded. One query."""
    repeats: dict[_Key, list[Score]] = {}
    for score in current_scores(_scores_of(run, member)).order_by("repeat", "id").iterator(chunk_size=5000):
        repeats.setdefault((score.answer_id, score.metric_id), []).append(score)
    for key, scores in repeats.items():
        yield (
            key,
            fold_repeats(
                [
                    (repeat_score.status, repeat_score.value, repeat_score.label, repeat_score.reason)
                    for repeat_score in scores
                ]
            ),
        )


def _scores_of(run: Run, run_judge: RunJudge) -> QuerySet[Score]:
    return Score.objects.filter(
        run=run, judge_version=run_judge.judge_version_id, rubric_version=run_judge.rubric_version_id
    )
