"""A run as records: its questions and answers, the scores of its judges and the ratings of people, for the forms of
``evaluation.formats.records``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evaluation.core.samples import AnswerSpec
from evaluation.formats.export import ExportFile
from evaluation.formats.records import Record, ending_of, written
from evaluation.models import Answer, Run, Score
from evaluation.runs.results import enters, primary_pairs, with_scores
from review.evidence.answers import run_answers
from review.evidence.seals import readable
from review.models import Rating
from review.models.queues import FIRST_OCCASION

BATCH = 200


def records_of(run: Run) -> Iterator[Record]:
    """A record for the newest answer to each question and sample, in the order of the question set; memory stays the
    same however many there are. Ratings are those of the first occasion, a reviewer's newest of each phase."""
    told = run_answers(run)
    keys = [one.answer_id for one in told]
    seen: set[int] = set()
    primary = primary_pairs(run)
    for start in range(0, len(keys), BATCH):
        part = keys[start : start + BATCH]
        rows = Answer.objects.filter(pk__in=part).select_related("question", "answer_set__system_version__system")
        answers = {answer.pk: answer for answer in with_scores(rows, run)}
        ratings = _ratings(part)
        for pk in part:
            answer = answers[pk]
            yield _record(answer, answer.question_id not in seen, primary, ratings.get(pk, []))
            seen.add(answer.question_id)


TYPES = {"jsonl": "application/jsonl", "json": "application/json", "txt": "text/plain; charset=utf-8"}


def export_records(run: Run, form: str) -> ExportFile:
    """The run's records as a file in one of the forms.

    :raises UnknownName: for no form.
    """
    ending = ending_of(form)
    lines = (line.encode() for line in written(form, records_of(run)))
    return ExportFile(f"run-{run.pk}-{form}.{ending}", TYPES[ending], lines)


def _record(answer: Answer, first: bool, primary: frozenset[tuple[int, int]], ratings: Sequence[Rating]) -> Record:
    contexts = tuple(one.read() for one in sorted(answer.contexts.all(), key=lambda one: one.position))
    scores: list[Score] = answer.run_scores  # type: ignore[attr-defined]  # with_scores puts it there
    about = {"question_id": answer.question.external_id, "sample": answer.sample}
    counting = [one for one in scores if enters(one, primary) and one.repeat == 1]
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
        scores=[about | _score(one) for one in scores if (one.judge_version_id or one.author) and one.repeat == 1],
        ratings=[about | _rating(one) for one in ratings],
        values={one.metric.name: _value(one) for one in counting if _value(one) is not None},
    )


def _value(row: Score | Rating) -> Any:
    return row.value if row.label is None else row.label


def _score(score: Score) -> dict[str, Any]:
    version = score.judge_version
    author = score.author if version is None else f"{version.name}@{version.version}"
    told = {"metric": score.metric.name, "rater": "judge", "author": author, "value": _value(score)}
    return told | {"reason": score.reason, "created": score.created_at.isoformat()}


def _rating(row: Rating) -> dict[str, Any]:
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
    """Answer -> the newest rating of each author, metric and phase."""
    rows = readable(Rating.objects.filter(answer__in=answers))
    rows = rows.exclude(assignment__item__occasion__gt=FIRST_OCCASION)
    newest: dict[tuple[object, ...], Rating] = {}
    for row in rows.select_related("metric", "reviewer").order_by("seq", "pk"):
        newest[row.answer_id, row.reviewer_id, row.author, row.metric_id, row.phase] = row
    found: dict[int, list[Rating]] = {}
    for row in newest.values():
        found.setdefault(row.answer_id, []).append(row)
    return found
