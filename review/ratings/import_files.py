"""Ratings made elsewhere: a file's human rows become ratings, its judge rows scores of an imported judge.

All or nothing, and again changes nothing: a row that says what its rater said last is passed over, a row that says
something else supersedes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from evaluation.accounts import audit
from evaluation.core.canonical import content_hash, text_hash
from evaluation.core.errors import Problem, Refused
from evaluation.core.metric_specs import JUDGED, Direction, Kind
from evaluation.core.samples import Finding as Part
from evaluation.core.samples import Status
from evaluation.core.scales import Scale, ScaleKind, review_form_of
from evaluation.criteria.services import active
from evaluation.formats.rating_rows import Rater, RatingRow, read_definitions
from evaluation.formats.reading import display_name, read_label_studio, read_ratings
from evaluation.judges.shipping import declared, define, shown_names
from evaluation.models import Criterion, ImportedJudge, MetricDefinition, Run, Score, User
from evaluation.scoring.writing import Row, derive, insert_scores, score_row
from evaluation.worker.database import look_again
from review.evidence.changes import touch
from review.models import Rating
from review.ratings.importing import Placed, Sampled, placed_rows, store_ratings


def known_metrics(run: Run, scales: Mapping[str, Scale]) -> tuple[dict[str, MetricDefinition], tuple[str, ...]]:
    """Every metric a row may name, and which of them were defined just now. An imported metric with another scale
    than before becomes the next version of its name; without a definition the version that the run's answers have
    values of is meant, else the newest. The names under which the run's reports show metrics mean these.

    :raises Refused: ``metric_known`` for a scale that contradicts a shipped metric or a criterion,
        ``criterion_name_taken`` for the name of one that is not in force here.
    """
    shipped = declared()
    criteria = {event.metric.name: event.metric for event in active(run.project_id) if event.metric}
    _check_criteria(criteria, scales)
    for name in sorted(scales.keys() & shipped.keys()):
        if shipped[name].scale != scales[name]:
            raise Refused("metric_known", metric=name, scale=str(shipped[name].scale), given=str(scales[name]))
    imported = MetricDefinition.objects.filter(kind=Kind.IMPORTED).order_by("version")
    rated = Rating.objects.filter(answer__answer_set_id=run.answer_set_id).values("metric_id")
    used = Q(pk__in=rated) | Q(pk__in=Score.objects.filter(run=run).values("metric_id"))
    found = {row.name: row for row in imported} | {row.name: row for row in imported.filter(used)}
    found |= {name: define(spec) for name, spec in shipped.items()}
    custom = MetricDefinition.objects.filter(used, kind=Kind.CUSTOM).order_by("version")
    found |= criteria | {row.name: row for row in custom}
    new = []
    for name in scales.keys() - shipped.keys() - criteria.keys():
        found[name], made = _imported(name, scales[name])
        new += [name] if made else []
    found |= {name: found[own] for name, own in shown_names([run]).items() if own in found and name not in scales}
    return found, tuple(sorted(new))


def _check_criteria(criteria: Mapping[str, MetricDefinition], scales: Mapping[str, Scale]) -> None:
    """A file may not give a criterion another scale, and no import may take a criterion's name."""
    for name, metric in sorted(criteria.items()):
        if name in scales and scales[name] != metric.read_scale():
            raise Refused("metric_known", metric=name, scale=metric.scale, given=str(scales[name]))
    idle = Criterion.objects.filter(name__in=scales.keys() - criteria.keys())
    if taken := sorted(idle.values_list("name", flat=True)):
        raise Refused("criterion_name_taken", name=", ".join(taken))


def _imported(name: str, scale: Scale) -> tuple[MetricDefinition, bool]:
    """The version of an imported metric with this scale, made as the next one where there is none."""
    versions = list(MetricDefinition.objects.filter(name=name).order_by("version"))
    same = next((row for row in versions if row.read_scale() == scale), None)
    if same:
        return same, False
    number = versions[-1].version + 1 if versions else 1
    form = review_form_of(scale)
    made = MetricDefinition.objects.create(
        name=name,
        version=number,
        kind=Kind.IMPORTED,
        scale=str(scale),
        direction=Direction.NONE if scale.kind is ScaleKind.CLASS else Direction.HIGHER,
        review_form=form,
        content_hash=content_hash([name, number, Kind.IMPORTED, str(scale), form]),
    )
    return made, True


BATCH = 1000


@dataclass(frozen=True, slots=True)
class Stored:
    """How many scores were inserted, and how many of them are failures."""

    stored: int
    failed: int


