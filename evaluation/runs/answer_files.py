"""Answer files: import one system's answers as an answer set, with a run of rule metrics without a judge.

The file is parsed once, row by row, into a temporary file. After validation the answers are stored in batches, in a set
that stays hidden until it is complete. An interrupted import never becomes visible."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from tempfile import TemporaryFile
from typing import Self

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.connectors.protocol import RECORDED
from evaluation.core.canonical import canonical_json, clean_name, normalize_nfc
from evaluation.core.errors import InvalidFile, Problem
from evaluation.core.samples import ContextSpec
from evaluation.formats.answer_rows import AnswerFile, AnswerRow
from evaluation.formats.reading import display_name, read_answers
from evaluation.formats.spool import SpooledSequence
from evaluation.formats.streaming import AnswerStream, Source
from evaluation.judges.shipped import profile_row
from evaluation.models import Answer, AnswerSet, Context, ProfileVersion, Project, QuestionSet, Run, SystemVersion, User
from evaluation.models.run_spec import RunSpec
from evaluation.runs.answer_matching import PASSAGES_UNMATCHED, MatchedRow, QuestionMatcher
from evaluation.runs.creation import prepare_run
from evaluation.runs.execution import drain
from evaluation.storage.statements import insert_values
from evaluation.systems.services import get_or_create_system_version
from evaluation.worker.lifecycle import start

# Receives the number of rows read.
ProgressCallback = Callable[[int], None]
# Small enough that other writers wait for about a tenth of a second.
ANSWERS_PER_TRANSACTION = 250
# Enough to see whether the columns were understood.
PREVIEW_ROWS = 5
# After this time the workers compute the remaining rules.
RULE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class ImportedAnswers:
    """The answer set and run of a file. ``created`` is false if both already existed; ``remarks`` (explained by
    ``evaluation.messages.explanations.explain``) tell that and more. ``missing`` are the ids of questions without an
    answer, in the order of the set."""

    run: Run
    created: bool
    missing: tuple[str, ...]
    remarks: tuple[Problem, ...]


def import_answer_file(
    question_set: QuestionSet,
    system: str,
    data: bytes,
    file_name: str,
    *,
    by: User | None,
    name: str = "",
) -> Run:
    """Parse, store and score an answer file; the run, complete unless its rules took longer than ``RULE_SECONDS``.

    :raises InvalidFile: with every problem; nothing is imported then.
    :raises DomainError: ``bad_name`` for an invalid system name."""
    file = read_answers(data, file_name, max_bytes=settings.CONCORD_UPLOAD_BYTES)
    imported = import_answers(question_set, system, file, data=data, file_name=file_name, by=by, name=name)
    return score_by_rules(imported.run)


def score_by_rules(run: Run, *, seconds: float = RULE_SECONDS) -> Run:
    """Process the run's open units in this process, whatever the dispatcher; the rest is enqueued after ``seconds``."""
    return drain(run.pk, seconds=seconds) if run.state == Run.State.RUNNING else run


def import_answers(
    question_set: QuestionSet,
    system: str,
    file: AnswerFile | AnswerStream,
    *,
    data: bytes | Source,
    file_name: str,
    by: User | None,
    name: str = "",
    k: int = 5,
    sha256: str = "",
    refuse_unknown_passages: bool = False,
) -> ImportedAnswers:
    """Store the answers as one answer set and start its run. ``sha256`` is the hash of the original file if ``data``
    was converted from it. ``refuse_unknown_passages`` refuses a file without any expected passage, because nobody can
    confirm it.

    If the system already gave equal answers (apart from metadata) to the same version of the question set with the same
    ``k``, returns the existing answer set and its run.

    :raises InvalidFile: ``question_unknown``, ``question_ambiguous``, ``duplicate_answer``, with their lines, and
        problems of a stream; ``passages_unmatched`` if that is refused."""
    short_name = display_name(file_name)
    with CheckedAnswers(question_set, short_name, file) as checked:
        if refuse_unknown_passages and (
            unknown_passages := [problem for problem in checked.match_remarks if problem.code == PASSAGES_UNMATCHED]
        ):
            raise InvalidFile(unknown_passages)
        name_of_system = clean_name(system or checked.facts.system)
        answer_set = prepare_answer_set(
            checked, name_of_system, by=by, source=short_name, sha256=sha256 or sha256_of(data), k=k
        )
        if answer_set.is_unfinished:
            for _ in checked.store(answer_set):
                pass
        run_and_created = complete_answer_set(answer_set, checked.content_hash, name=name, by=by)
        remarks = checked.remarks(name_of_system)
        missing = checked.missing
    if run_and_created is None:
        raise ValueError("nobody was asked whether it is wanted")
    run, created = run_and_created
    start(run, by)
    if not created:
        remarks.append(Problem("answers_unchanged", short_name, params={"answers": run.answer_set_id, "run": run.pk}))
    return ImportedAnswers(run, created, missing, tuple(remarks))


