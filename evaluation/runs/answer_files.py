"""Answer files: the answers of one system become an answer set and a run with its rule metrics, without a judge."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from django.conf import settings
from django.db import transaction

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.asking.session import contexts_of
from evaluation.asking.systems import version_with
from evaluation.core.canonical import clean_name, composed, content_hash
from evaluation.core.errors import InvalidFile, Problem
from evaluation.files.answer_rows import AnswerFile, AnswerRow
from evaluation.files.reading import display_name, read_answers
from evaluation.judges.shipping import profile_row
from evaluation.models import (
    Answer,
    AnswerSet,
    Context,
    ProfileVersion,
    Project,
    QuestionSet,
    Run,
    SystemVersion,
    User,
)
from evaluation.profiles.spec import DEFAULT_PROFILE
from evaluation.runs.draining import drain
from evaluation.runs.making import prepare_run
from evaluation.systems.protocol import RECORDED
from evaluation.work.lifecycle import start

MOST_HINTS = 20  # near matches are looked for this often: each look walks over all ids
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Answered:
    """A row with the question it answers."""

    row: AnswerRow
    question_pk: int
    external_id: str


@dataclass(frozen=True, slots=True)
class _Known:
    """The questions of the set, to be found by id and by text, both composed (NFC)."""

    by_id: Mapping[str, tuple[int, str, str]]
    by_text: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, question_set: QuestionSet) -> _Known:
        by_id: dict[str, tuple[int, str, str]] = {}
        by_text: dict[str, list[str]] = {}
        rows = question_set.questions.order_by("position").values_list("pk", "external_id", "text")
        for pk, external_id, text in rows:
            by_id[composed(external_id)] = (pk, external_id, composed(text).strip())
            by_text.setdefault(composed(text).strip(), []).append(composed(external_id))
        return cls(by_id, by_text)


def matched_rows(
    question_set: QuestionSet, file: AnswerFile, file_name: str
) -> tuple[list[Answered], tuple[str, ...], list[Problem]]:
    """Find the question of every row, by its id, else by its text where only one question has it: the rows in the
    file's order, the ids of questions without any, and what a person should be told.

    :raises InvalidFile: with every row that names no question, several, or one that another row answered already.
    """
    known = _Known.of(question_set)
    problems: list[Problem] = []
    rows: list[Answered] = []
    first: dict[tuple[str, int], int] = {}
    for row in file.answers:
        found = _resolve(row, known, len(problems) < MOST_HINTS)
        if isinstance(found, Problem):
            problems.append(replace(found, file=file_name, line=row.line))
            continue
        key = (found.external_id, row.sample)
        if key in first:
            about = {"question": found.external_id, "sample": row.sample, "first_line": first[key]}
            problems.append(Problem("duplicate_answer", file_name, row.line, "sample", about))
            continue
        first[key] = row.line
        rows.append(found)
    if problems:
        raise InvalidFile(problems)
    there = {found.external_id for found in rows}
    missing = tuple(id_ for _, id_, _ in known.by_id.values() if id_ not in there)
    return rows, missing, _remarks(rows, missing, known, file_name)


def _resolve(row: AnswerRow, known: _Known, hint: bool) -> Answered | Problem:
    id_ = composed(row.question_id)
    if not id_:
        ids = known.by_text.get(composed(row.question).strip(), ())
        if len(ids) > 1:
            return Problem("question_ambiguous", field="question", params={"ids": ", ".join(ids[:MOST_NAMED])})
        if not ids:
            return Problem("question_text_unknown", field="question", params={"question": row.question[:80]})
        id_ = ids[0]
    if id_ not in known.by_id:
        near = get_close_matches(id_, known.by_id, n=3) if hint else []
        if near:
            return Problem("question_unknown_near", field="question_id", params={"id": id_, "near": ", ".join(near)})
        return Problem("question_unknown", field="question_id", params={"id": id_})
    pk, external_id, _ = known.by_id[id_]
    return Answered(row, pk, external_id)


def _remarks(rows: Sequence[Answered], missing: Sequence[str], known: _Known, file_name: str) -> list[Problem]:
    remarks = []
    if missing:
        shown = ", ".join(missing[:MOST_NAMED]) + (", …" if len(missing) > MOST_NAMED else "")
        remarks.append(Problem("answers_missing", file_name, params={"questions": len(missing), "ids": shown}))
    other = sum(
        bool(found.row.question) and composed(found.row.question).strip() != known.by_id[composed(found.external_id)][2]
        for found in rows
    )
    if other:
        remarks.append(Problem("question_text_differs", file_name, params={"rows": other}))
    return remarks


BATCH = 1000
PATIENCE = 3600.0  # seconds that rules may take before the rest is left to the workers


@dataclass(frozen=True, slots=True)
class ImportedAnswers:
    """The answer set and run of a file. ``created`` is false where both existed already; ``remarks`` (explained by
    ``evaluation.wording.messages.explain``) say so, and what else a person should know. ``missing`` are the ids of
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
    file: AnswerFile,
    *,
    data: bytes,
    file_name: str,
    by: User | None,
    name: str = "",
    k: int = 5,
) -> ImportedAnswers:
    """Store the answers as one answer set and start its run, in one transaction.

    Answers equal in everything but metadata, of the same system to the same version of the question set with the same
    ``k``, are the answer set that is there already, with its run.

    :raises InvalidFile: ``question_unknown``, ``question_ambiguous``, ``duplicate_answer``, with their lines.
    """
    shown = display_name(file_name)
    rows, missing, told = matched_rows(question_set, file, shown)
    with transaction.atomic():
        lock_project(question_set.project_id)
        profile = profile_row(question_set.project, DEFAULT_PROFILE)
        version = recorded_version(question_set.project, clean_name(system or file.system), by)
        answers = _existing(question_set, version, rows, k)
        created = answers is None
        if answers is None:
            sha256 = hashlib.sha256(data).hexdigest()
            source = {"source": shown, "file_sha256": sha256}
            answers = _store(question_set, version, rows, k=k, created_by=by, **source)
            audit.record(by, "answer_set.imported", answers, hash=answers.content_hash, sha256=sha256)
        run = None if created else _rules_run(answers, profile)
        if run is None:
            run = prepare_run(answers, profile, judge=None, name=name, by=by)
        start(run, by)
    remarks = [*file.remarks, *told]
    if file.system and composed(file.system) != version.system.name:  # allowed, but said
        remarks.append(Problem("system_differs", params={"given": version.system.name, "file_says": file.system}))
    if not created:
        remarks.append(Problem("answers_unchanged", shown, params={"answers": answers.pk, "run": run.pk}))
    return ImportedAnswers(run, created, missing, tuple(remarks))


