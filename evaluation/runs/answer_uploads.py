"""Answer files that come in two requests: read and previewed, then confirmed, or expired after a day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import transaction

from evaluation.core.canonical import clean_name
from evaluation.core.errors import Problem
from evaluation.datasets.uploads import ANSWERS, claim_upload, keep_file, kept_file, with_encoding
from evaluation.formats.answer_rows import AnswerFile
from evaluation.formats.reading import read_answers, recoded
from evaluation.formats.shaping import read_map
from evaluation.formats.tree import Columns
from evaluation.models import ImportBatch, QuestionSet, User
from evaluation.runs.answer_files import SHOWN, ImportedAnswers, import_answers
from evaluation.runs.answer_matching import Answered, matched


@dataclass(frozen=True, slots=True)
class AnswersPreview:
    """What a confirmation would import: ``answers`` rows, of which ``failed`` say why there is no answer and
    ``passages`` came with retrieved passages. ``missing`` are ids of questions without any; ``remarks`` are explained
    by ``evaluation.messages.sentences.explain``; ``first`` are rows with their questions' ids. ``shape`` is the known
    shape or map by which the file was read, ``columns`` what became of each column."""

    question_set: QuestionSet
    answers: int
    failed: int
    passages: int
    missing: tuple[str, ...]
    remarks: tuple[Problem, ...]
    first: Sequence[Answered]
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
    """Read a file of answers and keep it for its confirmation. ``map_text`` says where the fields stand. A file that
    seems to be Windows-1252 is read so unless an encoding is given, and the preview asks.

    :raises InvalidFile: with every problem of the file; nothing is stored then.
    :raises Refused: ``bad_name`` for the system.
    """
    given = {"questions": question_set.pk, "map": map_text, "encoding": encoding}
    file, options = with_encoding(
        lambda chosen: _answers(content, file_name, chosen, settings.CONCORD_UPLOAD_BYTES), given
    )
    matched(question_set, file, file_name)
    name, rows = clean_name(system), len(file.answers)
    return keep_file(question_set.project, ANSWERS, name, file_name, content, options=options, rows=rows, by=by)


def preview_answers(batch: ImportBatch) -> AnswersPreview:
    """What confirming the upload would do.

    :raises Refused: ``upload_expired``.
    """
    question_set, file = _read(batch)
    rows, missing, told = matched(question_set, file, batch.file_name)
    return AnswersPreview(
        question_set=question_set,
        answers=len(rows),
        failed=sum(bool(found.row.error) or not found.row.answered for found in rows),
        passages=sum(bool(found.row.answer.contexts) for found in rows),
        missing=missing,
        remarks=(*file.remarks, *told),
        first=rows[:SHOWN],
        shape=file.shape,
        columns=file.columns,
        encoding=file.encoding,
    )


def confirm_answers(batch: ImportBatch, by: User | None) -> ImportedAnswers | None:
    """Import a waiting upload as an answer set, whose id is then ``batch.result_id``; ``None`` where somebody did
    before.

    :raises Refused: ``upload_expired``.
    """
    content = kept_file(batch)
    question_set, file = _read(batch)
    with transaction.atomic():
        if not claim_upload(batch):
            return None
        imported = import_answers(question_set, batch.name, file, data=content, file_name=batch.file_name, by=by)
        ImportBatch.objects.filter(pk=batch.pk).update(result_id=imported.run.answer_set_id)
    batch.refresh_from_db()
    return imported


def _read(batch: ImportBatch) -> tuple[QuestionSet, AnswerFile]:
    content = kept_file(batch)
    questions = QuestionSet.objects.select_related("project").get(pk=batch.options["questions"])
    return questions, _answers(content, batch.file_name, batch.options, len(content))


def _answers(content: bytes, file_name: str, options: Mapping[str, Any], limit: int) -> AnswerFile:
    map_text = str(options.get("map", ""))
    shape = read_map(map_text.encode()) if map_text else None
    utf8 = recoded(content, str(options.get("encoding", "")), file_name)
    return read_answers(utf8, file_name, shape=shape, max_bytes=limit + len(utf8) - len(content))