def prepare_answer_set(
    checked: CheckedAnswers, system: str, *, by: User | None, source: str, sha256: str, k: int = 5
) -> AnswerSet:
    """Create the hidden answer set to fill, or return an existing set with equal answers."""
    questions = checked.question_set
    with transaction.atomic():
        lock_project(questions.project_id)
        version = recorded_version(questions.project, system, by)
        return _equal_answer_set(questions, version, checked.content_hash, k) or AnswerSet.all_objects.create(
            is_unfinished=True,
            project_id=questions.project_id,
            question_set=questions,
            system_version=version,
            evaluation_type="retrieval_only" if checked.retrieval_only else "full_rag",
            k=k,
            source=source,
            file_sha256=sha256,
            created_by=by,
        )


def complete_answer_set(
    answers: AnswerSet,
    content_hash: str,
    *,
    name: str = "",
    by: User | None,
    may_publish: Callable[[], object] | None = None,
) -> tuple[Run, bool] | None:
    """Publish stored answers; their run, which the caller starts, and whether the set is new.

    If an equal set was completed meanwhile, that one is used instead. ``None`` if ``may_publish``, called in the same
    transaction, is false."""
    project = answers.project
    with transaction.atomic():
        lock_project(project.pk)
        if may_publish is not None and not may_publish():
            return None
        equal_set = _equal_answer_set(answers.question_set, answers.system_version, content_hash, answers.k)
        if equal_set is None:
            AnswerSet.all_objects.filter(pk=answers.pk).update(content_hash=content_hash, is_unfinished=False)
            answers.refresh_from_db()
            audit.record(by, "answer_set.imported", answers, hash=content_hash, sha256=answers.file_sha256)
        counted_set = equal_set or answers
        profile = profile_row(project)
        run = (_rules_run(counted_set, profile) if equal_set else None) or prepare_run(
            counted_set, profile, RunSpec(name=name), judge=None, by=by
        )
    return run, equal_set is None


_READ_BYTES = 1024 * 1024


