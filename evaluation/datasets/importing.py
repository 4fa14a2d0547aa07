"""Import question files as versions of question sets, and compare versions.

A file with the content of an existing version selects that version; otherwise it becomes the next one. Its questions
are stored in batches, in a set that stays hidden until it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db import transaction
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.canonical import clean_name, normal_form, normalize_nfc
from evaluation.core.errors import Problem
from evaluation.core.samples import QuestionSpec, questions_hash
from evaluation.formats.question_rows import QuestionFile
from evaluation.formats.reading import display_name
from evaluation.models import Project, Question, QuestionSet, User
from evaluation.storage.statements import insert_values

_FIELDS = tuple(name for name in QuestionSpec.model_fields if name != "id")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """Field of a question with its value before and after, as JSON values."""

    field: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class QuestionChange:
    """Question with the same id in both versions, and the fields that differ."""

    id: str
    fields: tuple[FieldChange, ...]


@dataclass(frozen=True, slots=True)
class QuestionSetDifference:
    """Ids of added and removed questions in their version's order, and changed questions in the new order."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[QuestionChange, ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)


def compare_questions(old: Sequence[QuestionSpec], new: Sequence[QuestionSpec]) -> QuestionSetDifference:
    """Compare two versions by question id. Texts that differ only in Unicode normalization are equal."""
    before = {normalize_nfc(q.id): q for q in old}
    after = {normalize_nfc(q.id): q for q in new}
    both = {id_: _changes(before[id_], question) for id_, question in after.items() if id_ in before}
    return QuestionSetDifference(
        added=tuple(q.id for id_, q in after.items() if id_ not in before),
        removed=tuple(q.id for id_, q in before.items() if id_ not in after),
        changed=tuple(QuestionChange(after[id_].id, fields) for id_, fields in both.items() if fields),
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
    """Sorted metadata keys whose values differ for any question; a key missing on one side differs."""
    keys: set[str] = set()
    for id_ in {*old, *new}:
        before, after = normal_form(old.get(id_, {})), normal_form(new.get(id_, {}))
        keys |= {key for key in {*before, *after} if before.get(key, _ABSENT) != after.get(key, _ABSENT)}
    return tuple(sorted(keys))


_ABSENT = object()


# Small enough that other writers wait for less than a tenth of a second.
QUESTIONS_PER_TRANSACTION = 500


@dataclass(frozen=True, slots=True)
class Imported:
    """Version with the file's content; ``note`` describes the result (``messages.explain``).

    ``metadata_not_taken_over``: metadata keys of the file whose values differ from the selected version."""

    question_set: QuestionSet
    created: bool
    note: Problem
    metadata_not_taken_over: tuple[str, ...] = ()


def set_name(chosen_name: str, file: QuestionFile, file_name: str) -> str:
    """Name of the set: the chosen name, else the name in the file, else the file name without extension.

    :raises DomainError: ``bad_name`` for an empty or too long name and for invisible characters."""
    name_in_file = file.set_metadata.get("name")
    name = (
        chosen_name
        or (name_in_file if isinstance(name_in_file, str) else "")
        or display_name(file_name).rpartition(".")[0]
    )
    return clean_name(name)


def find_version(project: Project, name: str, content_hash: str) -> QuestionSet | None:
    """Newest version of the set with exactly this content, if any."""
    rows = QuestionSet.objects.filter(project=project, name=normalize_nfc(name), content_hash=content_hash)
    return rows.order_by("-version").first()


def newest_version(project: Project, name: str) -> QuestionSet | None:
    """Newest version of a set, if any."""
    return QuestionSet.objects.filter(project=project, name=normalize_nfc(name)).order_by("-version").first()


def import_question_set(project: Project, name: str, file: QuestionFile, *, by: User | None) -> Imported:
    """Store a question set, or select the existing version with the same content.

    :raises DomainError: ``bad_name``."""
    question_set = store_question_set(project, name, file, by=by)
    imported = publish_question_set(question_set, file, by=by)
    if imported is None:
        raise ValueError("nobody was asked whether to publish the set")
    return imported


def store_question_set(project: Project, name: str, file: QuestionFile, *, by: User | None) -> QuestionSet:
    """Store a hidden question set in short transactions, or return the existing version with the same content.

    :raises DomainError: ``bad_name``."""
    question_set = prepare_question_set(project, name, file, questions_hash(file.questions), by=by)
    for _ in store_questions(question_set, file):
        pass
    return question_set


def prepare_question_set(
    project: Project, name: str, file: QuestionFile, content_hash: str, *, by: User | None
) -> QuestionSet:
    """Create the hidden question set to fill, or return the existing version with the same content.

    :raises DomainError: ``bad_name``."""
    name = clean_name(name)
    return find_version(project, name, content_hash) or QuestionSet.all_objects.create(
        project=project,
        name=name,
        version=0,
        content_hash=content_hash,
        metadata=dict(file.set_metadata),
        is_unfinished=True,
        created_by=by,
    )


def store_questions(question_set: QuestionSet, file: QuestionFile) -> Iterator[int]:
    """Store the questions that a hidden set lacks, one transaction per batch, and yield the count stored so far.
    Continues an interrupted import."""
    if not question_set.is_unfinished:
        return
    count = question_set.questions.count()
    rows = _rows(question_set, file, count)
    while batch := list(islice(rows, QUESTIONS_PER_TRANSACTION)):
        insert_values(Question, _COLUMNS, batch)
        yield (count := count + len(batch))


def publish_question_set(
    question_set: QuestionSet,
    file: QuestionFile,
    *,
    by: User | None,
    claim: Callable[[QuestionSet], bool] = lambda _: True,
) -> Imported | None:
    """Make a stored question set visible as the next version of its name. If a set with the same content was published
    meanwhile, that version is selected instead.

    ``None`` if ``claim``, called with the version in the same transaction, is false."""
    project, name = question_set.project, question_set.name
    with transaction.atomic():
        lock_project(project.pk)
        newest = newest_version(project, name)
        existing = find_version(project, name, question_set.content_hash)
        if not claim(existing or question_set):
            return None
        if existing is None:
            question_set.version = newest.version + 1 if newest else 1
            question_set.predecessor, question_set.is_unfinished = newest, False
            question_set.save(update_fields=["version", "predecessor", "is_unfinished"])
            content_hash, count = question_set.content_hash, len(file.questions)
            audit.record(by, "question_set.imported", question_set, hash=content_hash, questions=count)
    if existing:
        return _select_existing(existing, newest, file)
    params = {"set": str(question_set), "questions": len(file.questions), "before": str(newest)}
    return Imported(question_set, True, Problem("set_next_version" if newest else "set_created", params=params))


_COLUMNS = (
    *("created_at", "question_set_id", "external_id", "position", "category", "difficulty", "group", "text", "spec"),
    "metadata",
)


def _rows(question_set: QuestionSet, file: QuestionFile, start: int) -> Iterator[tuple[object, ...]]:
    now = timezone.now()
    for position in range(start, len(file.questions)):
        spec = file.questions[position]
        columns = spec.id, position, spec.category, spec.difficulty, spec.group, spec.text
        yield now, question_set.pk, *columns, spec.model_dump(mode="json"), dict(file.metadata.get(spec.id, {}))


def _select_existing(existing: QuestionSet, newest: QuestionSet | None, file: QuestionFile) -> Imported:
    code = "set_unchanged" if existing == newest else "set_selected"
    note = Problem(code, params={"set": str(existing), "newest": str(newest)})
    return Imported(existing, False, note, metadata_not_taken_over(existing, file))


def metadata_not_taken_over(existing: QuestionSet, file: QuestionFile) -> tuple[str, ...]:
    """Metadata keys, of the set or of any question, in which the file differs from an existing version of equal
    content."""
    rows = existing.questions.exclude(metadata={}).values_list("external_id", "metadata")
    stored: Mapping[str, Mapping[str, Any]] = {normalize_nfc(id_): metadata for id_, metadata in rows}
    question_keys = differing_keys(stored, {normalize_nfc(id_): metadata for id_, metadata in file.metadata.items()})
    set_keys = differing_keys({"": existing.metadata}, {"": file.set_metadata})
    return tuple(sorted({*question_keys, *set_keys}))
