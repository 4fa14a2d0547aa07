"""Question sets from files into versions: equal content selects the version that has it, other makes the next; and what
differs between two versions, question by question and field by field.

An upload takes two requests: parsed and previewed, then confirmed, or expired after a day. Nothing but the file is
stored before the confirmation, so one that dies between the two leaves no question behind, and uploading again works.
"""

from __future__ import annotations

import hashlib
import unicodedata
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.canonical import content_hash, normal_form
from evaluation.core.errors import Problem, Refused
from evaluation.core.samples import QuestionSpec
from evaluation.files.question_rows import QuestionFile
from evaluation.files.reading import display_name, read_questions
from evaluation.files.shaping import read_map
from evaluation.files.tree import Columns
from evaluation.models import ImportBatch, Project, Question, QuestionSet, User

_FIELDS = tuple(name for name in QuestionSpec.model_fields if name != "id")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field of a question with its value before and after, as JSON values."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Change:
    """A question that both versions have under one id, with the fields that differ."""

    id: str
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """Ids of added and removed questions in the order of their version, and the changed ones in the new order."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[Change, ...]

    def __bool__(self) -> bool:
        """Whether anything differs."""
        return bool(self.added or self.removed or self.changed)


def composed(text: str) -> str:
    """A text as ids and names are compared: in Unicode's composed form (NFC)."""
    return unicodedata.normalize("NFC", text)


def questions_hash(questions: Iterable[QuestionSpec]) -> str:
    """The content hash of a set: all fields of all questions but metadata, sorted by id, whatever the file's order.

    Fields at their default are left out, so that a field added to the product later changes no hash.
    """
    contents = [q.model_dump(mode="json", exclude_defaults=True) for q in questions]
    return content_hash(sorted(contents, key=lambda content: composed(content["id"])))


def difference(old: Sequence[QuestionSpec], new: Sequence[QuestionSpec]) -> Difference:
    """Compare two versions by question id. Spellings that differ in Unicode composition only are equal."""
    before = {composed(q.id): q for q in old}
    after = {composed(q.id): q for q in new}
    both = {id_: _changes(before[id_], question) for id_, question in after.items() if id_ in before}
    return Difference(
        added=tuple(q.id for id_, q in after.items() if id_ not in before),
        removed=tuple(q.id for id_, q in before.items() if id_ not in after),
        changed=tuple(Change(after[id_].id, fields) for id_, fields in both.items() if fields),
    )


def _changes(old: QuestionSpec, new: QuestionSpec) -> tuple[FieldChange, ...]:
    if old == new:
        return ()
    before, after = old.model_dump(mode="json"), new.model_dump(mode="json")
    return tuple(
        FieldChange(name, before[name], after[name])
        for name in _FIELDS
        if normal_form(before[name]) != normal_form(after[name])
    )


def differing_keys(old: Mapping[str, Mapping[str, Any]], new: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """The metadata keys whose values differ for any question, sorted; a key that one side lacks differs too."""
    keys: set[str] = set()
    for id_ in {*old, *new}:
        before, after = normal_form(old.get(id_, {})), normal_form(new.get(id_, {}))
        keys |= {key for key in {*before, *after} if before.get(key, _ABSENT) != after.get(key, _ABSENT)}
    return tuple(sorted(keys))


_ABSENT = object()


BATCH = 1000
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True)
class Imported:
    """The version that holds the file's content; ``note`` says in a sentence (``messages.explain``) how it came about.

    ``metadata_not_taken_over`` are the metadata keys of the file whose values the selected version does not have.
    """

    question_set: QuestionSet
    created: bool
    note: Problem
    metadata_not_taken_over: tuple[str, ...] = ()


def set_name(given: str, file: QuestionFile, file_name: str) -> str:
    """The name of the set: the given one, else the one in the file, else the file's own without its ending.

    :raises Refused: ``bad_name`` for an empty or overlong name and for one with invisible characters.
    """
    inside = file.set_metadata.get("name")
    name = given or (inside if isinstance(inside, str) else "") or display_name(file_name).rpartition(".")[0]
    return clean_name(name)


def clean_name(name: str) -> str:
    """A name of a set or system as it is stored: composed, without surrounding white space.

    :raises Refused: ``bad_name`` when it is empty, longer than 200 characters or holds control characters.
    """
    clean = composed(name).strip()
    if not clean or len(clean) > LONGEST_NAME or any(unicodedata.category(c) in {"Cc", "Cf", "Cs"} for c in clean):
        raise Refused("bad_name", name=clean[:80], limit=LONGEST_NAME)
    return clean