def store_judge_scores(run: Run, rows: Sequence[Placed]) -> Stored:
    """Insert what is new. A row that says the same as the judge's newest score of the answer is there already; a
    different one is the next round of the same origin, and the highest round counts."""
    newest, authors = _newest(run, rows), dict[int, str]()
    made: list[tuple[Row, Sequence[Part]]] = []
    failed = 0
    for placed in rows:
        row, metric_id, said = placed.row, placed.metric.pk, _said(placed.row)
        origin = text_hash(["import", run.pk, placed.answer_id, row.origin.author])
        number, before = newest.get((origin, metric_id), (-1, None))
        if before == said:
            continue
        newest[origin, metric_id] = number + 1, said
        authors.setdefault(metric_id, row.origin.author)
        status, value, label, reason = said
        failed += status == Status.FAILED
        about = {"run_id": run.pk, "answer_id": placed.answer_id, "metric_id": metric_id, "origin": origin}
        by = {"author": row.origin.author, "created_at": placed.moment, "round": number + 1}
        found = {"status": status, "value": value, "label": label, "reason": reason}
        detail = {"reported": row.reason} if status == Status.FAILED and row.reason else {}
        made.append((score_row(**about, **by, **found, detail=detail), row.parts))
    for first in range(0, len(made), BATCH):
        insert_scores(made[first : first + BATCH])
    _let_count(run, authors)
    touch([placed.answer_id for placed in rows[:1]] if made else [])
    return Stored(len(made), failed)


def _let_count(run: Run, first: Mapping[int, str]) -> None:
    """Of a metric that no judge of the run scores, in any version, the first judge counts; rules stay as computed."""
    own = Score.objects.filter(run=run, author="", metric__name=OuterRef("name"))
    taken = run.imported_judges.values("metric__name")
    asked = run.judges.filter(primary=True).values("rubric_version__family")
    free = MetricDefinition.objects.filter(~Exists(own), pk__in=first, kind__in=[*JUDGED, Kind.IMPORTED])
    free = free.exclude(name__in=taken).exclude(rubric_family__in=asked)
    ImportedJudge.objects.bulk_create(ImportedJudge(run=run, metric=metric, author=first[metric.pk]) for metric in free)


_Said = tuple[str, float | None, str | None, str]  # status, value, label, reason


def _newest(run: Run, rows: Sequence[Placed]) -> dict[tuple[str, int], tuple[int, _Said]]:
    """Round and content of the newest score of each origin and metric."""
    authors = {placed.row.origin.author for placed in rows}
    scores = Score.objects.filter(run=run, author__in=authors).order_by("round")
    columns = scores.values_list("origin", "metric_id", "round", "status", "value", "label", "reason")
    return {
        (origin, metric): (number, (status, value, label, reason))
        for origin, metric, number, status, value, label, reason in columns
    }


def _said(row: RatingRow) -> _Said:
    if row.value is None and row.label is None:
        return str(Status.FAILED), None, None, row.failure
    return str(Status.SCORED), row.value, row.label, row.reason


@dataclass(frozen=True, slots=True)
class ImportedRatings:
    """What an import did: new ratings by people, new scores by judges (``failed`` of them without a value), rows that
    were there already, metrics defined, the raters' labels, and remarks about the file."""

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
    sampled: Sampled | str = Sampled.UNKNOWN,
    by: User | None = None,
    *,
    annotators: Mapping[str, str] | None = None,
    dry_run: bool = False,
) -> ImportedRatings:
    """Store a rating file's rows for the run's answers, in one transaction; with ``dry_run`` only say what it would do.

    With ``annotators`` the file is a Label Studio export, of which they name the people (id or address -> label).
    ``defines`` are ``NAME=SCALE`` for metrics the product does not know; ``sampled`` says how the rated answers were
    chosen.

    :raises InvalidFile: with every problem of every row; nothing is stored then.
    :raises Refused: ``bad_definition``, or ``metric_known`` for a definition that contradicts a shipped metric.
    """
    sampled = Sampled(sampled)
    with transaction.atomic():
        Run.objects.select_for_update().get(pk=run.pk)  # two imports into one run take turns
        metrics, defined = known_metrics(run, read_definitions(defines))
        scales = {known: row.read_scale() for known, row in metrics.items()}
        if annotators is None:
            file = read_ratings(data, name, scales=scales)
        else:
            file = read_label_studio(data, name, scales=scales, annotators=annotators)
        rows, remarks = placed_rows(run, file, metrics, display_name(name))
        human = store_ratings(run, [p for p in rows if p.row.origin.rater is Rater.HUMAN], sampled)
        judge = store_judge_scores(run, [p for p in rows if p.row.origin.rater is Rater.JUDGE])
        if judge.stored:  # scores of answers follow from those of their parts
            derive(run)
        digest = hashlib.sha256(data).hexdigest()
        audit.record(by, "ratings.imported", run, sha256=digest, human=human, judge=judge.stored, sampled=str(sampled))
        if dry_run:
            transaction.set_rollback(True)
    if not dry_run:
        look_again(run)
    return ImportedRatings(
        human=human,
        judge=judge.stored,
        failed=judge.failed,
        unchanged=len(rows) - human - judge.stored,
        defined=defined,
        authors=tuple(sorted({p.row.origin.author for p in rows})),
        remarks=(*file.remarks, *remarks),
    )
