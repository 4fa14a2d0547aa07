"""Question sets from files into versions: equal content selects the version that has it, other makes the next; and what
differs between two versions, question by question and field by field."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from django.db import transaction
from django.utils import timezone

from evaluation.accounts import audit
from evaluation.accounts.access import lock_project
from evaluation.core.canonical import canonical_texts, clean_name, composed, normal_form
from evaluation.core.errors import Problem
from evaluation.core.samples import QuestionSpec
from evaluation.formats.question_rows import QuestionFile
from evaluation.formats.reading import display_name
from evaluation.models import Project, Question, QuestionSet, User
from evaluation.storage.statements import insert_values

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


def questions_hash(questions: Sequence[QuestionSpec]) -> str:
    """The content hash of a set: all fields of all questions but metadata, sorted by id, whatever the file's order.

    Fields at their default are left out, so that a field added to the product later changes no hash. It is that of one
    JSON list, which is never held as a whole.
    """
    ids = [composed(question.id) for question in questions]
    digest = hashlib.sha256(b"[")
    for position, place in enumerate(sorted(range(len(ids)), key=ids.__getitem__)):
        content = questions[place].model_dump(mode="json", exclude_defaults=True)
        digest.update((b"," if position else b"") + canonical_texts(content).encode())
    digest.update(b"]")
    return digest.hexdigest()


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
        rows = _rows(made, file)
        while batch := list(islice(rows, BATCH)):
            insert_values(Question, _COLUMNS, batch)
        audit.record(by, "question_set.imported", made, hash=made.content_hash, questions=len(file.questions))
    params = {"set": str(made), "questions": len(file.questions), "before": str(newest)}
    return Imported(made, True, Problem("set_next_version" if newest else "set_created", params=params))


_COLUMNS = (
    *("created_at", "question_set_id", "external_id", "position", "category", "difficulty", "group", "text", "spec"),
    "metadata",
)


def _rows(made: QuestionSet, file: QuestionFile) -> Iterator[tuple[object, ...]]:
    now = timezone.now()
    for position, spec in enumerate(file.questions):
        named = spec.id, position, spec.category, spec.difficulty, spec.group, spec.text
        yield now, made.pk, *named, spec.model_dump(mode="json"), dict(file.metadata.get(spec.id, {}))


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
