"""Rows of a rating file, each with the answer it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from django.utils import timezone

from evaluation.core.errors import InvalidFile, Problem
from evaluation.files.label_studio import answer_key
from evaluation.files.rating_rows import RatingFile, RatingRow
from evaluation.judging.formulas import FORMULAS, figure_from_parts
from evaluation.models import MetricDefinition, Run
from evaluation.questions.difference import composed
from review.evidence.answers import run_answers

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
