"""Import of rating files: rows of people become ratings, rows of judges become scores of an imported judge.

An import stores all rows or none and can be repeated: a row equal to its rater's newest one is skipped, a different one
supersedes it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from evaluation.accounts import audit
from evaluation.core.canonical import content_hash, text_hash
from evaluation.core.errors import DomainError, Problem
from evaluation.core.metric_specs import JUDGED_KINDS, Direction, MetricKind
from evaluation.core.samples import Finding as ResultFinding
from evaluation.core.samples import Status
from evaluation.core.scales import Scale, ScaleKind, default_review_form
from evaluation.criteria.services import active_criteria
from evaluation.formats.rating_rows import Rater, RatingRow, read_definitions
from evaluation.formats.reading import display_name, read_label_studio, read_ratings
from evaluation.judges.shipped import metric_row, report_names
from evaluation.metric_packages.declared import declared_metrics
from evaluation.models import Criterion, ImportedJudge, MetricDefinition, Run, Score, User
from evaluation.scoring.scores import Row, derive_scores, insert_scores, score_row
from evaluation.worker.database import analyze_tables
from review.evidence.invalidation import invalidate_figures
from review.models import Rating
from review.ratings.importing import FileSampling, PlacedRow, place_rows, store_ratings


def known_metrics(run: Run, scales: Mapping[str, Scale]) -> tuple[dict[str, MetricDefinition], tuple[str, ...]]:
    """Return the metrics that rows may name, and the names of those defined by this import.

    An imported metric with a new scale becomes the next version of its name. Without a definition, the version with
    values for the run's answers is used, else the newest. Names that the run's reports show are accepted too.

    :raises DomainError: ``metric_known`` for a scale that contradicts a shipped metric or a criterion,
    ``criterion_name_taken`` for the name of an inactive criterion."""
    shipped = declared_metrics()
    criteria = {event.metric.name: event.metric for event in active_criteria(run.project_id) if event.metric}
    _check_criteria(criteria, scales)
    for name in sorted(scales.keys() & shipped.keys()):
        if shipped[name].scale != scales[name]:
            raise DomainError("metric_known", metric=name, scale=str(shipped[name].scale), given=str(scales[name]))
    imported_metrics = MetricDefinition.objects.filter(kind=MetricKind.IMPORTED).order_by("version")
    rated_ids = Rating.objects.filter(answer__answer_set_id=run.answer_set_id).values("metric_id")
    has_values = Q(pk__in=rated_ids) | Q(pk__in=Score.objects.filter(run=run).values("metric_id"))
    metrics_by_name = {row.name: row for row in imported_metrics} | {
        row.name: row for row in imported_metrics.filter(has_values)
    }
    metrics_by_name |= {name: metric_row(spec) for name, spec in shipped.items()}
    custom_metrics = MetricDefinition.objects.filter(has_values, kind=MetricKind.CUSTOM).order_by("version")
    metrics_by_name |= criteria | {row.name: row for row in custom_metrics}
    defined_names = []
    for name in scales.keys() - shipped.keys() - criteria.keys():
        metrics_by_name[name], is_new = _imported_metric(name, scales[name])
        defined_names += [name] if is_new else []
    metrics_by_name |= {
        name: metrics_by_name[own_name]
        for name, own_name in report_names([run]).items()
        if own_name in metrics_by_name and name not in scales
    }
    return metrics_by_name, tuple(sorted(defined_names))


def _check_criteria(criteria: Mapping[str, MetricDefinition], scales: Mapping[str, Scale]) -> None:
    """Check that no scale contradicts a criterion and that no import takes the name of an inactive one."""
    for name, metric in sorted(criteria.items()):
        if name in scales and scales[name] != metric.read_scale():
            raise DomainError("metric_known", metric=name, scale=metric.scale, given=str(scales[name]))
    inactive_criteria = Criterion.objects.filter(name__in=scales.keys() - criteria.keys())
    if taken_names := sorted(inactive_criteria.values_list("name", flat=True)):
        raise DomainError("criterion_name_taken", name=", ".join(taken_names))


def _imported_metric(name: str, scale: Scale) -> tuple[MetricDefinition, bool]:
    """Return the version of an imported metric with this scale, and whether it was created."""
    versions = list(MetricDefinition.objects.filter(name=name).order_by("version"))
    existing = next((row for row in versions if row.read_scale() == scale), None)
    if existing:
        return existing, False
    version_number = versions[-1].version + 1 if versions else 1
    review_form = default_review_form(scale)
    definition = MetricDefinition.objects.create(
        name=name,
        version=version_number,
        kind=MetricKind.IMPORTED,
        scale=str(scale),
        direction=Direction.NONE if scale.kind is ScaleKind.CLASS else Direction.HIGHER,
        review_form=review_form,
        content_hash=content_hash([name, version_number, MetricKind.IMPORTED, str(scale), review_form]),
    )
    return definition, True


BATCH = 1000


@dataclass(frozen=True, slots=True)
class StoredScores:
    """Number of inserted scores, and of failures among them."""

    score_count: int
    failed_count: int


def store_judge_scores(run: Run, rows: Sequence[PlacedRow]) -> StoredScores:
    """Insert new scores. A row equal to the judge's newest score of the answer is skipped; a different one becomes the
    next round of its origin, and the highest round counts."""
    newest, authors = _newest_verdicts(run, rows), dict[int, str]()
    new_rows: list[tuple[Row, Sequence[ResultFinding]]] = []
    failed_count = 0
    for placed in rows:
        row, metric_id, verdict = placed.row, placed.metric.pk, _row_verdict(placed.row)
        origin = text_hash(["import", run.pk, placed.answer_id, row.origin.author])
        round_number, previous = newest.get((origin, metric_id), (-1, None))
        if previous == verdict:
            continue
        newest[origin, metric_id] = round_number + 1, verdict
        authors.setdefault(metric_id, row.origin.author)
        status, value, label, reason = verdict
        failed_count += status == Status.FAILED
        subject = {"run_id": run.pk, "answer_id": placed.answer_id, "metric_id": metric_id, "origin": origin}
        provenance = {"author": row.origin.author, "created_at": placed.rated_at, "round": round_number + 1}
        verdict_columns = {"status": status, "value": value, "label": label, "reason": reason}
        detail = {"reported": row.reason} if status == Status.FAILED and row.reason else {}
        new_rows.append((score_row(**subject, **provenance, **verdict_columns, detail=detail), row.parts))
    for start in range(0, len(new_rows), BATCH):
        insert_scores(new_rows[start : start + BATCH])
    _register_first_judges(run, authors)
    invalidate_figures([placed.answer_id for placed in rows[:1]] if new_rows else [])
    return StoredScores(len(new_rows), failed_count)


def _register_first_judges(run: Run, author_by_metric: Mapping[int, str]) -> None:
    """Register the first imported judge of each metric that no judge of the run scores in any version; computed metrics
    stay as they are."""
    computed_scores = Score.objects.filter(run=run, author="", metric__name=OuterRef("name"))
    imported_names = run.imported_judges.values("metric__name")
    judged_families = run.judges.filter(primary=True).values("rubric_version__family")
    unjudged_metrics = MetricDefinition.objects.filter(
        ~Exists(computed_scores), pk__in=author_by_metric, kind__in=[*JUDGED_KINDS, MetricKind.IMPORTED]
    )
    unjudged_metrics = unjudged_metrics.exclude(name__in=imported_names).exclude(rubric_family__in=judged_families)
    ImportedJudge.objects.bulk_create(
        ImportedJudge(run=run, metric=metric, author=author_by_metric[metric.pk]) for metric in unjudged_metrics
    )


# Status, value, label and reason.
_Verdict = tuple[str, float | None, str | None, str]


def _newest_verdicts(run: Run, rows: Sequence[PlacedRow]) -> dict[tuple[str, int], tuple[int, _Verdict]]:
    """Round and verdict of the newest score of each origin and metric."""
    authors = {placed.row.origin.author for placed in rows}
    scores = Score.objects.filter(run=run, author__in=authors).order_by("round")
    columns = scores.values_list("origin", "metric_id", "round", "status", "value", "label", "reason")
    return {
        (origin, metric): (round_number, (status, value, label, reason))
        for origin, metric, round_number, status, value, label, reason in columns
    }


def _row_verdict(row: RatingRow) -> _Verdict:
    if row.value is None and row.label is None:
        return str(Status.FAILED), None, None, row.failure
    return str(Status.SCORED), row.value, row.label, row.reason


@dataclass(frozen=True, slots=True)
class ImportedRatings:
    """Result of an import: new ratings by people, new scores by judges (``failed`` of them without a value), unchanged
    rows, defined metrics, the raters' labels, and remarks on the file."""

    human: int
    judge: int
    failed: int
    unchanged: int
    defined: tuple[str, ...]
    authors: tuple[str, ...]
    remarks: tuple[Problem, ...]


