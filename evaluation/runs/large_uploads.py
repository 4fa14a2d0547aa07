"""Large answer files that come in by the page: kept in pieces, checked by a worker, previewed, confirmed, and stored by
a worker, of whatever host. Both steps show how far they are and can be cancelled.

A worker that dies is followed by another once its lease is over, which reads the file again and stores what is missing.
"""

from __future__ import annotations

import hashlib
import io
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, BinaryIO

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from evaluation.accounts import audit
from evaluation.core.canonical import clean_name
from evaluation.core.errors import InvalidFile, Problem
from evaluation.datasets.uploads import ANSWERS, expire_uploads, seems_western
from evaluation.formats.reading import WESTERN, display_name, recoded
from evaluation.formats.shaping import read_map
from evaluation.formats.streaming import AnswerStream, Content, Source
from evaluation.formats.tree import Problems
from evaluation.models import Heartbeat, ImportBatch, ImportChunk, ImportWork, QuestionSet, User
from evaluation.runs.answer_files import Checked, completed, prepared
from evaluation.runs.answer_matching import Answered
from evaluation.worker.dispatch import ring_for
from evaluation.worker.lifecycle import start
from evaluation.worker.turns import TurnInHands, take_turn, turn_at

WORK = "evaluation.runs.large_uploads.work_on"
LARGE_BYTES = 2 * 1024 * 1024  # from here on a worker reads the file
MOST_ROWS = 500_000
CHUNK_BYTES = 512 * 1024
LONGEST_SECONDS = 4 * 3600  # of one worker's turn
SHOWN_PROBLEMS = 500
_TELL_SECONDS = 1.0
State = ImportBatch.State
WORKING = (State.CHECKING, State.IMPORTING)


