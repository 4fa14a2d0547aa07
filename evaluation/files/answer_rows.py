"""Answer files: a tree to the answers of one system, under the names that answer files here and elsewhere have for what
a system gave. Retrieved passages are texts, or objects in the spellings of several systems.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evaluation.core.errors import Problem
from evaluation.core.samples import VALUE_BOUND, AnswerSpec, ContextSpec
from evaluation.files.tree import Columns, FileTree, Kind, Node, Problems, plain
from evaluation.files.values import Field, Row, columns_of, looking_like, rows_of

TEXT = ("question", "query", "user_input", "input")  # of a question
QUESTION_ID = ("question_id", "query_id", "qid", "input_id", "test_case_id")
ANSWER = ("answer", "response", "output", "actual_output", "generated_answer")
CONTEXTS = ("contexts", "retrieved_contexts", "retrieval_context", "retrieved_context", "sources")
RETRIEVED_IDS = ("retrieved_context_ids", "retrieved_chunk_ids")
NOT_YET = "actual_output"  # DeepEval: nothing here means that nobody has asked the system yet
_LIKE_PASSAGES = re.compile(r"context|passage|retriev|source|document|docs|chunk|evidence")

# ``answer`` itself is not among them: in a question set it may be the reference.
SYSTEM_FIELDS = (*ANSWER[1:], *CONTEXTS, *RETRIEVED_IDS, "question_id", "latency_seconds", "confidence", "system")


def _contexts(field: Field) -> tuple[ContextSpec, ...] | None:
    """The passages in their order; ``[]`` means that nothing was retrieved, ``null`` that the system retrieves
    nothing ever."""
    found = field.expanded()
    return None if found.node.kind is Kind.NULL else tuple(_context(one) for one in found.items())


def _context(field: Field) -> ContextSpec:
    row = Row(field.node, field.problems)  # of nothing, where it is a text
    inner = row.take("text", "content")
    text = (field.at(inner.node) if inner else field).text() if inner or field.node.kind is not Kind.MAP else ""
    chunk_id = row.name("id", "chunk_id", "doc_id")
    if not text.strip() and not chunk_id:
        field.note("context_empty")
    return ContextSpec(
        text=text,
        chunk_id=chunk_id,
        score=row.number("score", -VALUE_BOUND, VALUE_BOUND, f"{field.name}."),
        source=row.name("source"),
        metadata=row.rest(),
    )


LONGEST_LATENCY = 86_400.0
MOST_SAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer. ``question_id`` is empty where the row names its question only by ``question``, its text.
    ``answered`` is false where the row holds only what was retrieved, or only an ``error``. ``confidence`` is the
    system's own, as it stands. The text is kept to the letter: findings point into it."""

    question_id: str
    question: str
    answer: AnswerSpec
    answered: bool
    sample: int
    confidence: float | None
    error: str
    metadata: Mapping[str, Any]
    line: int


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """The answers in the file's order. ``system``: the name the rows give their system, empty without one. ``shape``:
    the title of the known shape or map by which it was read. ``columns``: what became of each of the file's columns."""

    answers: tuple[AnswerRow, ...]
    system: str
    set_metadata: Mapping[str, Any]
    metadata_keys: tuple[str, ...]
    remarks: tuple[Problem, ...]
    format: str
    encoding: str
    shape: str = ""
    columns: Columns = ()


def answer_file(tree: FileTree, problems: Problems) -> AnswerFile:
    """Read the answers of a tree: a list, or a map whose ``answers`` or ``results`` is one.

    :raises InvalidFile: with every problem of every row.
    """
    nodes, facts = list_in(tree.root, ("answers", "results"), problems)
    rows = [Row(node, problems) for node in rows_of(nodes, problems)]
    if not rows and not problems.found:
        problems.add("no_rows", tree.root.line)
    system = _one_system(rows, problems)
    answers = [_read(row) for row in rows if not _not_yet(row)]
    if rows and not answers:
        problems.add("no_answers", tree.root.line, rows=len(rows))
    _refuse_duplicates(answers, problems)
    problems.refuse_if_any()
    keys = tuple(sorted({key for answer in answers for key in answer.metadata}))
    _remark(answers, len(rows) - len(answers), keys, problems)
    return AnswerFile(
        tuple(answers),
        system,
        facts,
        keys,
        tuple(problems.remarks),
        tree.format,
        tree.encoding,
        tree.shape,
        tree.columns or columns_of(rows, keys),
    )


