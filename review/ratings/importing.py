"""A file's human rows, placed with their answers and stored as ratings.

Rows of a rating file, each with the answer it is about.

A file's human rows as ratings.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.utils import timezone

from evaluation.core.canonical import composed, content_hash
from evaluation.core.errors import InvalidFile, Problem
from evaluation.formats.label_studio import answer_key
from evaluation.formats.rating_rows import Phase, RatingFile, RatingRow
from evaluation.judging.formulas import FORMULAS, figure_from_parts
from evaluation.models import MetricDefinition, Run
from review.evidence.answers import run_answers
from review.evidence.changes import touch
from review.evidence.seals import sealed_answers
from review.models import Rating

SAMPLES_NAMED = 10


class Sampled(StrEnum):
    """How the answers in the file were chosen. ``unknown`` ones are never corrected with and never mixed with ratings
    of known probability."""

    ALL = "all"
    UNIFORM = "uniform"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Placed:
    """A row with its answer and metric; ``moment`` is when the rating was made, the time of the import where the file
    does not say."""

    row: RatingRow
    answer_id: int
    metric: MetricDefinition
    moment: datetime


def placed_rows(
    run: Run, file: RatingFile, metrics: Mapping[str, MetricDefinition], shown: str
) -> tuple[list[Placed], list[Problem]]:
    """Each rating with its answer, and remarks. One query.

    A row with parts alone gets its value from its metric's formula. Rows from tasks of ours about answers of other runs
    are left out, which is remarked: a queue may be drawn from several.

    :raises InvalidFile: for rows that name no answer of the run, or several; with parts alone for a metric without a
        formula; and for pairs.
    """
    answers = {(composed(a.question_id), a.sample): a.answer_id for a in run_answers(run)}
    samples: dict[str, list[int]] = {}
    for question_id, sample in answers:
        samples.setdefault(question_id, []).append(sample)
    problems = [Problem("pairs_not_here", shown, pair.line, "pair_id") for pair in file.pairs[:1]]
    placed: list[Placed] = []
    now = timezone.now()
    keys = {answer_key(pk): pk for pk in answers.values()} if any(row.answer_key for row in file.ratings) else {}
    ours = [row for row in file.ratings if not row.answer_key or row.answer_key in keys]
    for row in map(_completed, ours):
        found = keys[row.answer_key] if row.answer_key else _answer_of(row, answers, samples)
        if isinstance(found, Problem):
            problems.append(Problem(found.code, shown, row.line, found.field, found.params))
        elif row.value is None and row.label is None and not row.failure:
            problems.append(Problem("parts_without_value", shown, row.line, "value", {"metric": row.metric}))
        else:
            placed.append(Placed(row, found, metrics[row.metric], _aware(row.origin.created) or now))
    if problems:
        raise InvalidFile(problems)
    others = len(file.ratings) - len(ours)
    return placed, [Problem("tasks_of_other_answers", shown, params={"rows": others})] if others else []


def _completed(row: RatingRow) -> RatingRow:
    """The row with the figure that the metric's formula makes of its parts, where it gives none itself."""
    if row.value is not None or row.label is not None or row.failure or row.metric not in FORMULAS:
        return row
    return replace(row, value=figure_from_parts(row.metric, row.parts).value)


def _answer_of(
    row: RatingRow, answers: Mapping[tuple[str, int], int], samples: Mapping[str, Sequence[int]]
) -> int | Problem:
    """The answer a row is about: question and sample, or the question alone where it has one answer."""
    question_id = composed(row.question_id)
    there = samples.get(question_id, ())
    if not there:
        return Problem("question_unanswered", field="question_id", params={"id": row.question_id})
    found = answers.get((question_id, row.sample))
    if found is not None:
        return found
    if row.sample == 0 and len(there) == 1:
        return answers[question_id, there[0]]
    known = ", ".join(str(sample) for sample in sorted(there)[:SAMPLES_NAMED])
    return Problem("sample_unknown", field="sample", params={"id": row.question_id, "samples": known})


def _aware(moment: datetime | None) -> datetime | None:
    """A moment without an offset is one of the site's time zone."""
    if moment is None or timezone.is_aware(moment):
        return moment
    return timezone.make_aware(moment)


BATCH = 1000
_CODE = 40  # characters of a reason code


def store_ratings(run: Run, rows: Sequence[Placed], sampled: Sampled) -> int:
    """Insert what is new; how many rows that were. Two queries besides the insertion. All rows about sealed answers
    count as new, so that nobody learns a sealed rating by offering values for it.

    A row equal to its author's newest one on the answer, metric and phase is there already. A different one is a new
    row and supersedes it; the key counts how often the same was said before, so that saying A, B and A again ends
    with A.
    """
    newest, times = _before(run, rows)
    sealed = sealed_answers(run.project_id, run.answer_set_id)
    made: list[Rating] = []
    known = 0
    for placed in rows:
        row = placed.row
        place = (placed.answer_id, placed.metric.pk, row.origin.author, row.origin.phase.value)
        digest = _digest(placed, sampled)
        if newest.get(place) == digest:
            known += placed.answer_id not in sealed
            continue
        made.append(_rating(placed, sampled, f"{digest}:{times[digest]}"))
        times[digest] += 1
        newest[place] = digest
    Rating.objects.bulk_create(made, batch_size=BATCH)
    touch([row.answer_id for row in made[:1]])
    return len(rows) - known


def _before(run: Run, rows: Sequence[Placed]) -> tuple[dict[tuple[int, int, str, str], str], Counter[str]]:
    """The newest row's digest of each author on each answer, metric and phase, and how often each digest stands."""
    newest: dict[tuple[int, int, str, str], str] = {}
    times: Counter[str] = Counter()
    authors = {placed.row.origin.author for placed in rows}
    earlier = Rating.objects.filter(source="import", author__in=authors).order_by("id")
    earlier = earlier.filter(answer__answer_set_id=run.answer_set_id)
    columns = earlier.values_list("answer_id", "metric_id", "author", "phase", "idempotency_key")
    for answer_id, metric_id, author, phase, key in columns:
        digest = key.partition(":")[0]
        newest[answer_id, metric_id, author, phase] = digest
        times[digest] += 1
    return newest, times


def _digest(placed: Placed, sampled: Sampled) -> str:
    """What makes two rows say the same: everything but the time of the import."""
    row, origin = placed.row, placed.row.origin
    return content_hash(
        [
            placed.answer_id,
            placed.metric.pk,
            origin.author,
            str(origin.phase),
            origin.blind,
            origin.probability,
            str(sampled),
            row.value,
            row.label,
            row.failure,
            row.reason,
            [asdict(part) for part in row.parts],
        ]
    )


def _rating(placed: Placed, sampled: Sampled, key: str) -> Rating:
    row, origin = placed.row, placed.row.origin
    silent = row.value is None and row.label is None
    code = row.failure.partition(":")[0] if silent else ""
    parts: list[dict[str, Any]] = [asdict(part) for part in row.parts]
    return Rating(
        created_at=placed.moment,
        answer_id=placed.answer_id,
        metric=placed.metric,
        author=origin.author,
        source="import",
        phase=str(origin.phase),
        # A final rating follows a look at the judge, whatever the file says.
        blind=origin.blind and origin.phase is Phase.INITIAL,
        value=row.value,
        label=row.label,
        cannot_judge=silent,
        reason_code=code[:_CODE],
        comment=row.reason,
        parts=parts or None,
        probability=origin.probability,
        sampling=str(sampled),
        idempotency_key=key,
    )