def recorded_version(project: Project, system: str, by: User | None) -> SystemVersion:
    """The version of a system whose answers are recorded elsewhere, made with the system on first use."""
    return version_with(project, system, RECORDED, {}, by)


def answers_hash(question_set: QuestionSet, rows: Sequence[Answered]) -> str:
    """The content hash of a complete answer set: the questions' hash and every answer with all but its metadata."""
    contents = [_content(found.row) | {"question": composed(found.external_id)} for found in rows]
    contents.sort(key=lambda content: (content["question"], content["sample"]))
    return content_hash([question_set.content_hash, contents])


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


def _existing(question_set: QuestionSet, version: SystemVersion, rows: Sequence[Answered], k: int) -> AnswerSet | None:
    same = AnswerSet.objects.filter(question_set=question_set, system_version=version, k=k)
    return same.filter(content_hash=answers_hash(question_set, rows)).order_by("-id").first()


def _rules_run(answers: AnswerSet, profile: ProfileVersion) -> Run | None:
    """The newest run of all the answers under the profile that has no judge and was not cancelled."""
    runs = answers.runs.filter(profile_version=profile, judges__isnull=True, config__question_ids=[])
    return runs.exclude(state=Run.State.CANCELLED).order_by("-id").first()


def _store(question_set: QuestionSet, version: SystemVersion, rows: Sequence[Answered], **fields: object) -> AnswerSet:
    retrieval_only = not any(found.row.answered or found.row.error for found in rows)
    answers = AnswerSet.objects.create(
        project_id=question_set.project_id,
        question_set=question_set,
        system_version=version,
        evaluation_type="retrieval_only" if retrieval_only else "full_rag",
        content_hash=answers_hash(question_set, rows),
        **fields,
    )
    for first in range(0, len(rows), BATCH):
        batch = rows[first : first + BATCH]
        made = Answer.objects.bulk_create(_answer(answers, found, retrieval_only) for found in batch)
        Context.objects.bulk_create(
            (
                context
                for answer, found in zip(made, batch, strict=True)
                for context in contexts_of(answer, found.row.answer)
            ),
            batch_size=BATCH,
        )
    return answers


def _answer(answers: AnswerSet, found: Answered, retrieval_only: bool) -> Answer:
    row, spec = found.row, found.row.answer
    reason = f"reported: {row.error}" if row.error else "" if row.answered or retrieval_only else "no_answer"
    return Answer(
        answer_set=answers,
        question_id=found.question_pk,
        sample=row.sample,
        status="failed" if reason else "ok",
        reason=reason,
        text=spec.text,
        text_hash=hashlib.sha256(spec.text.encode()).hexdigest(),
        latency_seconds=spec.latency_seconds,
        confidence=row.confidence,
        retrieves=spec.contexts is not None,
        retrieved_ids=None if spec.retrieved_ids is None else list(spec.retrieved_ids),
        metadata=dict(row.metadata),
    )