def version_with(project: Project, name: str, content_hash: str) -> QuestionSet | None:
    """The newest version of the set with exactly this content, if there is one."""
    rows = QuestionSet.objects.filter(project=project, name=composed(name), content_hash=content_hash)
    return rows.order_by("-version").first()


def newest_version(project: Project, name: str) -> QuestionSet | None:
    """The newest version of a set, if the project has any."""
    return QuestionSet.objects.filter(project=project, name=composed(name)).order_by("-version").first()


def import_question_set(project: Project, name: str, file: QuestionFile, *, by: User | None) -> Imported:
    """Store a question set in one transaction, or select the version that has its content already.

    :raises Refused: ``bad_name``.
    """
    name, digest = clean_name(name), questions_hash(file.questions)
    with transaction.atomic():
        lock_project(project.pk)
        newest = newest_version(project, name)
        if existing := version_with(project, name, digest):
            return _selected(existing, newest, file)
        made = QuestionSet.objects.create(
            project=project,
            name=name,
            version=newest.version + 1 if newest else 1,
            content_hash=digest,
            predecessor=newest,
            metadata=dict(file.set_metadata),
            created_by=by,
        )
        Question.objects.bulk_create(_rows(made, file), batch_size=BATCH)
        audit.record(by, "question_set.imported", made, hash=made.content_hash, questions=len(file.questions))
    params = {"set": str(made), "questions": len(file.questions), "before": str(newest)}
    return Imported(made, True, Problem("set_next_version" if newest else "set_created", params=params))


def _rows(made: QuestionSet, file: QuestionFile) -> list[Question]:
    return [
        Question(
            question_set=made,
            external_id=spec.id,
            position=position,
            category=spec.category,
            difficulty=spec.difficulty,
            group=spec.group,
            text=spec.text,
            spec=spec.model_dump(mode="json"),
            metadata=dict(file.metadata.get(spec.id, {})),
        )
        for position, spec in enumerate(file.questions)
    ]


def _selected(existing: QuestionSet, newest: QuestionSet | None, file: QuestionFile) -> Imported:
    code = "set_unchanged" if existing == newest else "set_selected"
    note = Problem(code, params={"set": str(existing), "newest": str(newest)})
    return Imported(existing, False, note, metadata_not_taken_over(existing, file))


def metadata_not_taken_over(existing: QuestionSet, file: QuestionFile) -> tuple[str, ...]:
    """The metadata keys, of the set or of any question, in which the file differs from a version of equal content."""
    stored: Mapping[str, Mapping[str, Any]] = {
        composed(id_): metadata for id_, metadata in existing.questions.values_list("external_id", "metadata")
    }
    of_questions = differing_keys(stored, {composed(id_): metadata for id_, metadata in file.metadata.items()})
    of_set = differing_keys({"": existing.metadata}, {"": file.set_metadata})
    return tuple(sorted({*of_questions, *of_set}))


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
        first=file.questions[:SHOWN],
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

    ``kind`` is :data:`QUESTIONS`; ``options`` may hold ``group_by`` and ``map``, the text of a map file.

    :raises InvalidFile: with every problem of the file; nothing is stored then.
    :raises Refused: ``unknown_upload_kind``, ``bad_name``.
    """
    if kind != QUESTIONS:
        raise Refused("unknown_upload_kind", kind=kind)
    file = _read(content, file_name, options, settings.CONCORD_UPLOAD_BYTES)
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
) -> ImportBatch:
    """A file that was read, until it is confirmed or a day has passed. ``name`` is what it will be imported as."""
    expire_uploads()
    return ImportBatch.objects.create(
        uuid=uuid.uuid4(),
        project=project,
        kind=kind,
        name=name,
        file_name=display_name(file_name),
        file_sha256=hashlib.sha256(content).hexdigest(),
        content=content,
        options=dict(options),
        rows=rows,
        created_by=by,
    )


def kept_file(batch: ImportBatch) -> bytes:
    """The file of an upload.

    :raises Refused: ``upload_expired``.
    """
    if batch.state == State.EXPIRED:
        raise Refused("upload_expired", file=batch.file_name)
    return bytes(batch.content)


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
    old = ImportBatch.objects.filter(state=State.PARSED, created_at__lte=Now() - LIFETIME)
    return old.update(state=State.EXPIRED, content=b"")


def _file(batch: ImportBatch) -> QuestionFile:
    content = kept_file(batch)
    return _read(content, batch.file_name, batch.options, len(content))


def _read(content: bytes, file_name: str, options: Mapping[str, Any], limit: int) -> QuestionFile:
    text = str(options.get("map", ""))
    shape = read_map(text.encode()) if text else None
    group_by = str(options.get("group_by", ""))
    return read_questions(content, file_name, group_by=group_by, shape=shape, max_bytes=limit)
