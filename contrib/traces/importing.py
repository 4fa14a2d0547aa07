"""Traces become a question set and its answers: of a file, or sent by OTLP and waiting for it.

What is sent waits as uploads do, a row for each trace in a request, a day at most; secrets, and what the operator has
masked, are masked before that. Its import masks again, by what the operator has masked then and what is asked for. A
file that is uploaded waits for its confirmation as what was read of it, masked.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import uuid4

import jmespath
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Max, Min
from django.utils import timezone
from jmespath.exceptions import JMESPathError

from contrib.traces.otlp import TracePart, read_trace_parts, read_trace_records
from evaluation.accounts.access import lock_project
from evaluation.connectors.mapping import searched
from evaluation.core.canonical import clean_name
from evaluation.core.errors import Problem, Refused
from evaluation.datasets.importing import import_question_set
from evaluation.datasets.uploads import claim_upload, expire_uploads, keep_file, kept_file
from evaluation.formats.answer_rows import AnswerFile, AnswerRow
from evaluation.formats.question_rows import QuestionFile
from evaluation.formats.reading import read_answers, read_questions
from evaluation.formats.shaping import Shape, shipped
from evaluation.models import ImportBatch, Project, User
from evaluation.network.outcomes import storable
from evaluation.runs.answer_files import ImportedAnswers, import_answers

TRACES, TRACE_FILE = "traces", "trace_file"
QUIET_SECONDS = 60.0  # since the last span of a trace came in: then it is taken to be whole
FILE_NAME = "traces.jsonl"
LONGEST_NAME = 200  # characters of a system's name
State = ImportBatch.State


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which traces are taken: all for which one of the rules (JMESPath over ``question``, ``answer``, ``error``,
    ``contexts``, ``latency_seconds`` and what else the trace tells) finds something true, and of the others the share
    ``rate``, 0 to 1, the same ones every time. ``masks`` is what is masked in them beside secrets, see
    ``contrib.traces.otlp.masking``."""

    rate: float = 1.0
    rules: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """:raises Refused: ``rule_invalid`` for what is no JMESPath expression."""
        for rule in self.rules:
            try:
                jmespath.compile(rule)
            except JMESPathError as error:
                raise Refused("rule_invalid", rule=rule, detail=str(error).splitlines()[0]) from error

    def takes(self, row: AnswerRow) -> bool:
        """Whether the answer of a trace is among them."""
        said = {
            **row.metadata,
            "question": row.question,
            "answer": row.answer.text,
            "error": row.error,
            "latency_seconds": row.answer.latency_seconds,
            "contexts": None if row.answer.contexts is None else [one.text for one in row.answer.contexts],
        }
        return any(searched(rule, said) for rule in self.rules) or _place(row.question_id) < self.rate


def _place(trace: str) -> float:
    """A place from 0 to 1 by the id's hash: who samples by the ids themselves sends only some of them."""
    return int.from_bytes(hashlib.sha256(trace.encode()).digest()[:6]) / 2**48


def receive(project: Project, data: bytes, by: User | None) -> int:
    """Keep the traces of an OTLP request (JSON or protobuf) until they are imported; how many spans belong to none.

    :raises InvalidFile: for what is no such request.
    """
    limit, masks = settings.CONCORD_UPLOAD_BYTES, settings.CONCORD_TRACE_MASKS
    parts, lost = read_trace_parts(data, FILE_NAME, masks=masks, max_bytes=limit)
    expire_uploads()
    ImportBatch.objects.bulk_create(_row(project, part, by) for part in parts)
    return lost


def _row(project: Project, part: TracePart, by: User | None) -> ImportBatch:
    content = json.dumps(part.content, ensure_ascii=False).encode()
    return ImportBatch(
        uuid=uuid4(),
        project=project,
        kind=TRACES,
        name=storable(part.service)[:LONGEST_NAME],
        file_name=part.trace,
        file_sha256=hashlib.sha256(content).hexdigest(),
        content=content,
        rows=part.spans,
        created_by=by,
    )


def waiting(*projects: Project) -> list[dict[str, Any]]:
    """The systems of which traces wait: ``project`` (its id), ``system``, how many ``traces``, ``first`` and ``last``
    when they came in."""
    rows = (
        _waiting(*projects)
        .values("project", "name")
        .annotate(traces=Count("file_name", distinct=True), first=Min("created_at"), last=Max("created_at"))
    )
    return [{"system": row.pop("name"), **row} for row in rows.order_by("project", "name")]


