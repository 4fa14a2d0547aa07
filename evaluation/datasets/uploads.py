"""Uploads take two requests: parsed and previewed, then confirmed, or expired after a day. Nothing but the file is
stored before the confirmation, so one that dies between the two leaves no question behind, and uploading again works.
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from evaluation.accounts import audit
from evaluation.core.canonical import clean_name
from evaluation.core.errors import InvalidFile, Problem, Refused
from evaluation.core.samples import QuestionSpec
from evaluation.datasets.importing import (
    Difference,
    Imported,
    difference,
    import_question_set,
    metadata_not_taken_over,
    newest_version,
    questions_hash,
    set_name,
    version_with,
)
from evaluation.formats.question_rows import QuestionFile
from evaluation.formats.reading import WESTERN, display_name, recoded
from evaluation.formats.shaping import map_of_columns, read_map
from evaluation.formats.streaming import Content, read_question_set
from evaluation.formats.tree import Columns
from evaluation.models import ImportBatch, Project, QuestionSet, User

QUESTIONS, ANSWERS = "questions", "answers"
LIFETIME = timedelta(days=1)
SHOWN = 5  # questions shown in the preview, enough to see whether the encoding was recognised
State = ImportBatch.State


@dataclass(frozen=True, slots=True)
class Preview:
    """What a confirmation would import. ``remarks`` are explained by ``evaluation.messages.sentences.explain``.

    ``categories`` are (name, questions) in the file's order. ``selects`` is the version that has exactly this content
    already, with the metadata keys it would not take over; else ``newest`` is the version the next one follows and
    ``difference`` what changes, both ``None`` for a new set. ``encoding`` is ``cp949`` where the file is not UTF-8.
    ``shape`` is the known shape or map by which it was read, ``columns`` what became of each column.
    """

    name: str
    questions: int
    categories: tuple[tuple[str, int], ...]
    metadata_keys: tuple[str, ...]
    remarks: tuple[Problem, ...]
    first: tuple[QuestionSpec, ...]
    newest: QuestionSet | None
    selects: QuestionSet | None
    metadata_not_taken_over: tuple[str, ...]
    difference: Difference | None
    format: str
    encoding: str
    shape: str
    columns: Columns


def preview_file(project: Project, name: str, file: QuestionFile) -> Preview:
    """What importing the file under the name would do; changes nothing."""
    newest, selects = newest_version(project, name), version_with(project, name, questions_hash(file.questions))
    changes = None
    if newest and not selects:
        changes = difference([q.read() for q in newest.questions.order_by("position")], file.questions)
    return Preview(
        name=name,
        questions=len(file.questions),
        categories=tuple(Counter(question.category for question in file.questions).items()),
        metadata_keys=file.metadata_keys,
        remarks=file.remarks,
        first=tuple(file.questions[:SHOWN]),
        newest=newest,
        selects=selects,
        metadata_not_taken_over=metadata_not_taken_over(selects, file) if selects else (),
        difference=changes,
        format=file.format,
        encoding=file.encoding,
        shape=file.shape,
        columns=file.columns,
    )


def store_upload(
    project: Project,
    kind: str,
    name: str,
    file_name: str,
    content: bytes,
    options: Mapping[str, Any],
    by: User | None,
) -> ImportBatch:
    """Read a file and keep it for its confirmation. ``name`` may be empty: then the file's own is taken.

    ``kind`` is :data:`QUESTIONS`; ``options`` may hold ``group_by``, ``map``, the text of a map file, ``qrels``, the
    text of judgements, and ``encoding``. A file that seems to be Windows-1252 is read so, and the preview asks.

    :raises InvalidFile: with every problem of the file; nothing is stored then.
    :raises Refused: ``unknown_upload_kind``, ``bad_name``.
    """
    if kind != QUESTIONS:
        raise Refused("unknown_upload_kind", kind=kind)
    file, options = with_encoding(
        lambda chosen: _read(content, file_name, chosen, settings.CONCORD_UPLOAD_BYTES), options
    )
    name = set_name(name, file, file_name)
    return keep_file(project, kind, name, file_name, content, options=options, rows=len(file.questions), by=by)


def keep_file(
    project: Project,
    kind: str,
    name: str,
    file_name: str,
    content: bytes,
    *,
    options: Mapping[str, Any],
    rows: int,
    by: User | None,
    sha256: str = "",
) -> ImportBatch:
    """A file that was read, until it is confirmed or a day has passed. ``name`` is what it will be imported as;
    ``sha256`` is of the file as it came, where ``content`` is what was made of it."""
    expire_uploads()
    return ImportBatch.objects.create(
        uuid=uuid.uuid4(),
        project=project,
        kind=kind,
        name=name,
        file_name=display_name(file_name),
        file_sha256=sha256 or hashlib.sha256(content).hexdigest(),
        content=content,
        options=dict(options),
        rows=rows,
        created_by=by,
    )


_File = TypeVar("_File")


def with_encoding(
    read: Callable[[Mapping[str, Any]], _File], options: Mapping[str, Any]
) -> tuple[_File, Mapping[str, Any]]:
    """The file that ``read`` reads by the options, and the options by which it was read: a text that seems to be
    Windows-1252 is read as that.

    :raises InvalidFile: where it cannot be read.
    """
    try:
        return read(options), options
    except InvalidFile as refused:
        if not seems_western(refused):
            raise
    chosen = {**options, "encoding": WESTERN}
    return read(chosen), chosen


def seems_western(refused: InvalidFile) -> bool:
    """Whether the file was refused because somebody has to say that it is in Windows-1252."""
    return any(problem.code == "encoding_western" for problem in refused.problems)


def choose_encoding(batch: ImportBatch, encoding: str, preview: Callable[[ImportBatch], object]) -> None:
    """Have the file of an upload read in the encoding, if ``preview`` can read it so.

    :raises InvalidFile: where it cannot; the upload stays as it was.
    :raises Refused: ``upload_expired``.
    """
    batch.options = {**batch.options, "encoding": encoding}
    preview(batch)
    ImportBatch.objects.filter(pk=batch.pk, state=State.PARSED).update(options=batch.options)


def kept_file(batch: ImportBatch) -> bytes:
    """The file of an upload.

    :raises Refused: ``upload_expired``.
    """
    if batch.state == State.EXPIRED:
        raise Refused("upload_expired", file=batch.file_name)
    return bytes(batch.content)


def read_columns_as(batch: ImportBatch, columns: Columns, preview: Callable[[ImportBatch], object]) -> None:
    """Have the file of an upload read with each column as the field beside it, if ``preview`` can read it so.

    :raises InvalidFile: where it cannot; the upload stays as it was.
    :raises Refused: ``upload_expired``.
    """
    batch.options = {**batch.options, "map": map_of_columns(batch.kind, columns)}
    preview(batch)
    ImportBatch.objects.filter(pk=batch.pk, state=State.PARSED).update(options=batch.options)


def claim_upload(batch: ImportBatch) -> bool:
    """Whether the caller is the one who imports it; false where it was confirmed before. In a transaction, which gives
    it back where the import fails.

    :raises Refused: ``upload_expired``.
    """
    waiting = ImportBatch.objects.filter(pk=batch.pk, state=State.PARSED, created_at__gt=Now() - LIFETIME)
    claimed = bool(waiting.update(state=State.CONFIRMED))
    batch.refresh_from_db()
    if batch.state != State.CONFIRMED:
        raise Refused("upload_expired", file=batch.file_name)
    return claimed


def preview(batch: ImportBatch) -> Preview:
    """What confirming the upload would do, against the versions there are now."""
    return preview_file(batch.project, batch.name, _file(batch))


def confirm_upload(batch: ImportBatch, by: User | None, *, name: str = "") -> Imported:
    """Import a waiting upload, under another name if one is given. Its id is then ``batch.result_id``.

    Two confirmations are one: the second gets the version that the first one made, and its note says so.

    :raises Refused: ``upload_expired``, ``bad_name``.
    """
    file = _file(batch) if batch.state == State.PARSED else None
    with transaction.atomic():
        if not claim_upload(batch) or file is None:
            return _confirmed_before(batch)
        imported = import_question_set(batch.project, clean_name(name or batch.name), file, by=by)
        ImportBatch.objects.filter(pk=batch.pk).update(result_id=imported.question_set.pk)
        audit.record(by, "upload.confirmed", batch, sha256=batch.file_sha256, question_set=imported.question_set.pk)
    batch.refresh_from_db()
    return imported


def _confirmed_before(batch: ImportBatch) -> Imported:
    existing = QuestionSet.objects.get(pk=batch.result_id or 0)
    return Imported(existing, False, Problem("upload_confirmed_before", params={"set": str(existing)}))


def expire_uploads() -> int:
    """Give up the uploads that nobody confirmed within a day, and drop their files; how many there were."""
    old = ImportBatch.objects.filter(state__in=[State.PARSED, State.CHECKING], created_at__lte=Now() - LIFETIME)
    return old.update(state=State.EXPIRED, content=b"")


def _file(batch: ImportBatch) -> QuestionFile:
    return _read(kept_file(batch), batch.file_name, batch.options)


def _read(content: bytes, file_name: str, options: Mapping[str, Any], limit: int | None = None) -> QuestionFile:
    """The questions. ``limit`` in bytes holds for the file and its judgements; none for those accepted before."""
    text = str(options.get("map", ""))
    shape = read_map(text.encode()) if text else None
    utf8 = recoded(content, str(options.get("encoding", "")), file_name)
    return read_question_set(
        Content(utf8),
        file_name,
        group_by=str(options.get("group_by", "")),
        shape=shape,
        qrels=str(options.get("qrels", "")).encode(),
        max_bytes=None if limit is None else limit + len(utf8) - len(content),
    )
