"""Match rows of a rating file with answers of a run, and store the rows of people as ratings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.utils import timezone

from evaluation.core.canonical import content_hash, normalize_nfc
from evaluation.core.errors import InvalidFile, Problem
from evaluation.formats.label_studio import answer_key
from evaluation.formats.rating_rows import Phase, RatingFile, RatingRow
from evaluation.judging.formulas import FORMULAS, score_from_parts
from evaluation.models import MetricDefinition, Run
from review.evidence.answers import run_answers
from review.evidence.invalidation import invalidate_figures
from review.evidence.seals import sealed_answers
from review.models import Rating

MAX_SAMPLES_IN_MESSAGE = 10


class FileSampling(StrEnum):
    """Sampling of a file's answers. ``unknown`` samples are never used for corrections and never mixed with ratings of
    known probability."""

    ALL = "all"
    UNIFORM = "uniform"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """A row with its answer and metric. ``rated_at`` is the time of the rating, or of the import if the file has
    none."""

    row: RatingRow
    answer_id: int
    metric: MetricDefinition
    rated_at: datetime


def place_rows(
    run: Run, file: RatingFile, metrics: Mapping[str, MetricDefinition], file_label: str
) -> tuple[list[PlacedRow], list[Problem]]:
    """Match each row with its answer; returns rows and remarks. One query.

    A row with parts alone gets its value from the metric's formula. Rows from our own tasks about answers of other runs
    are left out with a remark, because a queue may cover several runs.

    :raises InvalidFile: for rows that match no answer of the run, or several; for parts alone on a metric without a
    formula; and for pairs."""
    answers = {(normalize_nfc(a.question_id), a.sample): a.answer_id for a in run_answers(run)}
    samples: dict[str, list[int]] = {}
    for question_id, sample in answers:
        samples.setdefault(question_id, []).append(sample)
    problems = [Problem("pairs_not_here", file_label, pair.line, "pair_id") for pair in file.pairs[:1]]
    rows: list[PlacedRow] = []
    now = timezone.now()
    keys = {answer_key(pk): pk for pk in answers.values()} if any(row.answer_key for row in file.ratings) else {}
    own_rows = [row for row in file.ratings if not row.answer_key or row.answer_key in keys]
    for row in map(_with_figure, own_rows):
        answer_or_problem = keys[row.answer_key] if row.answer_key else _find_answer(row, answers, samples)
        if isinstance(answer_or_problem, Problem):
            problems.append(
                Problem(answer_or_problem.code, file_label, row.line, answer_or_problem.field, answer_or_problem.params)
            )
        elif row.value is None and row.label is None and not row.failure:
            problems.append(Problem("parts_without_value", file_label, row.line, "value", {"metric": row.metric}))
        else:
            rows.append(PlacedRow(row, answer_or_problem, metrics[row.metric], _aware(row.origin.created) or now))
    if problems:
        raise InvalidFile(problems)
    foreign_count = len(file.ratings) - len(own_rows)
    return rows, [
        Problem("tasks_of_other_answers", file_label, params={"rows": foreign_count})
    ] if foreign_count else []


def _with_figure(row: RatingRow) -> RatingRow:
    """Fill a missing value from the row's parts by the metric's formula."""
    if row.value is not None or row.label is not None or row.failure or row.metric not in FORMULAS:
        return row
    return replace(row, value=score_from_parts(row.metric, row.parts).value)


def _find_answer(
    row: RatingRow, answers: Mapping[tuple[str, int], int], samples: Mapping[str, Sequence[int]]
) -> int | Problem:
    """Find the answer of a row by question and sample, or by question alone if it has one answer."""
    question_id = normalize_nfc(row.question_id)
    known_samples = samples.get(question_id, ())
    if not known_samples:
        return Problem("question_unanswered", field="question_id", params={"id": row.question_id})
    answer_id = answers.get((question_id, row.sample))
    if answer_id is not None:
        return answer_id
    if row.sample == 0 and len(known_samples) == 1:
        return answers[question_id, known_samples[0]]
    listed_samples = ", ".join(str(sample) for sample in sorted(known_samples)[:MAX_SAMPLES_IN_MESSAGE])
    return Problem("sample_unknown", field="sample", params={"id": row.question_id, "samples": listed_samples})


def _aware(moment: datetime | None) -> datetime | None:
    """Put a time without offset in the site's time zone."""
    if moment is None or timezone.is_aware(moment):
        return moment
    return timezone.make_aware(moment)


