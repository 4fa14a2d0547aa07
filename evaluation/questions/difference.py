"""What differs between two versions of a question set, question by question and field by field."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.core.canonical import content_hash, normal_form
from evaluation.core.samples import QuestionSpec

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
    changed = []
    for id_, question in after.items():
        if id_ in before and (fields := _changes(before[id_], question)):
            changed.append(Change(question.id, fields))
    return Difference(
        added=tuple(q.id for id_, q in after.items() if id_ not in before),
        removed=tuple(q.id for id_, q in before.items() if id_ not in after),
        changed=tuple(changed),
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
