"""Answer files: the answers of one system become an answer set and a run with its rule metrics, without a judge.

The file is read once, row by row, and what was read is kept aside in a temporary file until everything is checked. Then
the answers are stored some hundred at a time, in a set that nobody sees before the last of them is there; one
that was broken off never counts.
"""

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
from evaluation.core.canonical import canonical_json, clean_name, composed
from evaluation.core.errors import InvalidFile, Problem
from evaluation.core.samples import ContextSpec
from evaluation.formats.answer_rows import AnswerFile, AnswerRow
from evaluation.formats.aside import KeptAside
from evaluation.formats.reading import display_name, read_answers
from evaluation.formats.streaming import AnswerStream, Source
from evaluation.judges.shipping import profile_row
from evaluation.models import Answer, AnswerSet, Context, ProfileVersion, Project, QuestionSet, Run, SystemVersion, User
from evaluation.models.run_spec import RunSpec
from evaluation.runs.answer_matching import PASSAGES_UNMATCHED, Answered, Matching
from evaluation.runs.draining import drain
from evaluation.runs.making import prepare_run
from evaluation.storage.statements import insert_values
from evaluation.systems.services import version_with
from evaluation.worker.lifecycle import start

Tick = Callable[[int], None]  # for whoever watches: how many rows are read
BATCH = 250  # answers in one transaction, which lets others write after a tenth of a second
SHOWN = 5  # answers shown in the preview, enough to see whether columns were understood
PATIENCE = 3600.0  # seconds that rules may take before the rest is left to the workers


@dataclass(frozen=True, slots=True)
class ImportedAnswers:
    """The answer set and run of a file. ``created`` is false where both existed already; ``remarks`` (explained by
    ``evaluation.messages.sentences.explain``) say so, and what else a person should know. ``missing`` are the ids of
    questions without an answer, in the order of the set."""

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
    """Read, store and score an answer file; the run, complete unless its rules took longer than ``PATIENCE``.

    :raises InvalidFile: with every problem; nothing is imported then.
    :raises Refused: ``bad_name`` for a system name that cannot be stored.
    """
    file = read_answers(data, file_name, max_bytes=settings.CONCORD_UPLOAD_BYTES)
    imported = import_answers(question_set, system, file, data=data, file_name=file_name, by=by, name=name)
    return score_by_rules(imported.run)


def score_by_rules(run: Run, *, seconds: float = PATIENCE) -> Run:
    """Do the run's open units here and now, whatever the dispatcher; what remains after ``seconds`` is rung for."""
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
    """Store the answers as one answer set and start its run. ``sha256`` is of the file as it came, where ``data`` is
    what was made of it. ``refuse_unknown_passages``: nobody was asked whether a file is meant of which no passage is
    among those that should be found.

    Answers equal in everything but metadata, of the same system to the same version of the question set with the same
    ``k``, are the answer set that is there already, with its run.

    :raises InvalidFile: ``question_unknown``, ``question_ambiguous``, ``duplicate_answer``, with their lines, and what
        a stream finds; ``passages_unmatched`` where that is to be refused.
    """
    shown = display_name(file_name)
    with Checked(question_set, shown, file) as checked:
        if refuse_unknown_passages and (asks := [one for one in checked.told if one.code == PASSAGES_UNMATCHED]):
            raise InvalidFile(asks)
        name_of_system = clean_name(system or checked.facts.system)
        filling = prepared(checked, name_of_system, by=by, source=shown, sha256=sha256 or sha256_of(data), k=k)
        if filling.is_unfinished:
            for _ in checked.store(filling):
                pass
        found = completed(filling, checked.content_hash, name=name, by=by)
        remarks = checked.remarks(name_of_system)
        missing = checked.missing
    if found is None:
        raise ValueError("nobody was asked whether it is wanted")
    run, created = found
    start(run, by)
    if not created:
        remarks.append(Problem("answers_unchanged", shown, params={"answers": run.answer_set_id, "run": run.pk}))
    return ImportedAnswers(run, created, missing, tuple(remarks))


