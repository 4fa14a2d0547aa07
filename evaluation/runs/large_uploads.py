"""Large files of answers or questions: stored in chunks, checked by a worker, previewed, confirmed, and imported by a
worker. Both steps show their progress and can be cancelled.

If a worker dies, another one continues once its lease expires: it parses the file again and stores what is missing."""

from __future__ import annotations

import hashlib
import io
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from typing import Any, BinaryIO

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.core.canonical import clean_name
from evaluation.core.errors import DomainError, InvalidFile, Problem
from evaluation.core.samples import questions_hash
from evaluation.datasets.importing import prepare_question_set, publish_question_set, set_name, store_questions
from evaluation.datasets.uploads import (
    ANSWERS,
    PREVIEW_QUESTIONS,
    QUESTIONS,
    expire_uploads,
    must_confirm_windows_1252,
)
from evaluation.formats.question_rows import QuestionFile
from evaluation.formats.reading import WESTERN, display_name, recode
from evaluation.formats.shaping import Shape, UnknownColumns, read_map
from evaluation.formats.streaming import AnswerStream, MemorySource, Source, read_question_set
from evaluation.formats.tree import Problems
from evaluation.models import AnswerSet, Heartbeat, ImportBatch, ImportChunk, ImportWork, Project, QuestionSet, User
from evaluation.runs.answer_files import CheckedAnswers, complete_answer_set, prepare_answer_set
from evaluation.runs.answer_matching import MatchedRow
from evaluation.storage.append_only import UNFINISHED_LIMIT
from evaluation.worker.jobs import AT_ONCE, Lease, job
from evaluation.worker.lifecycle import start

# Larger files are parsed by a worker.
LARGE_BYTES = 2 * 1024 * 1024
MAX_ROWS = 500_000
MAX_QUESTIONS = 1_000_000
CHUNK_BYTES = 512 * 1024
JOB_SECONDS = 4 * 3600
MAX_STORED_PROBLEMS = 500
# Categories in the preview.
MAX_CATEGORIES = 100
_REPORT_SECONDS = 1.0
State = ImportBatch.State
WORKING = (State.CHECKING, State.IMPORTING)


def store_large_file(
    question_set: QuestionSet,
    system: str,
    file_name: str,
    pieces: Iterable[bytes],
    by: User | None,
    *,
    map_text: str,
    encoding: str = "",
) -> ImportBatch:
    """Store an answer file and enqueue its check.

    :raises InvalidFile: for an invalid map.
    :raises DomainError: ``bad_name`` for the system."""
    options = {"questions": question_set.pk, "map": map_text, "encoding": encoding, "asks_columns": True}
    return _store_file(question_set.project, ANSWERS, clean_name(system), file_name, pieces, by, options)


def store_large_questions(
    project: Project,
    name: str,
    file_name: str,
    pieces: Iterable[bytes],
    by: User | None,
    *,
    options: Mapping[str, Any],
    confirmed: bool = False,
) -> ImportBatch:
    """Store a question file and enqueue its check, and with ``confirmed`` also its import. An empty ``name`` is
    replaced by the file's own. ``options`` are ``group_by``, ``map``, ``qrels`` and ``encoding``; with ``asks_columns``
    a file with unknown columns waits for their mapping.

    :raises InvalidFile: for an invalid map.
    :raises DomainError: ``bad_name``."""
    options = {**options, "confirmed": confirmed}
    return _store_file(project, QUESTIONS, clean_name(name) if name else "", file_name, pieces, by, options)


def _store_file(
    project: Project,
    kind: str,
    name: str,
    file_name: str,
    pieces: Iterable[bytes],
    by: User | None,
    options: Mapping[str, Any],
) -> ImportBatch:
    """Store a file chunk by chunk, each in its own transaction, and enqueue its check."""
    _shape(options)
    expire_uploads()
    batch = ImportBatch.objects.create(
        uuid=uuid.uuid4(),
        project=project,
        kind=kind,
        name=name,
        file_name=display_name(file_name),
        options=options,
        state=State.CHECKING,
        created_by=by,
    )
    digest, size = hashlib.sha256(), 0
    for position, piece in enumerate(pieces):
        ImportChunk.objects.create(batch=batch, position=position, content=piece)
        digest.update(piece)
        size += len(piece)
    with transaction.atomic():
        ImportBatch.objects.filter(pk=batch.pk).update(file_sha256=digest.hexdigest())
        ImportWork.objects.create(batch=batch, size=size, total=size)
        process_upload.enqueue(batch.pk)
    batch.refresh_from_db()
    return batch