def _waiting(*projects: Project) -> Any:
    return ImportBatch.objects.filter(project__in=projects, kind=TRACES, state=State.PARSED)


@dataclass(frozen=True, slots=True)
class ReadTraces:
    """What a file of traces would become: of ``read`` traces with an answer or a failure those that the sampling takes,
    as questions and answers. ``records`` is all that is kept of the file, ``sha256`` the file's own."""

    questions: QuestionFile
    answers: AnswerFile
    read: int
    remarks: tuple[Problem, ...]
    records: bytes
    sha256: str


def read_traces(system: str, data: bytes, sampling: Sampling = Sampling(), *, file_name: str = FILE_NAME) -> ReadTraces:
    """Read the traces of a file, masked.

    :raises InvalidFile: with every problem of the file.
    :raises Refused: ``no_traces`` where the sampling takes none.
    """
    limit = settings.CONCORD_UPLOAD_BYTES
    records, remarks = read_trace_records(data, file_name, masks=sampling.masks, max_bytes=limit)
    return _sampled(system, records, sampling, tuple(remarks), hashlib.sha256(data).hexdigest())


def _sampled(system: str, records: bytes, sampling: Sampling, remarks: tuple[Problem, ...], sha256: str) -> ReadTraces:
    asked = read_questions(records, FILE_NAME, max_bytes=len(records))
    ids = {question.id for question in asked.questions}
    told = read_answers(records, FILE_NAME, shape=_by_trace(), max_bytes=len(records))
    usable = [row for row in told.answers if row.question_id in ids]  # the others do not tell what was asked
    taken = tuple(row for row in usable if sampling.takes(row))
    if not taken:
        raise Refused("no_traces", system=system)
    kept = {row.question_id for row in taken}
    questions = replace(asked, questions=tuple(one for one in asked.questions if one.id in kept))
    return ReadTraces(questions, replace(told, answers=taken), len(usable), remarks, records, sha256)


@dataclass(frozen=True, slots=True)
class ImportedTraces:
    """What became of ``read`` traces with an answer or a failure, of which the sampling took those imported."""

    read: int
    answers: ImportedAnswers


def import_traces(
    project: Project,
    system: str,
    data: bytes,
    *,
    name: str = "",
    sampling: Sampling = Sampling(),
    by: User | None = None,
    file_name: str = FILE_NAME,
) -> ImportedTraces:
    """Store the traces of a file as a version of the question set ``name`` (else "SYSTEM traces") and as its answers.

    :raises InvalidFile: with every problem of the file.
    :raises Refused: ``no_traces`` where the sampling takes none; ``bad_name``.
    """
    found = read_traces(system, data, sampling, file_name=file_name)
    return _store(project, system, found, name=name, by=by, file_name=file_name)


def _store(
    project: Project, system: str, found: ReadTraces, *, name: str, by: User | None, file_name: str
) -> ImportedTraces:
    with transaction.atomic():
        questions = import_question_set(project, name or f"{system} traces", found.questions, by=by).question_set
        answers = import_answers(
            questions, system, found.answers, data=found.records, file_name=file_name, by=by, sha256=found.sha256
        )
    return ImportedTraces(found.read, replace(answers, remarks=(*found.remarks, *answers.remarks)))


def keep_traces(
    project: Project, system: str, data: bytes | None, file_name: str, sampling: Sampling, *, name: str, by: User | None
) -> ImportBatch:
    """Read a file of traces, or with ``None`` those that the system has sent, and keep what was read, masked, for its
    confirmation.

    :raises InvalidFile: with every problem of the file.
    :raises Refused: ``no_traces`` where none are whole, or the sampling takes none; ``bad_name``.
    """
    system = clean_name(system)
    rows = _whole(project, system, QUIET_SECONDS) if data is None else []
    if data is None:
        data, sampling = _joined(system, rows), _as_sent(sampling)
    found = read_traces(system, data, sampling, file_name=file_name)
    told = {"questions": clean_name(name or f"{system} traces"), "rate": sampling.rate, "rules": sampling.rules}
    options = {**told, "remarks": [asdict(one) for one in found.remarks], "sent": [row.pk for row in rows]}
    many = len(found.answers.answers)
    return keep_file(
        project, TRACE_FILE, system, file_name, found.records, options=options, rows=many, by=by, sha256=found.sha256
    )