def prepared(checked: Checked, system: str, *, by: User | None, source: str, sha256: str, k: int = 5) -> AnswerSet:
    """The set that the answers are to be stored in, which nobody sees yet; or the one that has them already."""
    questions = checked.question_set
    with transaction.atomic():
        lock_project(questions.project_id)
        version = recorded_version(questions.project, system, by)
        return _existing(questions, version, checked.content_hash, k) or AnswerSet.every.create(
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


def completed(
    answers: AnswerSet,
    content_hash: str,
    *,
    name: str = "",
    by: User | None,
    still: Callable[[], object] | None = None,
) -> tuple[Run, bool] | None:
    """Let stored answers count; their run, which is to be started, and whether it is a new set. Where others completed
    a set of equal answers meanwhile that one counts, and these never do. ``None`` where ``still``, asked in the same
    transaction, says that nobody wants them any more."""
    project = answers.project
    with transaction.atomic():
        lock_project(project.pk)
        if still is not None and not still():
            return None
        same = _existing(answers.question_set, answers.system_version, content_hash, answers.k)
        if same is None:
            AnswerSet.every.filter(pk=answers.pk).update(content_hash=content_hash, is_unfinished=False)
            answers.refresh_from_db()
            audit.record(by, "answer_set.imported", answers, hash=content_hash, sha256=answers.file_sha256)
        counts = same or answers
        profile = profile_row(project)
        run = (_rules_run(counts, profile) if same else None) or prepare_run(
            counts, profile, RunSpec(name=name), judge=None, by=by
        )
    return run, same is None


_AT_ONCE = 1024 * 1024  # bytes


def sha256_of(data: bytes | Source) -> str:
    """Of the file as it came."""
    if isinstance(data, bytes):
        return hashlib.sha256(data).hexdigest()
    digest = hashlib.sha256()
    with data.open() as file:
        while piece := file.read(_AT_ONCE):
            digest.update(piece)
    return digest.hexdigest()


def recorded_version(project: Project, system: str, by: User | None) -> SystemVersion:
    """The version of a system whose answers are recorded elsewhere, made with the system on first use."""
    return version_with(project, system, RECORDED, {}, by)


def _content(row: AnswerRow) -> dict[str, object]:
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


def _existing(question_set: QuestionSet, version: SystemVersion, content_hash: str, k: int) -> AnswerSet | None:
    same = AnswerSet.objects.filter(question_set=question_set, system_version=version, k=k)
    return same.filter(content_hash=content_hash).order_by("-id").first()


def _rules_run(answers: AnswerSet, profile: ProfileVersion) -> Run | None:
    """The newest run of all the answers under the profile that has no judge and was not cancelled."""
    runs = answers.runs.filter(profile_version=profile, judges__isnull=True, config__question_ids=[])
    return runs.exclude(state=Run.State.CANCELLED).order_by("-id").first()


class Checked:
    """An answer file that was read and checked as a whole: its rows, kept aside in their order, and their hash.

    ``rows`` is how many answers there are, ``failed`` how many of them say why there is none, or have none,
    ``passages`` how many came with passages, ``first`` are some of them; ``retrieval_only`` tells that none says
    anything. ``missing`` are the ids of questions without an answer, ``told`` what should be known of the matching.

    :raises InvalidFile: when it is made, with every problem of the file.
    """

    def __init__(
        self, question_set: QuestionSet, file_name: str, file: AnswerFile | AnswerStream, tick: Tick | None = None
    ) -> None:
        self.question_set = question_set
        self.rows = self.failed = self.passages = 0
        self.retrieval_only = True
        self.first: list[Answered] = []
        self._aside = KeptAside[Answered]()
        self._contents = TemporaryFile()  # noqa: SIM115 -- closed at the end
        places: list[tuple[str, int, int, int]] = []  # id, sample, and where the content stands
        matching, at = Matching(question_set, file_name), 0
        try:
            for row in file:
                if (found := matching.match(row)) is None:
                    continue
                self._aside.append(found)
                text = canonical_json(_content(row) | {"question": composed(found.external_id)}).encode()
                places.append((composed(found.external_id), row.sample, at, len(text)))
                at += self._contents.write(text)
                self._count(found)
                if tick and self.rows % BATCH == 0:
                    tick(self.rows)
            self.missing, self.told = matching.finish()
            if file.facts is None:  # the last row was read
                raise ValueError("the file has no facts")
            self.facts = file.facts
            self.content_hash = self._hashed(question_set, places)
        except BaseException:  # whatever it is goes on; the temporary files are closed before
            self._close()
            raise

    def _count(self, found: Answered) -> None:
        row = found.row
        self.rows += 1
        self.failed += bool(row.error) or not row.answered
        self.passages += bool(row.answer.contexts)
        self.retrieval_only = self.retrieval_only and not (row.answered or row.error)
        if len(self.first) < SHOWN:
            self.first.append(found)

    def remarks(self, system: str) -> list[Problem]:
        """What a person should know, of the file and of answers that are said to be of this system."""
        found = [*self.facts.remarks, *self.told]
        if self.facts.system and composed(self.facts.system) != system:  # allowed, but said
            found.append(Problem("system_differs", params={"given": system, "file_says": self.facts.system}))
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._close()

    def _close(self) -> None:
        self._aside.close()
        self._contents.close()

    def _hashed(self, question_set: QuestionSet, places: list[tuple[str, int, int, int]]) -> str:
        """The content hash of a complete answer set: the canonical JSON of the questions' hash and every answer with
        all but its metadata, by question and sample, put together without ever being held as a whole."""
        digest = hashlib.sha256(f"[{canonical_json(question_set.content_hash)},[".encode())
        for place, (_, _, at, length) in enumerate(sorted(places)):
            self._contents.seek(at)
            digest.update((b"," if place else b"") + self._contents.read(length))
        digest.update(b"]]")
        return digest.hexdigest()

    def __iter__(self) -> Iterator[Answered]:
        """The rows in the file's order."""
        return iter(self._aside)

    def store(self, answers: AnswerSet) -> Iterator[int]:
        """Store the answers that the set does not have yet, each batch in a transaction of its own; how many it has
        then. Whoever was broken off goes on here."""
        stored = answers.answers.count()
        left = islice(self, stored, None)
        while batch := list(islice(left, BATCH)):
            with transaction.atomic():
                _insert(answers, batch)
            yield (stored := stored + len(batch))


_ANSWER = (
    *("created_at", "answer_set_id", "question_id", "sample", "round", "status", "reason", "text", "text_hash"),
    *("latency_seconds", "confidence", "retrieves", "retrieved_ids", "metadata"),
)
_CONTEXT = ("created_at", "answer_id", "position", "chunk_id", "text", "score", "source", "metadata")


def _insert(answers: AnswerSet, batch: Sequence[Answered]) -> None:
    now, retrieval_only = timezone.now(), answers.evaluation_type == "retrieval_only"
    insert_values(Answer, _ANSWER, [(now, answers.pk, *_values(found, retrieval_only)) for found in batch])
    rows = Answer.objects.filter(answer_set=answers, question_id__in={found.question_pk for found in batch})
    ids = {(question, sample): pk for pk, question, sample in rows.values_list("pk", "question_id", "sample")}
    insert_values(
        Context,
        _CONTEXT,
        [
            (now, ids[found.question_pk, found.row.sample], place, *_passage(context))
            for found in batch
            for place, context in enumerate(found.row.answer.contexts or ())
        ],
    )


def _passage(context: ContextSpec) -> tuple[object, ...]:
    return context.chunk_id, context.text, context.score, context.source, dict(context.metadata)


def _values(found: Answered, retrieval_only: bool) -> tuple[object, ...]:
    row, spec = found.row, found.row.answer
    reason = f"reported: {row.error}" if row.error else "" if row.answered or retrieval_only else "no_answer"
    return (
        *(found.question_pk, row.sample, 0, "failed" if reason else "ok", reason),
        *(spec.text, hashlib.sha256(spec.text.encode()).hexdigest(), spec.latency_seconds, row.confidence),
        *(spec.contexts is not None, None if spec.retrieved_ids is None else list(spec.retrieved_ids)),
        dict(row.metadata),
    )