def import_ratings(
    run: Run,
    data: bytes,
    name: str,
    defines: Sequence[str] = (),
    sampling: FileSampling | str = FileSampling.UNKNOWN,
    by: User | None = None,
    *,
    annotators: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> ImportedRatings:
    """Store the rows of a rating file for the run's answers, in one transaction; ``dry_run`` only reports the result.

    With ``annotators`` (id or address -> label) the file is a Label Studio export. ``defines`` are ``NAME=SCALE`` for
    unknown metrics. ``sampling`` says how the rated answers were chosen.

    :raises InvalidFile: with every problem of every row; nothing is stored.
    :raises DomainError: ``bad_definition``, or ``metric_known`` for a definition that contradicts a shipped metric."""
    sampling = FileSampling(sampling)
    with transaction.atomic():
        # Lock the run, so that two imports into it run one after the other.
        Run.objects.select_for_update().get(pk=run.pk)
        metrics, defined = known_metrics(run, read_definitions(defines))
        scales = {metric_name: row.read_scale() for metric_name, row in metrics.items()}
        if annotators is None:
            file = read_ratings(data, name, scales=scales)
        else:
            file = read_label_studio(data, name, scales=scales, annotators=annotators)
        rows, remarks = place_rows(run, file, metrics, display_name(name))
        human = store_ratings(run, [p for p in rows if p.row.origin.rater is Rater.HUMAN], sampling)
        judge = store_judge_scores(run, [p for p in rows if p.row.origin.rater is Rater.JUDGE])
        # Scores of answers follow from those of their parts.
        if judge.score_count:
            derive_scores(run)
        digest = hashlib.sha256(data).hexdigest()
        audit.record(
            by, "ratings.imported", run, sha256=digest, human=human, judge=judge.score_count, sampled=str(sampling)
        )
        if dry_run:
            transaction.set_rollback(True)
    if not dry_run:
        analyze_tables(run)
    return ImportedRatings(
        human=human,
        judge=judge.score_count,
        failed=judge.failed_count,
        unchanged=len(rows) - human - judge.score_count,
        defined=defined,
        authors=tuple(sorted({p.row.origin.author for p in rows})),
        remarks=(*file.remarks, *remarks),
    )