def sha256_of(data: bytes | Source) -> str:
    """The SHA-256 of the original file."""
    if isinstance(data, bytes):
        return hashlib.sha256(data).hexdigest()
    digest = hashlib.sha256()
    with data.open() as file:
        while piece := file.read(_READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def recorded_version(project: Project, system: str, by: User | None) -> SystemVersion:
    """The version of a system with imported answers, created with the system on first use."""
    return get_or_create_system_version(project, system, RECORDED, {}, by)


def _row_content(row: AnswerRow) -> dict[str, object]:
    spec = row.answer
    contexts = None if spec.contexts is None else [[c.chunk_id, c.text, c.score, c.source] for c in spec.contexts]
    return {
        "sample": row.sample,
        "text": spec.text if row.answered else None,
        "contexts": contexts,
        "retrieved_ids": None if spec.retrieved_ids is None else list(spec.retrieved_ids),
        "latency_seconds": spec.latency_seconds,
        "confidence": row.confidence,
        "error": row.error,
    }


def _equal_answer_set(question_set: QuestionSet, version: SystemVersion, content_hash: str, k: int) -> AnswerSet | None:
    candidates = AnswerSet.objects.filter(question_set=question_set, system_version=version, k=k)
    return candidates.filter(content_hash=content_hash).order_by("-id").first()


def _rules_run(answers: AnswerSet, profile: ProfileVersion) -> Run | None:
    """The newest run of all the answers under the profile without a judge that was not cancelled."""
    runs = answers.runs.filter(profile_version=profile, judges__isnull=True, config__question_ids=[])
    return runs.exclude(state=Run.State.CANCELLED).order_by("-id").first()


class CheckedAnswers:
    """A parsed and validated answer file: its rows in a temporary file, and their hash.

    ``rows`` is the number of answers, ``failed`` the number without one, ``passages`` the number with passages,
    ``first`` are samples; ``retrieval_only`` is true if no row has a text. ``missing`` are the ids of questions without
    an answer, ``match_remarks`` the remarks on matching.

    :raises InvalidFile: on creation, with every problem of the file."""

    def __init__(
        self,
        question_set: QuestionSet,
        file_name: str,
        file: AnswerFile | AnswerStream,
        on_progress: ProgressCallback | None = None,
    ) -> None:
        self.question_set = question_set
        self.rows = self.failed = self.passages = 0
        self.retrieval_only = True
        self.first_rows: list[MatchedRow] = []
        self._spooled_rows = SpooledSequence[MatchedRow]()
        self._contents = TemporaryFile()  # noqa: SIM115 -- closed at the end
        # Id, sample, position and length of the content.
        offsets: list[tuple[str, int, int, int]] = []
        matching, position = QuestionMatcher(question_set, file_name), 0
        try:
            for row in file:
                if (matched_row := matching.match(row)) is None:
                    continue
                self._spooled_rows.append(matched_row)
                text = canonical_json(_row_content(row) | {"question": normalize_nfc(matched_row.external_id)}).encode()
                offsets.append((normalize_nfc(matched_row.external_id), row.sample, position, len(text)))
                position += self._contents.write(text)
                self._count(matched_row)
                if on_progress and self.rows % ANSWERS_PER_TRANSACTION == 0:
                    on_progress(self.rows)
            self.missing, self.match_remarks = matching.finish()
            # Facts are set once the last row was read.
            if file.facts is None:
                raise ValueError("the file has no facts")
            self.facts = file.facts
            self.content_hash = self._digest_rows(question_set, offsets)
        # Close the temporary files on any error.
        except BaseException:
            self._close()
            raise

    def _count(self, matched_row: MatchedRow) -> None:
        row = matched_row.row
        self.rows += 1
        self.failed += bool(row.error) or not row.answered
        self.passages += bool(row.answer.contexts)
        self.retrieval_only = self.retrieval_only and not (row.answered or row.error)
        if len(self.first_rows) < PREVIEW_ROWS:
            self.first_rows.append(matched_row)

    def remarks(self, system: str) -> list[Problem]:
        """Remarks on the file, given the name of the system."""
        problems = [*self.facts.remarks, *self.match_remarks]
        # Another system name in the file is allowed, but reported.
        if self.facts.system and normalize_nfc(self.facts.system) != system:
            problems.append(Problem("system_differs", params={"given": system, "file_says": self.facts.system}))
        return problems

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._close()

    def _close(self) -> None:
        self._spooled_rows.close()
        self._contents.close()

    def _digest_rows(self, question_set: QuestionSet, offsets: list[tuple[str, int, int, int]]) -> str:
        """The content hash of the answer set: canonical JSON of the questions' hash and of all answers without
        metadata, by question and sample. Streamed, never held in memory as a whole."""
        digest = hashlib.sha256(f"[{canonical_json(question_set.content_hash)},[".encode())
        for index, (_, _, position, length) in enumerate(sorted(offsets)):
            self._contents.seek(position)
            digest.update((b"," if index else b"") + self._contents.read(length))
        digest.update(b"]]")
        return digest.hexdigest()

    def __iter__(self) -> Iterator[MatchedRow]:
        return iter(self._spooled_rows)

    def store(self, answers: AnswerSet) -> Iterator[int]:
        """Store the answers that the set lacks, one transaction per batch, and yield the count stored so far. Continues
        an interrupted import."""
        count = answers.answers.count()
        remaining = islice(self, count, None)
        while batch := list(islice(remaining, ANSWERS_PER_TRANSACTION)):
            with transaction.atomic():
                _insert_answers(answers, batch)
            yield (count := count + len(batch))


_ANSWER = (
    *("created_at", "answer_set_id", "question_id", "sample", "round", "status", "reason", "text", "text_hash"),
    *("latency_seconds", "confidence", "retrieves", "retrieved_ids", "metadata"),
)
_CONTEXT = ("created_at", "answer_id", "position", "chunk_id", "text", "score", "source", "metadata")


def _insert_answers(answers: AnswerSet, batch: Sequence[MatchedRow]) -> None:
    now, retrieval_only = timezone.now(), answers.evaluation_type == "retrieval_only"
    insert_values(
        Answer, _ANSWER, [(now, answers.pk, *_answer_values(matched_row, retrieval_only)) for matched_row in batch]
    )
    rows = Answer.objects.filter(answer_set=answers, question_id__in={matched_row.question_pk for matched_row in batch})
    ids = {(question, sample): pk for pk, question, sample in rows.values_list("pk", "question_id", "sample")}
    insert_values(
        Context,
        _CONTEXT,
        [
            (now, ids[matched_row.question_pk, matched_row.row.sample], position, *_context_values(context))
            for matched_row in batch
            for position, context in enumerate(matched_row.row.answer.contexts or ())
        ],
    )


def _context_values(context: ContextSpec) -> tuple[object, ...]:
    return context.chunk_id, context.text, context.score, context.source, dict(context.metadata)


def _answer_values(matched_row: MatchedRow, retrieval_only: bool) -> tuple[object, ...]:
    row, spec = matched_row.row, matched_row.row.answer
    reason = f"reported: {row.error}" if row.error else "" if row.answered or retrieval_only else "no_answer"
    return (
        *(matched_row.question_pk, row.sample, 0, "failed" if reason else "ok", reason),
        *(spec.text, hashlib.sha256(spec.text.encode()).hexdigest(), spec.latency_seconds, row.confidence),
        *(spec.contexts is not None, None if spec.retrieved_ids is None else list(spec.retrieved_ids)),
        dict(row.metadata),
    )