def keep_large(
    question_set: QuestionSet,
    system: str,
    file_name: str,
    pieces: Iterable[bytes],
    by: User | None,
    *,
    map_text: str,
    encoding: str = "",
) -> ImportBatch:
    """Keep a file piece by piece, each in a transaction of its own, and have it checked.

    :raises InvalidFile: for a map that is none.
    :raises Refused: ``bad_name`` for the system.
    """
    name = clean_name(system)
    if map_text:
        read_map(map_text.encode())
    expire_uploads()
    batch = ImportBatch.objects.create(
        uuid=uuid.uuid4(),
        project=question_set.project,
        kind=ANSWERS,
        name=name,
        file_name=display_name(file_name),
        options={"questions": question_set.pk, "map": map_text, "encoding": encoding},
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
        ring_for(WORK, batch.pk, seconds=LONGEST_SECONDS)
    batch.refresh_from_db()
    return batch


def confirm_large(batch: ImportBatch, by: User | None) -> bool:
    """Have the checked file stored; false where it was asked for before, or cannot be any more."""
    with transaction.atomic():
        claimed = bool(ImportBatch.objects.filter(pk=batch.pk, state=State.PARSED).update(state=State.IMPORTING))
        if claimed:
            ImportWork.objects.filter(batch=batch).update(done=0, total=batch.rows)
            audit.record(by, "upload.confirmed", batch, sha256=batch.file_sha256)
            ring_for(WORK, batch.pk, seconds=LONGEST_SECONDS)
    batch.refresh_from_db()
    return claimed


def cancel_large(batch: ImportBatch, by: User | None) -> bool:
    """Give the file up; false where its answers count already. What was stored of them never does."""
    with transaction.atomic():
        rows = ImportBatch.objects.filter(pk=batch.pk, state__in=[*WORKING, State.PARSED], result_id=None)
        cancelled = bool(rows.update(state=State.CANCELLED))
        if cancelled:
            audit.record(by, "upload.cancelled", batch, sha256=batch.file_sha256)
    batch.refresh_from_db()
    if cancelled:
        _drop(batch)
    return cancelled


def ring_waiting() -> None:
    """Wake workers for files that nobody has in hands, and drop what is left of those that nobody wants any more."""
    free = Q(until=None) | Q(until__lt=Now())
    for pk in ImportWork.objects.filter(free, batch__state__in=WORKING).values_list("batch_id", flat=True):
        ring_for(WORK, pk, seconds=LONGEST_SECONDS)
    expire_uploads()
    left = ImportChunk.objects.exclude(batch__state__in=[*WORKING, State.PARSED]).values_list("batch", flat=True)
    for batch in ImportBatch.objects.filter(pk__in=left.distinct()):
        _drop(batch)


def work_on(batch_id: int) -> None:
    """A worker's turn, until the file is checked or stored."""
    work = ImportWork.objects.select_related("batch__project", "batch__created_by", "answer_set").get(batch=batch_id)
    take_turn(ImportWork.objects.filter(pk=work.pk), lambda _: _worked(work), WORK, batch_id)


class Stopped(Exception):
    """The file was cancelled, or is in another worker's hands."""


def _worked(work: ImportWork) -> bool:
    rows = ImportWork.objects.filter(pk=work.pk)
    with turn_at(rows, float("inf")) as turn:
        if turn is None:
            return True
        work.refresh_from_db()
        work.batch.refresh_from_db()
        try:
            if work.batch.state == State.CHECKING:
                _check(work, _Watch(work, turn))
            elif work.batch.state == State.IMPORTING:
                _store(work, _Watch(work, turn))
        except Stopped:
            pass
        except InvalidFile as refused:
            _refuse(work, refused.problems)
    return True


@dataclass(slots=True)
class _Watch:
    """Looks, about once a second, whether to go on, and says how far the work is."""

    work: ImportWork
    turn: TurnInHands
    told: float = 0.0

    def __call__(self, done: int) -> None:
        """:raises Stopped: where somebody cancelled the file, or the lease is lost."""
        if time.monotonic() - self.told < _TELL_SECONDS:
            return
        self.told = time.monotonic()
        state = ImportBatch.objects.values_list("state", flat=True).get(pk=self.work.batch_id)
        if state != self.work.batch.state or not self.turn.more():
            raise Stopped
        ImportWork.objects.filter(pk=self.work.pk).update(done=done)
        # A cluster whose only worker is here still lives.
        Heartbeat.objects.update_or_create(host=settings.CONCORD_HOST, defaults={"seen_at": Now()})


@contextmanager
def _checked(work: ImportWork, watch: _Watch) -> Iterator[Checked]:
    options = work.batch.options
    source = _in_utf8(_Kept(work.batch_id, work.size), options["encoding"], work.batch.file_name)
    questions = QuestionSet.objects.select_related("project").get(pk=options["questions"])
    shape = read_map(options["map"].encode()) if options["map"] else None
    stream = AnswerStream(
        source,
        work.batch.file_name,
        shape=shape,
        max_bytes=max(settings.CONCORD_UPLOAD_BYTES, source.size if options["encoding"] else 0),
        max_rows=MOST_ROWS,
    )

    def tick(_: int) -> None:
        watch(stream.at if work.batch.state == State.CHECKING else work.done)

    with Checked(questions, work.batch.file_name, stream, tick) as checked:
        yield checked


def _in_utf8(source: Source, encoding: str, file_name: str) -> Source:
    """The file as UTF-8. In another encoding it is read as a whole, like everything that is not read row by row.

    :raises InvalidFile: where it is too large for that, or not in the encoding.
    """
    if not encoding:
        return source
    if source.size > settings.CONCORD_UPLOAD_BYTES:
        Problems(file_name).stop("file_too_large", size=source.size, limit=settings.CONCORD_UPLOAD_BYTES)
    with source.open() as file:
        return Content(recoded(file.read(), encoding, file_name))


def _check(work: ImportWork, watch: _Watch) -> None:
    """Check the file; one that seems to be Windows-1252 is read so, and the preview asks."""
    try:
        _check_once(work, watch)
    except InvalidFile as refused:
        if not seems_western(refused):
            raise
        work.batch.options["encoding"] = WESTERN
        work.batch.save(update_fields=["options"])
        _check_once(work, watch)


def _check_once(work: ImportWork, watch: _Watch) -> None:
    with _checked(work, watch) as checked:
        facts = checked.facts
        found = {
            "failed": checked.failed,
            "passages": checked.passages,
            "missing": len(checked.missing),
            "remarks": [asdict(one) for one in checked.remarks(work.batch.name)],
            "first": [_plain(one) for one in checked.first],
            "shape": facts.shape,
        }
    with transaction.atomic():
        ImportWork.objects.filter(pk=work.pk).update(found=found, done=work.size)
        ImportBatch.objects.filter(pk=work.batch_id, state=State.CHECKING).update(state=State.PARSED, rows=checked.rows)


def _plain(found: Answered) -> dict[str, Any]:
    """A row as the preview shows it."""
    spec = found.row.answer
    contexts = None if spec.contexts is None else [{"text": one.text[:120]} for one in spec.contexts]
    answer = {"text": spec.text[:400], "contexts": contexts}
    return {"external_id": found.external_id, "row": {"error": found.row.error[:200], "answer": answer}}


def _store(work: ImportWork, watch: _Watch) -> None:
    batch, by = work.batch, work.batch.created_by
    with _checked(work, watch) as checked:
        filling = work.answer_set
        if filling is None:
            filling = prepared(checked, batch.name, by=by, source=batch.file_name, sha256=batch.file_sha256)
            ImportWork.objects.filter(pk=work.pk).update(answer_set=filling)
        if filling.is_unfinished:
            for stored in checked.store(filling):
                watch(stored)
        # Cancelled up to here it never counts; from here on it does, and cancelling says so.
        still = partial(ImportBatch.objects.filter(pk=batch.pk, state=State.IMPORTING).update, result_id=filling.pk)
        found = completed(filling, checked.content_hash, by=by, still=still)
    if found is None:
        raise Stopped
    run, _ = found
    start(run, by)
    ImportBatch.objects.filter(pk=batch.pk).update(state=State.CONFIRMED, result_id=run.answer_set_id)
    ImportWork.objects.filter(pk=work.pk).update(done=checked.rows)
    _drop(batch)


def _refuse(work: ImportWork, problems: Iterable[Problem]) -> None:
    told = [asdict(one) for one in problems]
    with transaction.atomic():
        ImportWork.objects.filter(pk=work.pk).update(problems=told[:SHOWN_PROBLEMS], total=len(told))
        ImportBatch.objects.filter(pk=work.batch_id, state__in=WORKING).update(state=State.REFUSED)
    _drop(work.batch)


def _drop(batch: ImportBatch) -> None:
    """Delete the pieces of the file, a few at a time, so that nobody waits for it."""
    chunks = ImportChunk.objects.filter(batch=batch).order_by("position")
    while ids := list(chunks.values_list("pk", flat=True)[:20]):
        ImportChunk.objects.filter(pk__in=ids).delete()


@dataclass(frozen=True, slots=True)
class _Kept:
    """A file that stands in the database in pieces."""

    batch_id: int
    size: int

    def open(self) -> BinaryIO:
        """The content from its start."""
        return io.BufferedReader(_Pieces(self.batch_id), CHUNK_BYTES)


class _Pieces(io.RawIOBase):
    """The pieces one after the other, one of them in memory.

    :raises Stopped: by reading, where they are gone: the file was cancelled.
    """

    def __init__(self, batch_id: int) -> None:
        self._rows = ImportChunk.objects.filter(batch=batch_id).values_list("content", flat=True)
        self._next, self._count = 0, self._rows.count()
        self._left = memoryview(b"")

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer as far as the present piece reaches; 0 at the end."""
        if not self._left and self._next < self._count:
            piece = self._rows.filter(position=self._next).first()
            if piece is None:
                raise Stopped
            self._left, self._next = memoryview(bytes(piece)), self._next + 1
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size