def confirm_large_file(batch: ImportBatch, by: User | None) -> bool:
    """Enqueue the import of a checked file; false if it was confirmed before or is no longer available."""
    with transaction.atomic():
        checked = ImportBatch.objects.filter(pk=batch.pk, state=State.PARSED, rows__gt=0)
        claimed = bool(checked.update(state=State.IMPORTING))
        if claimed:
            ImportWork.objects.filter(batch=batch).update(done=0, total=batch.rows)
            audit.record(by, "upload.confirmed", batch, sha256=batch.file_sha256)
            process_upload.enqueue(batch.pk)
    batch.refresh_from_db()
    return claimed


def unknown_columns(work: ImportWork) -> UnknownColumns | None:
    """The refusal of a file that waits for the mapping of its columns; ``None`` for any other file."""
    if "samples" not in work.summary:
        return None
    problems = [Problem(**problem) for problem in work.problems]
    return UnknownColumns(problems, dict(work.summary["samples"]), work.summary["encoding"])


def check_again(batch: ImportBatch, options: Mapping[str, Any]) -> None:
    """Enqueue the check of a file that waits for the mapping of its columns, with other ``options``."""
    with transaction.atomic():
        # A checked file has rows.
        waiting = ImportBatch.objects.filter(pk=batch.pk, state=State.PARSED, rows=0)
        if waiting.update(state=State.CHECKING, options={**batch.options, **options}):
            ImportWork.objects.filter(batch=batch).update(done=0, total=F("size"), problems=[])
            process_upload.enqueue(batch.pk)


def cancel_large_file(batch: ImportBatch, by: User | None) -> bool:
    """Cancel the upload; false if its rows are already published. Rows stored so far stay hidden until ``purge``
    deletes them."""
    with transaction.atomic():
        rows = ImportBatch.objects.filter(pk=batch.pk, state__in=[*WORKING, State.PARSED], result_id=None)
        cancelled = bool(rows.update(state=State.CANCELLED))
        if cancelled:
            audit.record(by, "upload.cancelled", batch, sha256=batch.file_sha256)
    batch.refresh_from_db()
    if cancelled:
        _delete_chunks(batch)
    return cancelled


def delete_unused_chunks() -> None:
    """Expire previews, and delete chunks of files that will not be imported."""
    expire_uploads()
    unused = ImportChunk.objects.exclude(batch__state__in=[*WORKING, State.PARSED]).values_list("batch", flat=True)
    for batch in ImportBatch.objects.filter(pk__in=unused.distinct()):
        _delete_chunks(batch)


class UploadStopped(Exception):
    """The upload was cancelled, or another worker took it over."""


@job("upload", seconds=JOB_SECONDS)
def process_upload(batch_id: int, lease: Lease) -> timedelta | None:
    related = ("batch__project", "batch__created_by", "answer_set", "question_set")
    work = ImportWork.objects.select_related(*related).get(batch=batch_id)
    try:
        if work.batch.state == State.CHECKING:
            _check_file(work, ProgressReporter(work, lease))
            return AT_ONCE if work.batch.options.get("confirmed") else None
        if work.batch.state == State.IMPORTING:
            store = _store_answers if work.batch.kind == ANSWERS else _store_questions
            store(work, ProgressReporter(work, lease))
    except UploadStopped:
        return AT_ONCE
    except InvalidFile as refusal:
        _store_problems(work, refusal)
    return None


@dataclass(slots=True)
class ProgressReporter:
    """Reports progress about once a second, and checks whether to continue."""

    work: ImportWork
    lease: Lease
    reported_at: float = 0.0

    def __call__(self, done: int) -> None:
        """Report ``done``.

        :raises UploadStopped: if the file was cancelled or the lease is lost."""
        if time.monotonic() - self.reported_at < _REPORT_SECONDS:
            return
        self.reported_at = time.monotonic()
        state = ImportBatch.objects.values_list("state", flat=True).get(pk=self.work.batch_id)
        if state != self.work.batch.state or not self.lease.may_continue():
            raise UploadStopped
        ImportWork.objects.filter(pk=self.work.pk).update(done=done)
        # The cluster is alive even if its only worker is busy with this file.
        Heartbeat.objects.update_or_create(host=settings.CONCORD_HOST, defaults={"seen_at": Now()})


@contextmanager
def _open_checked_answers(work: ImportWork, reporter: ProgressReporter) -> Iterator[CheckedAnswers]:
    options = work.batch.options
    source = _decode_source(work)
    questions = QuestionSet.objects.select_related("project").get(pk=options["questions"])
    stream = AnswerStream(
        source,
        work.batch.file_name,
        shape=_shape(options),
        max_bytes=_max_bytes(work, source),
        max_rows=MAX_ROWS,
    )

    def on_progress(_: int) -> None:
        reporter(stream.bytes_read if work.batch.state == State.CHECKING else work.done)

    with CheckedAnswers(questions, work.batch.file_name, stream, on_progress) as checked:
        yield checked


