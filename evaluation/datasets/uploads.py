"""Uploads in two requests: parse and preview, then confirm; they expire after a day.

Only the file is stored before the confirmation, so an interrupted upload leaves no questions and can be repeated."""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import Q
from django.db.models.functions import Now

from evaluation.accounts import audit
from evaluation.core.canonical import clean_name
from evaluation.core.errors import DomainError, InvalidFile, Problem
from evaluation.core.samples import QuestionSpec, questions_hash
from evaluation.datasets.importing import (
    Imported,
    QuestionSetDifference,
    compare_questions,
    find_version,
    metadata_not_taken_over,
    newest_version,
    publish_question_set,
    set_name,
    store_question_set,
)
from evaluation.formats.columns import guess_columns
from evaluation.formats.question_rows import QuestionFile
from evaluation.formats.reading import WESTERN, display_name, recode
from evaluation.formats.shaping import UnknownColumns, column_map, read_map
from evaluation.formats.streaming import MemorySource, read_question_set
from evaluation.formats.tree import Columns
from evaluation.models import ImportBatch, Project, QuestionSet, User

QUESTIONS, ANSWERS = "questions", "answers"
LIFETIME = timedelta(days=1)
# Questions in the preview, enough to check the encoding.
PREVIEW_QUESTIONS = 5
State = ImportBatch.State


@dataclass(frozen=True, slots=True)
class Preview:
    """Preview of a question set import. ``evaluation.messages.explanations.explain`` explains the ``remarks``.

    ``categories``: (name, number of questions) in file order. ``selects``: existing version with exactly this content;
    ``metadata_not_taken_over`` are the metadata keys in which the file differs from it. ``newest``, ``difference``:
    otherwise the version that the new one follows, and the changes; ``None`` for a new set. ``encoding``: ``cp949`` if
    the file is not in UTF-8. ``shape``: known shape or map that was used; ``columns``: the use made of each column."""

    name: str
    questions: int
    categories: tuple[tuple[str, int], ...]
    metadata_keys: tuple[str, ...]
    remarks: tuple[Problem, ...]
    first: tuple[QuestionSpec, ...]
    newest: QuestionSet | None
    selects: QuestionSet | None
    metadata_not_taken_over: tuple[str, ...]
    difference: QuestionSetDifference | None
    format: str
    encoding: str
    shape: str
    columns: Columns


