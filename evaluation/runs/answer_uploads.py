"""Uploads of answer files in two requests: parse and preview, then confirm. Unconfirmed uploads expire after a day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from evaluation.core.canonical import clean_name
from evaluation.core.errors import Problem
from evaluation.datasets.uploads import (
    ANSWERS,
    claim_upload,
    read_if_known,
    store_file,
    stored_content,
    with_encoding,
)
from evaluation.formats.answer_rows import AnswerFile
from evaluation.formats.reading import read_answers, recode
from evaluation.formats.shaping import read_map
from evaluation.formats.tree import Columns
from evaluation.models import ImportBatch, QuestionSet, User
from evaluation.runs.answer_files import PREVIEW_ROWS, ImportedAnswers, import_answers
from evaluation.runs.answer_matching import MatchedRow, match_rows


@dataclass(frozen=True, slots=True)
class AnswersPreview:
    """A preview of the import: ``answers`` rows, of which ``failed`` have no answer and ``passages`` have retrieved
    passages. ``missing`` are ids of questions without an answer; ``remarks`` are explained by
    ``evaluation.messages.explanations.explain``; ``first`` are rows with their questions' ids. ``shape`` is the known
    file shape or map, ``columns`` the use of each column."""

    question_set: QuestionSet
    answers: int
    failed: int
    passages: int
    missing: tuple[str, ...]
    remarks: tuple[Problem, ...]
    first: Sequence[MatchedRow]
    shape: str
    columns: Columns
    encoding: str


def store_answers(
    question_set: QuestionSet,
    system: str,
    file_name: str,
    content: bytes,
    by: User | None,
    *,
    map_text: str = "",
    encoding: str = "",
) -> ImportBatch:
    """Parse a file of answers and store it until it is confirmed. ``map_text`` maps fields. A file that looks like
    Windows-1252 is read as such unless an encoding is given, and the preview asks for confirmation. A file with unknown
    columns is stored too.

    :raises InvalidFile: with every problem of the file; nothing is stored then.
    :raises DomainError: ``bad_name`` for the system."""
    options_given = {"questions": question_set.pk, "map": map_text, "encoding": encoding}
    file, options = with_encoding(
        lambda candidate: read_if_known(
            lambda: _read_answers(content, file_name, candidate, settings.CONCORD_UPLOAD_BYTES)
        ),
        options_given,
    )
    if file:
        match_rows(question_set, file, file_name)
    name, rows = clean_name(system), len(file.answers) if file else 0
    return store_file(question_set.project, ANSWERS, name, file_name, content, options=options, rows=rows, by=by)


def preview_answers(batch: ImportBatch) -> AnswersPreview:
    """Preview the import of an upload.

    :raises DomainError: ``upload_expired``."""
    question_set, file = _read_upload(batch)
    rows, missing, remarks = match_rows(question_set, file, batch.file_name)
    return AnswersPreview(
        question_set=question_set,
        answers=len(rows),
        failed=sum(bool(matched_row.row.error) or not matched_row.row.answered for matched_row in rows),
        passages=sum(bool(matched_row.row.answer.contexts) for matched_row in rows),
        missing=missing,
        remarks=(*file.remarks, *remarks),
        first=rows[:PREVIEW_ROWS],
        shape=file.shape,
        columns=file.columns,
        encoding=file.encoding,
    )


def confirm_answers(batch: ImportBatch, by: User | None) -> ImportedAnswers | None:
    """Import an upload as an answer set, whose id is then ``batch.result_id``; ``None`` if it is already imported.

    :raises DomainError: ``upload_expired``."""
    content = stored_content(batch)
    question_set, file = _read_upload(batch)
    with transaction.atomic():
        if not claim_upload(batch):
            return None
        imported = import_answers(question_set, batch.name, file, data=content, file_name=batch.file_name, by=by)
        ImportBatch.objects.filter(pk=batch.pk).update(result_id=imported.run.answer_set_id)
    batch.refresh_from_db()
    return imported


def _read_upload(batch: ImportBatch) -> tuple[QuestionSet, AnswerFile]:
    content = stored_content(batch)
    questions = QuestionSet.objects.select_related("project").get(pk=batch.options["questions"])
    return questions, _read_answers(content, batch.file_name, batch.options, len(content))


def _read_answers(content: bytes, file_name: str, options: Mapping[str, Any], limit: int) -> AnswerFile:
    map_text = str(options.get("map", ""))
    shape = read_map(map_text.encode()) if map_text else None
    utf8 = recode(content, str(options.get("encoding", "")), file_name)
    return read_answers(utf8, file_name, shape=shape, max_bytes=limit + len(utf8) - len(content))