def _read_questions(work: ImportWork, reporter: ProgressReporter) -> QuestionFile:
    options, is_checking = work.batch.options, work.batch.state == State.CHECKING
    source = _decode_source(work)
    return read_question_set(
        source,
        work.batch.file_name,
        group_by=options["group_by"],
        shape=_shape(options),
        qrels=options["qrels"].encode(),
        max_bytes=_max_bytes(work, source),
        max_rows=MAX_QUESTIONS,
        on_progress=lambda bytes_read: reporter(bytes_read if is_checking else work.done),
    )


def _shape(options: Mapping[str, Any]) -> Shape | None:
    return read_map(options["map"].encode()) if options["map"].strip() else None


def _max_bytes(work: ImportWork, source: Source) -> int:
    """The limit of files that are read as a whole; a decoded one is in memory already."""
    return max(settings.CONCORD_UPLOAD_BYTES, source.size if work.batch.options["encoding"] else 0)


def _decode_source(work: ImportWork) -> Source:
    """The file as UTF-8. A file in another encoding is read into memory as a whole.

    :raises InvalidFile: if it is too large for that, or not in the encoding."""
    encoding, file_name = work.batch.options["encoding"], work.batch.file_name
    source = StoredFile(work.batch_id, work.size)
    if not encoding:
        return source
    if source.size > settings.CONCORD_UPLOAD_BYTES:
        Problems(file_name).stop("file_too_large", size=source.size, limit=settings.CONCORD_UPLOAD_BYTES)
    with source.open() as file:
        return MemorySource(recode(file.read(), encoding, file_name))


def _check_file(work: ImportWork, reporter: ProgressReporter) -> None:
    """Check the file; one that looks like Windows-1252 is read as such, and the preview asks for confirmation."""
    check = _check_answers if work.batch.kind == ANSWERS else _check_questions
    try:
        check(work, reporter)
    except InvalidFile as refusal:
        if not must_confirm_windows_1252(refusal) or work.batch.options.get("confirmed"):
            raise
        work.batch.options["encoding"] = WESTERN
        work.batch.save(update_fields=["options"])
        check(work, reporter)


def _check_answers(work: ImportWork, reporter: ProgressReporter) -> None:
    with _open_checked_answers(work, reporter) as checked:
        facts = checked.facts
        preview = {
            "failed": checked.failed,
            "passages": checked.passages,
            "missing": len(checked.missing),
            "remarks": [asdict(problem) for problem in checked.remarks(work.batch.name)],
            "first": [_preview_row(matched_row) for matched_row in checked.first_rows],
            "shape": facts.shape,
        }
    _end_check(work, preview, checked.rows, name=work.batch.name)


def _check_questions(work: ImportWork, reporter: ProgressReporter) -> None:
    file = _read_questions(work, reporter)
    try:
        name = set_name(work.batch.name, file, work.batch.file_name)
    except DomainError as refusal:
        raise InvalidFile([Problem(refusal.code, work.batch.file_name, params=refusal.params)]) from refusal
    categories: Counter[str] = Counter()
    for question in file.questions:
        reporter(work.size)
        categories[question.category] += 1
    preview = {
        "content_hash": questions_hash(file.questions, lambda: reporter(work.size)),
        "categories": categories.most_common(MAX_CATEGORIES),
        "metadata_keys": file.metadata_keys,
        "remarks": [asdict(problem) for problem in file.remarks],
        "first": [question.model_dump(mode="json") for question in file.questions[:PREVIEW_QUESTIONS]],
        "format": file.format,
        "encoding": file.encoding,
        "shape": file.shape,
        "columns": file.columns,
    }
    _end_check(work, preview, len(file.questions), name=name)


def _end_check(work: ImportWork, preview: Mapping[str, Any], rows: int, *, name: str) -> None:
    confirmed = bool(work.batch.options.get("confirmed"))
    state, done, total = (State.IMPORTING, 0, rows) if confirmed else (State.PARSED, work.size, work.size)
    with transaction.atomic():
        ImportWork.objects.filter(pk=work.pk).update(summary=preview, done=done, total=total)
        checking = ImportBatch.objects.filter(pk=work.batch_id, state=State.CHECKING)
        checking.update(state=state, rows=rows, name=name)


def _preview_row(matched_row: MatchedRow) -> dict[str, Any]:
    spec = matched_row.row.answer
    contexts = None if spec.contexts is None else [{"text": context.text[:120]} for context in spec.contexts]
    answer = {"text": spec.text[:400], "contexts": contexts}
    return {"external_id": matched_row.external_id, "row": {"error": matched_row.row.error[:200], "answer": answer}}


