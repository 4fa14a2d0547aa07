"""Answer files: a parse tree to the answers of one system, under the column names of common tools.

Retrieved passages are texts, or objects in the spellings of several systems."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from evaluation.core.canonical import normalize_nfc
from evaluation.core.errors import Problem
from evaluation.core.samples import VALUE_BOUND, AnswerSpec, ContextSpec
from evaluation.formats.tree import Columns, FileTree, Node, NodeKind, Problems, plain_value
from evaluation.formats.values import Field, Row, column_uses, passage_like_names

# Columns that hold the text of a question.
QUESTION_TEXT = ("question", "query", "user_input", "input", "input_content")
QUESTION_ID = ("question_id", "query_id", "qid", "input_id", "test_case_id")
ANSWER = (
    *("answer", "response", "output", "actual_output", "generated_answer", "model_answer", "model_response"),
    *("model_output", "output_content", "prediction", "predicted_answer"),
)
CONTEXTS = ("contexts", "retrieved_contexts", "retrieval_context", "retrieved_context", "sources")
RETRIEVED_IDS = ("retrieved_context_ids", "retrieved_chunk_ids")
# A DeepEval golden has this column; it is empty until the system has answered.
DEEPEVAL_ANSWER = "actual_output"
_LIKE_PASSAGES = re.compile(r"context|passage|retriev|source|document|docs|chunk|evidence")

# ``answer`` itself is excluded: in a question set it may be the reference.
SYSTEM_FIELDS = (*ANSWER[1:], *CONTEXTS, *RETRIEVED_IDS, "question_id", "latency_seconds", "confidence", "system")


def _contexts(field: Field) -> tuple[ContextSpec, ...] | None:
    """Passages in order. ``[]`` means that nothing was retrieved; ``null`` means that the system has no retrieval."""
    passages = field.expand()
    return None if passages.node.kind is NodeKind.NULL else tuple(_context(passage) for passage in passages.items())


def _context(field: Field) -> ContextSpec:
    # A row without entries if the field is a plain text.
    row = Row(field.node, field.problems)
    inner = row.take("text", "content")
    text = (
        _passage(field.with_node(inner.node) if inner else field)
        if inner or field.node.kind is not NodeKind.MAP
        else ""
    )
    chunk_id = row.name("id", "chunk_id", "doc_id")
    if not text.strip() and not chunk_id:
        field.note("context_empty")
    return ContextSpec(
        text=text,
        chunk_id=chunk_id,
        score=row.number("score", -VALUE_BOUND, VALUE_BOUND, f"{field.name}."),
        source=row.name("source"),
        metadata=row.take_metadata(),
    )


def _passage(field: Field) -> str:
    """Verbatim passage text. A bare number is a misplaced id or score, never a passage."""
    if field.node.kind in {NodeKind.INTEGER, NodeKind.REAL}:
        field.note("quote_value", value=field.node.spelling)
        return ""
    return field.text()


MAX_LATENCY_SECONDS = 86_400.0
MAX_SAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer of a file.

    ``question_id`` is empty if the row names its question only by its text (``question``). ``answered`` is false if the
    row has only retrieved passages or an ``error``. ``confidence`` is the system's own, unscaled. The text is verbatim,
    because findings refer to offsets in it."""

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
class AnswerFacts:
    """Properties of an answer file besides its answers.

    ``system``: system name given in the rows, or empty. ``shape``: title of the known shape or column map used.
    ``columns``: the use made of each column."""

    system: str
    set_metadata: Mapping[str, Any]
    metadata_keys: tuple[str, ...]
    remarks: tuple[Problem, ...]
    format: str
    encoding: str
    shape: str = ""
    columns: Columns = ()


@dataclass(frozen=True, slots=True)
class AnswerFile(AnswerFacts):
    """Answers in file order, with the properties of the file."""

    answers: tuple[AnswerRow, ...] = ()

    def __iter__(self) -> Iterator[AnswerRow]:
        return iter(self.answers)

    @property
    def facts(self) -> AnswerFacts:
        return self


def answer_file(tree: FileTree, problems: Problems) -> AnswerFile:
    """Read the answers of a tree: a list, or a map with a list under ``answers`` or ``results``.

    :raises InvalidFile: with every problem of every row."""
    rows, set_metadata = find_rows(tree.root, ("answers", "results"), problems)
    reader = AnswerReader(problems)
    answers = tuple(row for node in rows.elements if (row := reader.read(node)) is not None)
    facts = reader.facts(tree, set_metadata)
    return AnswerFile(
        **{attribute.name: getattr(facts, attribute.name) for attribute in fields(facts)}, answers=answers
    )