BATCH = 1000
# Length of the column ``reason_code``.
_MAX_REASON_CODE = 40


def store_ratings(run: Run, rows: Sequence[PlacedRow], sampling: FileSampling) -> int:
    """Insert new ratings; returns the number of new rows. Two queries besides the insertion.

    A row equal to its author's newest one on answer, metric and phase is unchanged; a different one supersedes it. The
    key counts equal earlier rows, so that A, B, A ends with A. All rows about sealed answers count as new, so that
    nobody learns a sealed rating by uploading guesses."""
    newest, occurrences = _stored_digests(run, rows)
    sealed = sealed_answers(run.project_id, run.answer_set_id)
    new_ratings: list[Rating] = []
    unchanged_count = 0
    for placed in rows:
        row = placed.row
        rating_key = (placed.answer_id, placed.metric.pk, row.origin.author, row.origin.phase.value)
        digest = _digest(placed, sampling)
        if newest.get(rating_key) == digest:
            unchanged_count += placed.answer_id not in sealed
            continue
        new_ratings.append(_rating(placed, sampling, f"{digest}:{occurrences[digest]}"))
        occurrences[digest] += 1
        newest[rating_key] = digest
    Rating.objects.bulk_create(new_ratings, batch_size=BATCH)
    invalidate_figures([row.answer_id for row in new_ratings[:1]])
    return len(rows) - unchanged_count


def _stored_digests(run: Run, rows: Sequence[PlacedRow]) -> tuple[dict[tuple[int, int, str, str], str], Counter[str]]:
    """Digest of the newest row of each author on each answer, metric and phase, and the number of rows per digest."""
    newest: dict[tuple[int, int, str, str], str] = {}
    occurrences: Counter[str] = Counter()
    authors = {placed.row.origin.author for placed in rows}
    earlier_ratings = Rating.objects.filter(source="import", author__in=authors).order_by("id")
    earlier_ratings = earlier_ratings.filter(answer__answer_set_id=run.answer_set_id)
    columns = earlier_ratings.values_list("answer_id", "metric_id", "author", "phase", "idempotency_key")
    for answer_id, metric_id, author, phase, key in columns:
        digest = key.partition(":")[0]
        newest[answer_id, metric_id, author, phase] = digest
        occurrences[digest] += 1
    return newest, occurrences


def _digest(placed: PlacedRow, sampling: FileSampling) -> str:
    """Hash of everything that makes two rows equal: all but the time of the import."""
    row, origin = placed.row, placed.row.origin
    return content_hash(
        [
            placed.answer_id,
            placed.metric.pk,
            origin.author,
            str(origin.phase),
            origin.blind,
            origin.probability,
            str(sampling),
            row.value,
            row.label,
            row.failure,
            row.reason,
            [asdict(part) for part in row.parts],
        ]
    )


def _rating(placed: PlacedRow, sampling: FileSampling, key: str) -> Rating:
    row, origin = placed.row, placed.row.origin
    has_no_value = row.value is None and row.label is None
    code = row.failure.partition(":")[0] if has_no_value else ""
    parts: list[dict[str, Any]] = [asdict(part) for part in row.parts]
    return Rating(
        created_at=placed.rated_at,
        answer_id=placed.answer_id,
        metric=placed.metric,
        author=origin.author,
        source="import",
        phase=str(origin.phase),
        # A final rating is made after the judge was shown, whatever the file says.
        blind=origin.blind and origin.phase is Phase.INITIAL,
        value=row.value,
        label=row.label,
        cannot_judge=has_no_value,
        reason_code=code[:_MAX_REASON_CODE],
        comment=row.reason,
        parts=parts or None,
        probability=origin.probability,
        sampling=str(sampling),
        idempotency_key=key,
    )