def _store_answers(work: ImportWork, reporter: ProgressReporter) -> None:
    batch, by = work.batch, work.batch.created_by
    with _open_checked_answers(work, reporter) as checked:
        answer_set = work.answer_set
        if answer_set is None or _is_too_old(answer_set):
            answer_set = prepare_answer_set(
                checked, batch.name, by=by, source=batch.file_name, sha256=batch.file_sha256
            )
            ImportWork.objects.filter(pk=work.pk).update(answer_set=answer_set)
        if answer_set.is_unfinished:
            for count in checked.store(answer_set):
                reporter(count)
        # Claims the batch in the transaction that publishes the answers; fails if the upload was cancelled.
        may_publish = partial(
            ImportBatch.objects.filter(pk=batch.pk, state=State.IMPORTING).update, result_id=answer_set.pk
        )
        run_and_created = complete_answer_set(answer_set, checked.content_hash, by=by, may_publish=may_publish)
    if run_and_created is None:
        raise UploadStopped
    run, _ = run_and_created
    start(run, by)
    ImportBatch.objects.filter(pk=batch.pk).update(state=State.CONFIRMED, result_id=run.answer_set_id)
    ImportWork.objects.filter(pk=work.pk).update(done=checked.rows)
    _delete_chunks(batch)


def _is_too_old(stored_set: AnswerSet | QuestionSet) -> bool:
    """Return whether a set that is begun must not be continued, because seals may leave it out by now."""
    return stored_set.is_unfinished and stored_set.created_at < timezone.now() - UNFINISHED_LIMIT


def _store_questions(work: ImportWork, reporter: ProgressReporter) -> None:
    batch, by = work.batch, work.batch.created_by
    file = _read_questions(work, reporter)
    question_set = work.question_set
    if question_set is None or _is_too_old(question_set):
        question_set = prepare_question_set(batch.project, batch.name, file, work.summary["content_hash"], by=by)
        ImportWork.objects.filter(pk=work.pk).update(question_set=question_set)
    for count in store_questions(question_set, file):
        reporter(count)

    def claim(version: QuestionSet) -> bool:
        importing = ImportBatch.objects.filter(pk=batch.pk, state=State.IMPORTING)
        return bool(importing.update(state=State.CONFIRMED, result_id=version.pk))

    if publish_question_set(question_set, file, by=by, claim=claim) is None:
        raise UploadStopped
    ImportWork.objects.filter(pk=work.pk).update(done=batch.rows)
    _delete_chunks(batch)


def _store_problems(work: ImportWork, refusal: InvalidFile) -> None:
    """Refuse the file. If its columns are unknown or were mapped on the page, let it wait for another mapping."""
    rows, summary = [asdict(problem) for problem in refusal.problems], work.summary
    if isinstance(refusal, UnknownColumns) and work.batch.options.get("asks_columns"):
        encoding = work.batch.options["encoding"] or refusal.encoding
        # Pairs, because PostgreSQL sorts the keys of an object.
        summary = {"samples": list(refusal.samples.items()), "encoding": encoding}
    state = State.PARSED if "samples" in summary else State.REFUSED
    stored = {"summary": summary, "problems": rows[:MAX_STORED_PROBLEMS], "total": len(rows)}
    with transaction.atomic():
        ImportWork.objects.filter(pk=work.pk).update(**stored)
        ImportBatch.objects.filter(pk=work.batch_id, state__in=WORKING).update(state=state)
    if state == State.REFUSED:
        _delete_chunks(work.batch)


def _delete_chunks(batch: ImportBatch) -> None:
    """Delete the chunks of the file in small transactions, so that no writer waits."""
    chunks = ImportChunk.objects.filter(batch=batch).order_by("position")
    while ids := list(chunks.values_list("pk", flat=True)[:20]):
        ImportChunk.objects.filter(pk__in=ids).delete()


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file stored in the database in chunks."""

    batch_id: int
    size: int

    def open(self) -> BinaryIO:
        return io.BufferedReader(ChunkReader(self.batch_id), CHUNK_BYTES)


class ChunkReader(io.RawIOBase):
    """Reads the chunks in order and holds one at a time in memory.

    :raises UploadStopped: on reading, if the chunks are deleted because the file was cancelled."""

    def __init__(self, batch_id: int) -> None:
        self._rows = ImportChunk.objects.filter(batch=batch_id).values_list("content", flat=True)
        self._next_position, self._count = 0, self._rows.count()
        self._remaining = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer from the current chunk; 0 at the end."""
        if not self._remaining and self._next_position < self._count:
            piece = self._rows.filter(position=self._next_position).first()
            if piece is None:
                raise UploadStopped
            self._remaining, self._next_position = memoryview(bytes(piece)), self._next_position + 1
        size = min(len(buffer), len(self._remaining))
        buffer[:size] = self._remaining[:size]
        self._remaining = self._remaining[size:]
        return size
