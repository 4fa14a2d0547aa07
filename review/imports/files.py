"""Ratings made elsewhere: a file's human rows become ratings, its judge rows scores of an imported judge.

All or nothing, and again changes nothing: a row that says what its rater said last is passed over, a row that says
something else supersedes it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from evaluation.accounts import audit
from evaluation.core.errors import Problem
from evaluation.files.rating_rows import Rater, read_definitions
from evaluation.files.reading import display_name, read_label_studio, read_ratings
from evaluation.models import Run, User
from evaluation.work.database import look_again
from review.imports.judge_scores import known_metrics, store_judge_scores
from review.imports.ratings import Sampled, placed_rows, store_ratings


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
