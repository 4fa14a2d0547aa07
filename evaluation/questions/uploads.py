"""Uploads of question sets in two requests: parsed and previewed, then confirmed, or expired after a day.

Nothing but the file is stored before the confirmation, so an upload that dies between the two leaves no question
behind, and uploading again works.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from evaluation.accounts import audit
from evaluation.core.errors import Problem, Refused
from evaluation.core.samples import QuestionSpec
from evaluation.files.question_rows import QuestionFile
from evaluation.files.reading import display_name, read_questions
from evaluation.models import ImportBatch, Project, QuestionSet, User
from evaluation.questions.importing import (
    Difference,
    Imported,
    clean_name,
    difference,
    import_question_set,
    metadata_not_taken_over,
    newest_version,
    questions_hash,
    set_name,
    version_with,
)

QUESTIONS = "questions"
LIFETIME = timedelta(days=1)
SHOWN = 5  # questions shown in the preview, enough to see whether the encoding was recognised
State = ImportBatch.State


@dataclass(frozen=True, slots=True)
class Preview:
    """What a confirmation would import. ``remarks`` are explained by ``evaluation.wording.messages.explain``.

    ``categories`` are (name, questions) in the file's order. ``selects`` is the version that has exactly this content
    already, with the metadata keys it would not take over; else ``newest`` is the version the next one follows and
    ``difference`` what changes, both ``None`` for a new set. ``encoding`` is ``cp949`` where the file is not UTF-8.
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


def preview_file(project: Project, name: str, file: QuestionFile) -> Preview:
    """What importing the file under the name would do; changes nothing."""
    categories: dict[str, int] = {}
    for question in file.questions:
        categories[question.category] = categories.get(question.category, 0) + 1
    newest, selects = newest_version(project, name), version_with(project, name, questions_hash(file.questions))
    changes = None
    if newest and not selects:
        changes = difference([q.read() for q in newest.questions.order_by("position")], file.questions)
    return Preview(
        name=name,
        questions=len(file.questions),
        categories=tuple(categories.items()),
        metadata_keys=file.metadata_keys,
        remarks=file.remarks,
        first=file.questions[:SHOWN],
        newest=newest,
        selects=selects,
        metadata_not_taken_over=metadata_not_taken_over(selects, file) if selects else (),
        difference=changes,
        format=file.format,
        encoding=file.encoding,
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

    ``kind`` is :data:`QUESTIONS`; ``options`` may hold ``group_by``.

    :raises InvalidFile: with every problem of the file; nothing is stored then.
    :raises Refused: ``unknown_upload_kind``, ``bad_name``.
    """
    if kind != QUESTIONS:
        raise Refused("unknown_upload_kind", kind=kind)
    limit = settings.CONCORD_UPLOAD_BYTES
    file = read_questions(content, file_name, group_by=str(options.get("group_by", "")), max_bytes=limit)
    expire_uploads()
    return ImportBatch.objects.create(
        uuid=uuid.uuid4(),
        project=project,
        kind=kind,
        name=set_name(name, file, file_name),
        file_name=display_name(file_name),
        file_sha256=hashlib.sha256(content).hexdigest(),
        content=content,
        options=dict(options),
        rows=len(file.questions),
        created_by=by,
    )


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
        waiting = ImportBatch.objects.filter(pk=batch.pk, state=State.PARSED, created_at__gt=Now() - LIFETIME)
        if file is None or not waiting.update(state=State.CONFIRMED):
            batch.refresh_from_db()
            if batch.state != State.CONFIRMED:
                raise Refused("upload_expired", file=batch.file_name)
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
    old = ImportBatch.objects.filter(state=State.PARSED, created_at__lte=Now() - LIFETIME)
    return old.update(state=State.EXPIRED, content=b"")


def _file(batch: ImportBatch) -> QuestionFile:
    if batch.state == State.EXPIRED:
        raise Refused("upload_expired", file=batch.file_name)
    content = bytes(batch.content)
    group_by = str(batch.options.get("group_by", ""))
    return read_questions(content, batch.file_name, group_by=group_by, max_bytes=len(content))