class AnswerReader:
    """Reads the rows of one file in order and collects the remarks about the whole file."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.row_count = 0
        self._answer_count = self._unanswered_count = self._empty_count = 0
        self._has_passages = False
        self._keys: set[str] = set()
        self._mapped_columns: dict[str, str] = {}
        self._systems: dict[str, int] = {}
        self._first_lines: dict[tuple[str, str, int], int] = {}

    def read(self, node: Node) -> AnswerRow | None:
        """Return the answer of a row, or ``None`` if the row has none yet or is not a mapping."""
        if node.kind is not NodeKind.MAP:
            self.problems.add("row_not_mapping", node.line, found=node.kind.value)
            return None
        row = Row(node, self.problems)
        self.row_count += 1
        if (system := row.peek_name("system")) is not None and len(self._systems) <= _SHOWN_SYSTEMS:
            self._systems.setdefault(system, row.line)
        if _is_unanswered_golden(row):
            self._unanswered_count += 1
            return None
        answer = _parse_row(row)
        self._answer_count += 1
        self._mapped_columns |= row.mapped_columns
        self._keys |= answer.metadata.keys()
        self._empty_count += answer.answered and not answer.answer.text.strip()
        self._has_passages |= answer.answer.contexts is not None or answer.answer.retrieved_ids is not None
        self._refuse_duplicate(answer)
        return answer

    def facts(self, tree: FileTree, set_metadata: Mapping[str, Any]) -> AnswerFacts:
        """Check the whole file after its last row and return its properties.

        ``tree`` supplies the format, ``set_metadata`` the fields outside the rows.

        :raises InvalidFile: with every problem of every row."""
        problems, systems = self.problems, list(self._systems)
        if not self.row_count and not problems.errors:
            problems.add("no_rows", tree.root.line)
        if len(systems) > 1:
            system_names = ", ".join(systems[:_SHOWN_SYSTEMS])
            problems.add("several_systems", self._systems[systems[1]], "system", systems=system_names)
        if self.row_count and not self._answer_count:
            problems.add("no_answers", tree.root.line, rows=self.row_count)
        problems.refuse_if_any()
        keys = tuple(sorted(self._keys))
        self._add_remarks(keys)
        columns = tree.columns or column_uses(self._mapped_columns, keys)
        remarks = tuple(problems.remarks)
        system = systems[0] if systems else ""
        return AnswerFacts(system, set_metadata, keys, remarks, tree.format, tree.encoding, tree.shape, columns)

    def _add_remarks(self, keys: Sequence[str]) -> None:
        """Add the remarks for a file without problems."""
        problems = self.problems
        for code, rows in {"no_answer_yet": self._unanswered_count, "empty_answers": self._empty_count}.items():
            if rows:
                problems.remark(code, rows=rows)
        problems.remark_readings()
        if keys:
            problems.remark("metadata_kept", keys=", ".join(keys))
        if not self._has_passages and (names := passage_like_names(_LIKE_PASSAGES, keys)):
            problems.remark("passages_not_found", names=names)

    def _refuse_duplicate(self, answer: AnswerRow) -> None:
        name = answer.question_id or answer.question
        if not name:
            return
        question = "" if answer.question_id else normalize_nfc(answer.question)
        key = (answer.question_id, question, answer.sample)
        if key not in self._first_lines:
            self._first_lines[key] = answer.line
        else:
            details = {"question": name[:80], "sample": answer.sample, "first_line": self._first_lines[key]}
            self.problems.add("duplicate_answer", answer.line, "sample", **details)


_SHOWN_SYSTEMS = 5


def _is_unanswered_golden(row: Row) -> bool:
    """Return whether the row is a DeepEval golden without an answer."""
    answer_names = (name for name in ANSWER if name != DEEPEVAL_ANSWER)
    return row.has_column(DEEPEVAL_ANSWER) and not row.has(
        DEEPEVAL_ANSWER, *answer_names, *CONTEXTS, *RETRIEVED_IDS, "error"
    )


def find_rows(root: Node, names: Sequence[str], problems: Problems) -> tuple[Node, dict[str, Any]]:
    """Return the list of rows and the other entries of the root.

    The list is the root itself, or the first of ``names`` in a root map.

    :raises InvalidFile: if there is no such list."""
    if root.kind is NodeKind.LIST:
        return root, {}
    list_name = next((name for name in names if name in root.entries), None)
    if list_name is None or root.entries[list_name].kind is not NodeKind.LIST:
        problems.stop("shape_rows", root.line, found=root.kind.value)
    return root.entries[list_name], {key: plain_value(node) for key, node in root.entries.items() if key != list_name}


def _parse_row(row: Row) -> AnswerRow:
    problem_count = len(row.problems.errors)
    id_ = row.name(*QUESTION_ID)
    question = row.text(*QUESTION_TEXT)
    if not id_ and not question:
        id_ = row.name("id") or row.name("_id")
    if not id_ and not question and len(row.problems.errors) == problem_count:
        row.note_missing("question_id", "question", similar_to="question")
    contexts, retrieved = row.take(*CONTEXTS), row.take(*RETRIEVED_IDS)
    error = row.text("error")
    text = _answer_text(row, bool(error), bool(error) or contexts is not None or retrieved is not None)
    spec = AnswerSpec(
        text=text or "",
        contexts=_contexts(contexts) if contexts else None,
        retrieved_ids=retrieved.names() if retrieved else None,
        latency_seconds=row.number("latency_seconds", 0, MAX_LATENCY_SECONDS),
    )
    return AnswerRow(
        question_id=id_,
        question=question,
        answer=spec,
        answered=text is not None,
        sample=row.integer("sample", MAX_SAMPLES) or 0,
        confidence=row.number("confidence", -VALUE_BOUND, VALUE_BOUND),
        error=error,
        metadata=row.take_metadata(),
        line=row.line,
    )


def _answer_text(row: Row, failed: bool, optional: bool) -> str | None:
    """Verbatim answer, or ``None`` if there is none.

    An empty cell in a table's answer column is an empty answer, unless the row has an error."""
    empty_cell = row.has_cell(*ANSWER) and not failed
    if field := row.take(*ANSWER):
        return field.text()
    if empty_cell:
        return ""
    if not optional:
        likely = row.likely_names("answer")
        if likely:
            row.note("answer_missing_likely", "answer", likely=likely)
        else:
            row.note("answer_missing", "answer")
    return None