def preview_traces(batch: ImportBatch) -> ReadTraces:
    """What confirming the upload would import.

    :raises Refused: ``upload_expired``.
    """
    options = batch.options
    sampling = Sampling(options["rate"], tuple(options["rules"]))
    remarks = tuple(Problem(**one) for one in options["remarks"])
    return _sampled(batch.name, kept_file(batch), sampling, remarks, batch.file_sha256)


def confirm_traces(batch: ImportBatch, by: User | None) -> ImportedTraces | None:
    """Import a waiting upload, whose answer set is then ``batch.result_id``; ``None`` where somebody did before.

    :raises Refused: ``upload_expired``; ``no_traces`` where somebody has imported some of what was sent meanwhile.
    """
    kept_file(batch)
    with transaction.atomic():
        lock_project(batch.project_id)
        if not claim_upload(batch):
            return None
        found, name = preview_traces(batch), batch.options["questions"]
        done = _store(batch.project, batch.name, found, name=name, by=by, file_name=batch.file_name)
        if not _taken(batch.project, batch.options["sent"], done):
            raise Refused("no_traces", system=batch.name)
        ImportBatch.objects.filter(pk=batch.pk).update(result_id=done.answers.run.answer_set_id, content=b"")
    batch.refresh_from_db()
    return done


def _by_trace() -> Shape:
    """The shape of traces, in which the trace names the question: several may ask the same."""
    shape = shipped()["otlp"]
    assert shape.answers is not None  # noqa: S101  -- tells the type checker
    return shape.model_copy(update={"answers": shape.answers.model_copy(update={"question_id": ("otlp_trace_id",)})})


def import_received(
    project: Project,
    system: str,
    *,
    name: str = "",
    sampling: Sampling = Sampling(),
    quiet_seconds: float = QUIET_SECONDS,
    by: User | None = None,
) -> ImportedTraces:
    """Import the traces that a system has sent and to which no span was added for ``quiet_seconds``, all once; spans
    that other services sent of the same traces belong to them.

    :raises Refused: ``no_traces``; then they go on waiting.
    """
    with transaction.atomic():
        lock_project(project.pk)
        rows = _whole(project, system, quiet_seconds)
        done = import_traces(project, system, _joined(system, rows), name=name, sampling=_as_sent(sampling), by=by)
        _taken(project, [row.pk for row in rows], done)
    return done


def _as_sent(sampling: Sampling) -> Sampling:
    """With what the operator has masked in all that is sent, which may be more than when it came in."""
    return replace(sampling, masks=(*settings.CONCORD_TRACE_MASKS, *sampling.masks))


def _joined(system: str, rows: Sequence[ImportBatch]) -> bytes:
    if not rows:
        raise Refused("no_traces", system=system)
    return b"\n".join(bytes(row.content) for row in rows)


def _taken(project: Project, sent: Sequence[int], done: ImportedTraces) -> bool:
    """Let what was sent wait no longer; whether all of it did until now."""
    waited = _waiting(project).filter(pk__in=sent)
    found = waited.update(state=State.CONFIRMED, content=b"", result_id=done.answers.run.answer_set_id)
    return bool(found == len(sent))


def _whole(project: Project, system: str, quiet_seconds: float) -> Sequence[ImportBatch]:
    """The rows of the system's traces that are whole, as many traces as fit into an upload."""
    ids = _waiting(project).filter(name=system).values("file_name")
    ended = (
        _waiting(project).filter(file_name__in=ids).values("file_name").annotate(last=Max("created_at"))
        .filter(last__lte=timezone.now() - timedelta(seconds=quiet_seconds))
    )  # fmt: skip
    rows = _waiting(project).filter(file_name__in=ended.values("file_name")).order_by("file_name", "id")
    taken: list[ImportBatch] = []
    size = 0
    for _, trace in groupby(rows, key=lambda row: row.file_name):
        part = list(trace)
        size += sum(len(row.content) + 1 for row in part)
        if taken and size > settings.CONCORD_UPLOAD_BYTES:
            break
        taken += part
    return taken