def preview_file(project: Project, name: str, file: QuestionFile) -> Preview:
    """Preview the import of a file under a name; changes nothing."""
    newest, selects = newest_version(project, name), find_version(project, name, questions_hash(file.questions))
    changes = None
    if newest and not selects:
        changes = compare_questions([q.read() for q in newest.questions.order_by("position")], file.questions)
    return Preview(
        name=name,
        questions=len(file.questions),
        categories=tuple(Counter(question.category for question in file.questions).items()),
        metadata_keys=file.metadata_keys,
        remarks=file.remarks,
        first=tuple(file.questions[:PREVIEW_QUESTIONS]),
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
    """Read a file and store it until it is confirmed. An empty ``name`` is replaced by the file's own.

    ``kind`` must be :data:`QUESTIONS`. ``options`` may contain ``group_by``, ``map`` (text of a map file), ``qrels``
    (text of relevance judgements) and ``encoding``. A file that seems to be Windows-1252 is read as such, and the
    preview asks for confirmation. A file with unknown columns is stored too: :func:`choose_columns` comes first.

    :raises InvalidFile: with every problem of the file; nothing is stored.
    :raises DomainError: ``unknown_upload_kind``, ``bad_name``."""
    if kind != QUESTIONS:
        raise DomainError("unknown_upload_kind", kind=kind)
    file, options = with_encoding(
        lambda read_options: read_if_known(
            lambda: _read(content, file_name, read_options, settings.CONCORD_UPLOAD_BYTES)
        ),
        options,
    )
    name = set_name(name, file, file_name) if file else clean_name(name or display_name(file_name).rpartition(".")[0])
    rows = len(file.questions) if file else 0
    return store_file(project, kind, name, file_name, content, options=options, rows=rows, by=by)


def store_file(
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
    """Store a parsed file until it is confirmed or expires after a day.

    ``name``: name for the import. ``sha256``: hash of the original file if ``content`` was converted."""
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
    """Read a file, as Windows-1252 if it seems to be in that encoding; return it with the options used.

    :raises InvalidFile: if it cannot be read."""
    try:
        return read(options), options
    except InvalidFile as error:
        if not must_confirm_windows_1252(error):
            raise
    western_options = {**options, "encoding": WESTERN}
    return read(western_options), western_options


def read_if_known(read: Callable[[], _File]) -> _File | None:
    """Read a file; ``None`` if its columns must be assigned first.

    :raises InvalidFile: for any other problem."""
    try:
        return read()
    except UnknownColumns:
        return None


def guess_upload_columns(batch: ImportBatch, names: Sequence[str]) -> tuple[Columns, str]:
    """Guess the fields of an upload's columns, by the last mapping of an equal header in the project if any, which was
    confirmed or chosen for this upload. Return also the file of that mapping, or an empty text."""
    mapped = ImportBatch.objects.filter(Q(state=State.CONFIRMED) | Q(pk=batch.pk), project=batch.project_id)
    saved = mapped.filter(kind=batch.kind, options__header="\n".join(names)).order_by("-pk").first()
    if saved is None:
        return guess_columns(batch.kind, names), ""
    return tuple((column, field or "metadata") for column, field in saved.options["columns"]), saved.file_name


def must_confirm_windows_1252(error: InvalidFile) -> bool:
    """Return whether the file was refused because the user must confirm Windows-1252."""
    return any(problem.code == "encoding_western" for problem in error.problems)


def choose_encoding(batch: ImportBatch, encoding: str, preview: Callable[[ImportBatch], object]) -> None:
    """Set the encoding of an upload if ``preview`` can read it so, except for unknown columns.

    :raises InvalidFile: otherwise; the upload is unchanged.
    :raises DomainError: ``upload_expired``."""
    batch.options = {**batch.options, "encoding": encoding}
    read_if_known(lambda: preview(batch))
    ImportBatch.objects.filter(pk=batch.pk, state=State.PARSED).update(options=batch.options)


def stored_content(batch: ImportBatch) -> bytes:
    """Return the stored file of an upload.

    :raises DomainError: ``upload_expired``."""
    if batch.state == State.EXPIRED:
        raise DomainError("upload_expired", file=batch.file_name)
    return bytes(batch.content)


def choose_columns(batch: ImportBatch, columns: Columns, preview: Callable[[ImportBatch], object]) -> None:
    """Set the fields of an upload's columns if ``preview`` can read it so. They are offered for the next file with the
    same header.

    :raises InvalidFile: otherwise; the upload is unchanged.
    :raises DomainError: ``upload_expired``."""
    batch.options |= column_options(batch.kind, columns)
    preview(batch)
    ImportBatch.objects.filter(pk=batch.pk, state=State.PARSED).update(options=batch.options)


def column_options(kind: str, columns: Columns) -> dict[str, Any]:
    """Options of an upload whose columns have these fields."""
    header = "\n".join(column for column, _field in columns)
    return {"map": column_map(kind, columns), "header": header, "columns": columns}


def claim_upload(batch: ImportBatch) -> bool:
    """Mark an upload as confirmed and return whether this caller did so; false if it was confirmed earlier.

    Call in the transaction of the import, which reverts the claim if the import fails.

    :raises DomainError: ``upload_expired``."""
    pending = ImportBatch.objects.filter(pk=batch.pk, state=State.PARSED, created_at__gt=Now() - LIFETIME)
    claimed = bool(pending.update(state=State.CONFIRMED))
    batch.refresh_from_db()
    if batch.state != State.CONFIRMED:
        raise DomainError("upload_expired", file=batch.file_name)
    return claimed


def preview(batch: ImportBatch) -> Preview:
    """Preview an upload against the current versions."""
    return preview_file(batch.project, batch.name, _stored_question_file(batch))


def stored_preview(batch: ImportBatch, summary: Mapping[str, Any]) -> Preview:
    """Preview of a large upload from the ``summary`` of its check, without the changes to the version before."""
    shown = {name: summary[name] for name in ("categories", "metadata_keys", "format", "encoding", "shape", "columns")}
    return Preview(
        **shown,
        name=batch.name,
        questions=batch.rows,
        remarks=tuple(Problem(**remark) for remark in summary["remarks"]),
        first=tuple(QuestionSpec.model_validate(question) for question in summary["first"]),
        newest=newest_version(batch.project, batch.name),
        selects=find_version(batch.project, batch.name, summary["content_hash"]),
        metadata_not_taken_over=(),
        difference=None,
    )


def confirm_upload(batch: ImportBatch, by: User | None, *, name: str = "") -> Imported:
    """Import an upload, optionally under another name, and store the set's id in ``batch.result_id``.

    A second confirmation returns the version of the first, with a note.

    :raises DomainError: ``upload_expired``, ``bad_name``."""
    if batch.state != State.PARSED:
        claim_upload(batch)
        return _already_confirmed(batch)
    file = _stored_question_file(batch)

    def claim(version: QuestionSet) -> bool:
        if claimed := claim_upload(batch):
            ImportBatch.objects.filter(pk=batch.pk).update(result_id=version.pk)
            audit.record(by, "upload.confirmed", batch, sha256=batch.file_sha256, question_set=version.pk)
        return claimed

    question_set = store_question_set(batch.project, name or batch.name, file, by=by)
    imported = publish_question_set(question_set, file, by=by, claim=claim)
    batch.refresh_from_db()
    return imported or _already_confirmed(batch)


def _already_confirmed(batch: ImportBatch) -> Imported:
    existing = QuestionSet.objects.get(pk=batch.result_id or 0)
    return Imported(existing, False, Problem("upload_confirmed_before", params={"set": str(existing)}))


def expire_uploads() -> int:
    """Expire uploads older than a day, delete their files, and return their number."""
    expired = ImportBatch.objects.filter(state__in=[State.PARSED, State.CHECKING], created_at__lte=Now() - LIFETIME)
    return expired.update(state=State.EXPIRED, content=b"")


def _stored_question_file(batch: ImportBatch) -> QuestionFile:
    return _read(stored_content(batch), batch.file_name, batch.options)


def _read(content: bytes, file_name: str, options: Mapping[str, Any], limit: int | None = None) -> QuestionFile:
    """Read the questions. ``limit`` is for the file and its judgements in bytes; ``None`` for an accepted upload."""
    text = str(options.get("map", ""))
    shape = read_map(text.encode()) if text else None
    utf8 = recode(content, str(options.get("encoding", "")), file_name)
    return read_question_set(
        MemorySource(utf8),
        file_name,
        group_by=str(options.get("group_by", "")),
        shape=shape,
        qrels=str(options.get("qrels", "")).encode(),
        max_bytes=None if limit is None else limit + len(utf8) - len(content),
    )
