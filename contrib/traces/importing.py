"""Imports traces as a question set and its answers, from a file or received by OTLP.

Received traces are stored as uploads, one row for each trace in a request, for at most a day. Secrets and the
operator's masks are applied before; the import masks again with the operator's current masks and those of the request.
An uploaded file is stored as its masked records until it is confirmed."""

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
from evaluation.connectors.mapping import search_path
from evaluation.core.canonical import clean_name
from evaluation.core.errors import DomainError, Problem
from evaluation.datasets.importing import import_question_set
from evaluation.datasets.uploads import claim_upload, expire_uploads, store_file, stored_content
from evaluation.formats.answer_rows import AnswerFile, AnswerRow
from evaluation.formats.question_rows import QuestionFile
from evaluation.formats.reading import read_answers, read_questions
from evaluation.formats.shaping import Shape, shipped_shapes
from evaluation.models import ImportBatch, Project, User
from evaluation.network.outcomes import replace_unstorable
from evaluation.runs.answer_files import ImportedAnswers, import_answers

TRACES, TRACE_FILE = "traces", "trace_file"
# A trace counts as complete when no span was added for so long.
QUIET_SECONDS = 60.0
FILE_NAME = "traces.jsonl"
# Characters of a system's name.
MAX_NAME_LENGTH = 200
State = ImportBatch.State


@dataclass(frozen=True, slots=True)
class Sampling:
    """Selection of traces, and masks.

    Takes all traces for which one of the ``rules`` is true (JMESPath over ``question``, ``answer``, ``error``,
    ``contexts``, ``latency_seconds`` and the trace's metadata), and of the others the share ``rate``, 0 to 1, chosen
    deterministically. ``masks`` are applied in addition to secrets, see ``contrib.traces.otlp.mask_pattern``."""

    rate: float = 1.0
    rules: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Validate the rules.

        :raises DomainError: ``rule_invalid`` for an invalid JMESPath expression."""
        for rule in self.rules:
            try:
                jmespath.compile(rule)
            except JMESPathError as error:
                raise DomainError("rule_invalid", rule=rule, detail=str(error).splitlines()[0]) from error

    def takes(self, row: AnswerRow) -> bool:
        """Return whether the trace of the answer is selected."""
        fields = {
            **row.metadata,
            "question": row.question,
            "answer": row.answer.text,
            "error": row.error,
            "latency_seconds": row.answer.latency_seconds,
            "contexts": None if row.answer.contexts is None else [context.text for context in row.answer.contexts],
        }
        return any(search_path(rule, fields) for rule in self.rules) or _hash_fraction(row.question_id) < self.rate


def _hash_fraction(trace: str) -> float:
    """Map the id's hash to 0 to 1, independently of samplers that use the id itself."""
    return int.from_bytes(hashlib.sha256(trace.encode()).digest()[:6]) / 2**48


def store_received(project: Project, data: bytes, by: User | None) -> int:
    """Store the traces of an OTLP request (JSON or protobuf) until their import; returns the number of rejected spans.

    :raises InvalidFile: for an invalid request."""
    limit, masks = settings.CONCORD_UPLOAD_BYTES, settings.CONCORD_TRACE_MASKS
    parts, rejected = read_trace_parts(data, FILE_NAME, masks=masks, max_bytes=limit)
    expire_uploads()
    ImportBatch.objects.bulk_create(_row(project, part, by) for part in parts)
    return rejected


def _row(project: Project, part: TracePart, by: User | None) -> ImportBatch:
    content = json.dumps(part.content, ensure_ascii=False).encode()
    return ImportBatch(
        uuid=uuid4(),
        project=project,
        kind=TRACES,
        name=replace_unstorable(part.service)[:MAX_NAME_LENGTH],
        file_name=part.trace,
        file_sha256=hashlib.sha256(content).hexdigest(),
        content=content,
        rows=part.spans,
        created_by=by,
    )


