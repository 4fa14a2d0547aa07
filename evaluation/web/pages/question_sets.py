"""Question sets: the list, one version with its questions, and the preview of an upload."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext

from evaluation.core.errors import Problem
from evaluation.core.samples import QuestionSpec
from evaluation.models import ImportBatch, Question, QuestionSet
from evaluation.questions.difference import Change
from evaluation.questions.uploads import Preview
from evaluation.wording.categories import category_name
from evaluation.wording.markdown import language_of
from evaluation.wording.messages import explain

LONGEST_CELL = 300
SHOWN_PROBLEMS = 500


@dataclass(frozen=True, slots=True)
class SetRow:
    """The newest version of a set."""

    pk: int
    name: str
    version: int
    questions: int
    at: datetime
    project: str


@dataclass(frozen=True, slots=True)
class SetListPage:
    """The sets of the person's projects; ``imports`` tells whether they may add one."""

    rows: tuple[SetRow, ...]
    several_projects: bool
    imports: bool


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A question in a table."""

    id: str
    category: str
    difficulty: str
    text: str
    language: str
    expects: str


@dataclass(frozen=True, slots=True)
class VersionLink:
    """Another version of the set."""

    pk: int
    title: str
    current: bool


@dataclass(frozen=True, slots=True)
class SetPage:
    """A version of a set with one page of its questions. ``older`` and ``newer`` are query strings."""

    pk: int
    title: str
    at: datetime
    by: str
    content_hash: str
    count: int
    categories: tuple[tuple[str, int], ...]
    versions: tuple[VersionLink, ...]
    rows: tuple[QuestionRow, ...]
    back: str
    on: str
    imports: bool


@dataclass(frozen=True, slots=True)
class FieldChangeRow:
    """A field of a changed question, before and after, as text."""

    id: str
    field: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class PreviewPage:
    """What confirming an upload would do. ``selects`` names the version that has the same content already; else
    ``follows`` the one the new version comes after, empty for a new set."""

    uuid: str
    name: str
    file_name: str
    questions: int
    categories: tuple[tuple[str, int], ...]
    metadata_keys: tuple[str, ...]
    remarks: tuple[str, ...]
    first: tuple[QuestionRow, ...]
    selects: str
    not_taken_over: tuple[str, ...]
    follows: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[FieldChangeRow, ...]
    changed_questions: int
    encoding: str


@dataclass(frozen=True, slots=True)
class ProblemList:
    """The problems of a refused file, the first ones in words; ``more`` counts the others."""

    file: str
    lines: tuple[str, ...]
    more: int


def set_rows(sets: Iterable[tuple[QuestionSet, int]]) -> tuple[SetRow, ...]:
    """Sets with their numbers of questions."""
    return tuple(SetRow(s.pk, s.name, s.version, count, s.created_at, s.project.name) for s, count in sets)


def question_row(spec: QuestionSpec) -> QuestionRow:
    """A question with what is expected of its answer."""
    expects = spec.references or tuple(" / ".join(one) for one in spec.keywords)
    return QuestionRow(
        spec.id,
        category_name(spec.category),
        spec.difficulty,
        spec.text,
        language_of(spec.text),
        " · ".join(expects) or spec.check,
    )


def set_page(
    found: QuestionSet,
    versions: Sequence[QuestionSet],
    categories: Sequence[tuple[str, int]],
    questions: Sequence[Question],
    *,
    back: str,
    on: str,
    imports: bool,
) -> SetPage:
    """A version of a set."""
    return SetPage(
        pk=found.pk,
        title=str(found),
        at=found.created_at,
        by=found.created_by.get_username() if found.created_by else "",
        content_hash=found.content_hash,
        count=sum(count for _, count in categories),
        categories=tuple((category_name(name), count) for name, count in categories),
        versions=tuple(VersionLink(one.pk, f"v{one.version}", one.pk == found.pk) for one in versions),
        rows=tuple(question_row(question.read()) for question in questions),
        back=back,
        on=on,
        imports=imports,
    )


def preview_page(batch: ImportBatch, found: Preview) -> PreviewPage:
    """The preview of an upload."""
    changes = found.difference
    return PreviewPage(
        uuid=str(batch.uuid),
        name=found.name,
        file_name=batch.file_name,
        questions=found.questions,
        categories=found.categories,
        metadata_keys=found.metadata_keys,
        remarks=tuple(explain(remark) for remark in found.remarks),
        first=tuple(question_row(spec) for spec in found.first),
        selects=str(found.selects) if found.selects else "",
        not_taken_over=found.metadata_not_taken_over,
        follows=str(found.newest) if found.newest else "",
        added=changes.added if changes else (),
        removed=changes.removed if changes else (),
        changed=tuple(row for change in changes.changed for row in _changes(change)) if changes else (),
        changed_questions=len(changes.changed) if changes else 0,
        encoding=found.encoding,
    )


def problem_list(file_name: str, problems: Sequence[Problem]) -> ProblemList:
    """Every problem of a file in words, as far as one page can hold them."""
    lines = tuple(explain(problem) for problem in problems[:SHOWN_PROBLEMS])
    return ProblemList(file_name, lines, len(problems) - len(lines))


def _changes(change: Change) -> list[FieldChangeRow]:
    return [FieldChangeRow(change.id, one.field, _readable(one.before), _readable(one.after)) for one in change.fields]


def _readable(value: Any) -> str:
    if value in (None, "", [], {}):
        return gettext("nothing")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}…"
