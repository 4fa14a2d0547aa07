"""A run as records for ``evaluation.formats.records``: questions, answers, judge scores and human ratings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evaluation.core.samples import AnswerSpec
from evaluation.formats.export import ExportFile
from evaluation.formats.records import Record, form_extension, write_records
from evaluation.models import Answer, Run, Score
from evaluation.runs.results import counts_in_figures, primary_pairs, with_scores
from review.evidence.answers import run_answers
from review.evidence.seals import readable
from review.models import Rating
from review.models.queues import FIRST_OCCASION

BATCH = 200


def records_of(run: Run) -> Iterator[Record]:
    """Yield a record per question and sample, with the newest answer, in order and in constant memory.

    Ratings are the newest of each reviewer and phase on the first occasion."""
    newest_answers = run_answers(run)
    keys = [answer.answer_id for answer in newest_answers]
    seen_questions: set[int] = set()
    primary = primary_pairs(run)
    for start in range(0, len(keys), BATCH):
        batch = keys[start : start + BATCH]
        rows = Answer.objects.filter(pk__in=batch).select_related("question", "answer_set__system_version__system")
        answers = {answer.pk: answer for answer in with_scores(rows, run)}
        ratings = _ratings(batch)
        for pk in batch:
            answer = answers[pk]
            yield _record(answer, answer.question_id not in seen_questions, primary, ratings.get(pk, []))
            seen_questions.add(answer.question_id)


TYPES = {"jsonl": "application/jsonl", "json": "application/json", "txt": "text/plain; charset=utf-8"}


def export_records(run: Run, form: str) -> ExportFile:
    """Export the run's records in a format.

    :raises UnknownName: for an unknown format."""
    ending = form_extension(form)
    lines = (line.encode() for line in write_records(form, records_of(run)))
    return ExportFile(f"run-{run.pk}-{form}.{ending}", TYPES[ending], lines)


def _record(answer: Answer, first: bool, primary: frozenset[tuple[int, int]], ratings: Sequence[Rating]) -> Record:
    contexts = tuple(context.read() for context in sorted(answer.contexts.all(), key=lambda context: context.position))
    scores: list[Score] = answer.run_scores  # type: ignore[attr-defined]  # with_scores puts it there
    ids = {"question_id": answer.question.external_id, "sample": answer.sample}
    counted_scores = [score for score in scores if counts_in_figures(score, primary) and score.repeat == 1]
    failed = answer.status == "failed"
    return Record(
        question=answer.question.read(),
        question_metadata=answer.question.metadata,
        answer=AnswerSpec(
            text=answer.text,
            contexts=contexts if answer.retrieves else None,
            retrieved_ids=None if answer.retrieved_ids is None else tuple(answer.retrieved_ids),
            latency_seconds=answer.latency_seconds,
        ),
        answered=not failed and answer.answer_set.evaluation_type != "retrieval_only",
        error=answer.reason.removeprefix("reported: ") if failed else "",
        sample=answer.sample,
        first=first,
        confidence=answer.confidence,
        system=answer.answer_set.system_version.system.name,
        answer_metadata=answer.metadata,
        scores=[
            ids | _score_record(score)
            for score in scores
            if (score.judge_version_id or score.author) and score.repeat == 1
        ],
        ratings=[ids | _rating_record(rating) for rating in ratings],
        values={score.metric.name: _value(score) for score in counted_scores if _value(score) is not None},
    )


def _value(row: Score | Rating) -> Any:
    return row.value if row.label is None else row.label


def _score_record(score: Score) -> dict[str, Any]:
    version = score.judge_version
    author = score.author if version is None else f"{version.name}@{version.version}"
    record = {"metric": score.metric.name, "rater": "judge", "author": author, "value": _value(score)}
    return record | {"reason": score.reason, "created": score.created_at.isoformat()}


def _rating_record(row: Rating) -> dict[str, Any]:
    return {
        "metric": row.metric.name,
        "rater": "human",
        "author": row.author or (row.reviewer.get_username() if row.reviewer else ""),
        "value": _value(row),
        "reason": row.comment or row.reason_code,
        "phase": row.phase,
        "blind": row.blind,
        "probability": row.probability,
        "created": row.created_at.isoformat(),
    }


def _ratings(answers: Sequence[int]) -> dict[int, list[Rating]]:
    """Newest rating of each author, metric and phase, by answer."""
    rows = readable(Rating.objects.filter(answer__in=answers))
    rows = rows.exclude(assignment__item__occasion__gt=FIRST_OCCASION)
    newest: dict[tuple[object, ...], Rating] = {}
    for row in rows.select_related("metric", "reviewer").order_by("seq", "pk"):
        newest[row.answer_id, row.reviewer_id, row.author, row.metric_id, row.phase] = row
    ratings: dict[int, list[Rating]] = {}
    for row in newest.values():
        ratings.setdefault(row.answer_id, []).append(row)
    return ratings