def pending_traces(*projects: Project) -> list[dict[str, Any]]:
    """Return the systems with pending traces: ``project`` (id), ``system``, ``traces``, and times ``first`` and
    ``last``."""
    rows = (
        _pending_rows(*projects)
        .values("project", "name")
        .annotate(traces=Count("file_name", distinct=True), first=Min("created_at"), last=Max("created_at"))
    )
    return [{"system": row.pop("name"), **row} for row in rows.order_by("project", "name")]


def _pending_rows(*projects: Project) -> Any:
    return ImportBatch.objects.filter(project__in=projects, kind=TRACES, state=State.PARSED)


@dataclass(frozen=True, slots=True)
class ReadTraces:
    """Preview of an import: the selected traces as questions and answers, of ``read`` traces with an answer or a
    failure.

    ``records`` is the stored content, ``sha256`` the hash of the original file."""

    questions: QuestionFile
    answers: AnswerFile
    read: int
    remarks: tuple[Problem, ...]
    records: bytes
    sha256: str


def read_traces(system: str, data: bytes, sampling: Sampling = Sampling(), *, file_name: str = FILE_NAME) -> ReadTraces:
    """Read and mask the traces of a file.

    :raises InvalidFile: with every problem of the file.
    :raises DomainError: ``no_traces`` if none is selected."""
    limit = settings.CONCORD_UPLOAD_BYTES
    records, remarks = read_trace_records(data, file_name, masks=sampling.masks, max_bytes=limit)
    return _apply_sampling(system, records, sampling, tuple(remarks), hashlib.sha256(data).hexdigest())


def _apply_sampling(
    system: str, records: bytes, sampling: Sampling, remarks: tuple[Problem, ...], sha256: str
) -> ReadTraces:
    question_file = read_questions(records, FILE_NAME, max_bytes=len(records))
    ids = {question.id for question in question_file.questions}
    answer_file = read_answers(records, FILE_NAME, shape=_trace_shape(), max_bytes=len(records))
    # Traces without a question are skipped.
    usable = [row for row in answer_file.answers if row.question_id in ids]
    sampled = tuple(row for row in usable if sampling.takes(row))
    if not sampled:
        raise DomainError("no_traces", system=system)
    question_ids = {row.question_id for row in sampled}
    questions = replace(
        question_file, questions=tuple(spec for spec in question_file.questions if spec.id in question_ids)
    )
    return ReadTraces(questions, replace(answer_file, answers=sampled), len(usable), remarks, records, sha256)


@dataclass(frozen=True, slots=True)
class ImportedTraces:
    """Result of an import: the stored answers, of ``read`` traces with an answer or a failure."""

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
    """Store the traces of a file as a version of the question set ``name`` (default "SYSTEM traces") with its answers.

    :raises InvalidFile: with every problem of the file.
    :raises DomainError: ``no_traces`` if none is selected; ``bad_name``."""
    traces = read_traces(system, data, sampling, file_name=file_name)
    return _store(project, system, traces, name=name, by=by, file_name=file_name)


def _store(
    project: Project, system: str, traces: ReadTraces, *, name: str, by: User | None, file_name: str
) -> ImportedTraces:
    with transaction.atomic():
        questions = import_question_set(project, name or f"{system} traces", traces.questions, by=by).question_set
        answers = import_answers(
            questions, system, traces.answers, data=traces.records, file_name=file_name, by=by, sha256=traces.sha256
        )
    return ImportedTraces(traces.read, replace(answers, remarks=(*traces.remarks, *answers.remarks)))


def store_upload(
    project: Project, system: str, data: bytes | None, file_name: str, sampling: Sampling, *, name: str, by: User | None
) -> ImportBatch:
    """Read the traces of a file, or with ``None`` the system's pending ones, and store them masked until confirmation.

    :raises InvalidFile: with every problem of the file.
    :raises DomainError: ``no_traces`` if none is complete or selected; ``bad_name``."""
    system = clean_name(system)
    rows = _complete_rows(project, system, QUIET_SECONDS) if data is None else []
    if data is None:
        data, sampling = _join_content(system, rows), _with_operator_masks(sampling)
    traces = read_traces(system, data, sampling, file_name=file_name)
    sampling_options = {
        "questions": clean_name(name or f"{system} traces"),
        "rate": sampling.rate,
        "rules": sampling.rules,
    }
    options = {
        **sampling_options,
        "remarks": [asdict(remark) for remark in traces.remarks],
        "sent": [row.pk for row in rows],
    }
    count = len(traces.answers.answers)
    return store_file(
        project, TRACE_FILE, system, file_name, traces.records, options=options, rows=count, by=by, sha256=traces.sha256
    )