def _not_yet(row: Row) -> bool:
    """Whether the row is a golden of DeepEval that waits for its answer."""
    others = (name for name in ANSWER if name != NOT_YET)
    return row.named(NOT_YET) and not row.has(NOT_YET, *others, *CONTEXTS, *RETRIEVED_IDS, "error")


def _remark(answers: Sequence[AnswerRow], not_yet: int, keys: Sequence[str], problems: Problems) -> None:
    """What a person should know about a file that has no problem."""
    empty = sum(one.answered and not one.answer.text.strip() for one in answers)
    for code, rows in {"no_answer_yet": not_yet, "empty_answers": empty}.items():
        if rows:
            problems.remark(code, rows=rows)
    if problems.lists:
        problems.remark("lists_read", names=", ".join(problems.lists), rows=max(problems.lists.values()))
    if keys:
        problems.remark("metadata_kept", keys=", ".join(keys))
    found = any(one.answer.contexts is not None or one.answer.retrieved_ids is not None for one in answers)
    if not found and (names := looking_like(_LIKE_PASSAGES, keys)):
        problems.remark("passages_not_found", names=names)


def list_in(root: Node, names: Sequence[str], problems: Problems) -> tuple[Node, dict[str, Any]]:
    """The list of rows: the root itself, or the first named entry of a map, whose other entries are facts.

    :raises InvalidFile: where there is no such list.
    """
    if root.kind is Kind.LIST:
        return root, {}
    found = next((name for name in names if name in root.entries), None)
    if found is None or root.entries[found].kind is not Kind.LIST:
        problems.stop("shape_rows", root.line, found=root.kind.value)
    return root.entries[found], {key: plain(node) for key, node in root.entries.items() if key != found}


def _one_system(rows: Sequence[Row], problems: Problems) -> str:
    """A file makes one answer set, so its rows may name one system at most."""
    systems: dict[str, int] = {}
    for row in rows:
        if (name := row.peek_text("system")) is not None:
            systems.setdefault(name, row.line)
    if len(systems) > 1:
        names = list(systems)
        problems.add("several_systems", systems[names[1]], "system", systems=", ".join(names[:5]))
    return next(iter(systems), "")


def _read(row: Row) -> AnswerRow:
    before = len(row.problems.found)
    id_ = row.name(*QUESTION_ID)
    question = row.text(*TEXT)
    if not id_ and not question:
        id_ = row.name("id")
    if not id_ and not question and len(row.problems.found) == before:
        row.note("missing", "question_id", names="question_id, question")
    contexts, retrieved = row.take(*CONTEXTS), row.take(*RETRIEVED_IDS)
    error = row.text("error")
    text = _answer_text(row, bool(error), bool(error) or contexts is not None or retrieved is not None)
    spec = AnswerSpec(
        text=text or "",
        contexts=_contexts(contexts) if contexts else None,
        retrieved_ids=retrieved.texts() if retrieved else None,
        latency_seconds=row.number("latency_seconds", 0, LONGEST_LATENCY),
    )
    return AnswerRow(
        question_id=id_,
        question=question,
        answer=spec,
        answered=text is not None,
        sample=row.integer("sample", MOST_SAMPLES) or 0,
        confidence=row.number("confidence", -VALUE_BOUND, VALUE_BOUND),
        error=error,
        metadata=row.rest(),
        line=row.line,
    )


def _answer_text(row: Row, failed: bool, may_lack: bool) -> str | None:
    """The answer to the letter, ``None`` where there is none. An empty cell in a table's answer column is an empty
    answer, unless the row has an error."""
    empty_cell = row.named_cell(*ANSWER) and not failed
    if field := row.take(*ANSWER):
        return field.text()
    if empty_cell:
        return ""
    if not may_lack:
        row.note("answer_missing", "answer")
    return None


def _refuse_duplicates(answers: Sequence[AnswerRow], problems: Problems) -> None:
    first: dict[tuple[str, str, int], AnswerRow] = {}
    for answer in answers:
        name = answer.question_id or answer.question
        if not name:
            continue
        question = "" if answer.question_id else unicodedata.normalize("NFC", answer.question)
        key = (unicodedata.normalize("NFC", answer.question_id), question, answer.sample)
        earlier = first.setdefault(key, answer)
        if earlier is not answer:
            about = {"question": name[:80], "sample": answer.sample, "first_line": earlier.line}
            problems.add("duplicate_answer", answer.line, "sample", **about)