def preview_traces(batch: ImportBatch) -> ReadTraces:
    """Return the import that a confirmation would make.

    :raises DomainError: ``upload_expired``."""
    options = batch.options
    sampling = Sampling(options["rate"], tuple(options["rules"]))
    remarks = tuple(Problem(**remark) for remark in options["remarks"])
    return _apply_sampling(batch.name, stored_content(batch), sampling, remarks, batch.file_sha256)


def confirm_traces(batch: ImportBatch, by: User | None) -> ImportedTraces | None:
    """Import a stored upload and set its ``result_id`` to the answer set; ``None`` if it was confirmed before.

    :raises DomainError: ``upload_expired``; ``no_traces`` if some of the pending traces have been imported
    meanwhile."""
    stored_content(batch)
    with transaction.atomic():
        lock_project(batch.project_id)
        if not claim_upload(batch):
            return None
        traces, name = preview_traces(batch), batch.options["questions"]
        imported = _store(batch.project, batch.name, traces, name=name, by=by, file_name=batch.file_name)
        if not _mark_imported(batch.project, batch.options["sent"], imported):
            raise DomainError("no_traces", system=batch.name)
        ImportBatch.objects.filter(pk=batch.pk).update(result_id=imported.answers.run.answer_set_id, content=b"")
    batch.refresh_from_db()
    return imported


def _trace_shape() -> Shape:
    """Return the trace shape with the trace id as question id, because traces may share a question."""
    shape = shipped_shapes()["otlp"]
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
    """Import the pending traces of a system that are complete, once, with spans that other services sent of them.

    :raises DomainError: ``no_traces``; the traces stay pending then."""
    with transaction.atomic():
        lock_project(project.pk)
        rows = _complete_rows(project, system, quiet_seconds)
        imported = import_traces(
            project, system, _join_content(system, rows), name=name, sampling=_with_operator_masks(sampling), by=by
        )
        _mark_imported(project, [row.pk for row in rows], imported)
    return imported


def _with_operator_masks(sampling: Sampling) -> Sampling:
    """Add the operator's current masks, which may be more than at reception."""
    return replace(sampling, masks=(*settings.CONCORD_TRACE_MASKS, *sampling.masks))


def _join_content(system: str, rows: Sequence[ImportBatch]) -> bytes:
    if not rows:
        raise DomainError("no_traces", system=system)
    return b"\n".join(bytes(row.content) for row in rows)


def _mark_imported(project: Project, row_ids: Sequence[int], imported: ImportedTraces) -> bool:
    """Mark the pending rows as imported; returns whether all of them were still pending."""
    pending = _pending_rows(project).filter(pk__in=row_ids)
    updated = pending.update(state=State.CONFIRMED, content=b"", result_id=imported.answers.run.answer_set_id)
    return bool(updated == len(row_ids))


def _complete_rows(project: Project, system: str, quiet_seconds: float) -> Sequence[ImportBatch]:
    """Return the rows of the system's complete traces, limited to the size of an upload."""
    ids = _pending_rows(project).filter(name=system).values("file_name")
    complete = (
        _pending_rows(project).filter(file_name__in=ids).values("file_name").annotate(last=Max("created_at"))
        .filter(last__lte=timezone.now() - timedelta(seconds=quiet_seconds))
    )  # fmt: skip
    rows = _pending_rows(project).filter(file_name__in=complete.values("file_name")).order_by("file_name", "id")
    selected: list[ImportBatch] = []
    size = 0
    for _, trace in groupby(rows, key=lambda row: row.file_name):
        part = list(trace)
        size += sum(len(row.content) + 1 for row in part)
        if selected and size > settings.CONCORD_UPLOAD_BYTES:
            break
        selected += part
    return selected
