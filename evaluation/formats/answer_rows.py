"""Answer files: a tree to the answers of one system, under the names that answer files here and elsewhere have for what
a system gave. Retrieved passages are texts, or objects in the spellings of several systems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from evaluation.core.canonical import composed
from evaluation.core.errors import Problem
from evaluation.core.samples import VALUE_BOUND, AnswerSpec, ContextSpec
from evaluation.formats.tree import Columns, FileTree, Kind, Node, Problems, plain
from evaluation.formats.values import Field, Row, columns_of, looking_like_passages

TEXT = ("question", "query", "user_input", "input", "input_content")  # of a question
QUESTION_ID = ("question_id", "query_id", "qid", "input_id", "test_case_id")
ANSWER = (
    *("answer", "response", "output", "actual_output", "generated_answer", "model_answer", "model_response"),
    *("model_output", "output_content", "prediction", "predicted_answer"),
)
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
    text = _passage(field.at(inner.node) if inner else field) if inner or field.node.kind is not Kind.MAP else ""
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


def _passage(field: Field) -> str:
    """A passage to the letter. A bare number is an id or a score in a wrong place, never the text of a passage."""
    if field.node.kind in {Kind.INTEGER, Kind.REAL}:
        field.note("quote_value", value=field.node.spelling)
        return ""
    return field.text()


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
class AnswerFacts:
    """What a file says beside its answers. ``system``: the name the rows give their system, empty without one.
    ``shape``: the title of the known shape or map by which it was read. ``columns``: what became of each column."""

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
    """The answers in the file's order, with what it says beside them."""

    answers: tuple[AnswerRow, ...] = ()

    def __iter__(self) -> Iterator[AnswerRow]:
        """The answers."""
        return iter(self.answers)

    @property
    def facts(self) -> AnswerFacts:
        """What the file says beside them."""
        return self


def answer_file(tree: FileTree, problems: Problems) -> AnswerFile:
    """Read the answers of a tree: a list, or a map whose ``answers`` or ``results`` is one.

    :raises InvalidFile: with every problem of every row.
    """
    nodes, about = list_in(tree.root, ("answers", "results"), problems)
    reader = AnswerReader(problems)
    answers = tuple(row for node in nodes.elements if (row := reader.read(node)) is not None)
    facts = reader.facts(tree, about)
    return AnswerFile(**{one.name: getattr(facts, one.name) for one in fields(facts)}, answers=answers)


class AnswerReader:
    """Reads the rows of one file in their order and remembers of them what has to be said at the end. ``seen`` are the
    rows so far."""

    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self.seen = 0
        self._answers = self._not_yet = self._empty = 0
        self._found = False  # any passages
        self._keys: set[str] = set()
        self._became: dict[str, str] = {}
        self._systems: dict[str, int] = {}
        self._first: dict[tuple[str, str, int], int] = {}

    def read(self, node: Node) -> AnswerRow | None:
        """The answer that a row holds; ``None`` where it holds none yet, or is no row."""
        if node.kind is not Kind.MAP:
            self.problems.add("row_not_mapping", node.line, found=node.kind.value)
            return None
        row = Row(node, self.problems)
        self.seen += 1
        if (system := row.peek_name("system")) is not None and len(self._systems) <= _SHOWN_SYSTEMS:
            self._systems.setdefault(system, row.line)
        if _not_yet(row):
            self._not_yet += 1
            return None
        answer = _read(row)
        self._answers += 1
        self._became |= row.became
        self._keys |= answer.metadata.keys()
        self._empty += answer.answered and not answer.answer.text.strip()
        self._found |= answer.answer.contexts is not None or answer.answer.retrieved_ids is not None
        self._refuse_second(answer)
        return answer

    def facts(self, tree: FileTree, about: Mapping[str, Any]) -> AnswerFacts:
        """What is to be said behind the last row; ``tree`` tells the format, ``about`` what stood beside the rows.

        :raises InvalidFile: with every problem of every row.
        """
        problems, systems = self.problems, list(self._systems)
        if not self.seen and not problems.found:
            problems.add("no_rows", tree.root.line)
        if len(systems) > 1:
            shown = ", ".join(systems[:_SHOWN_SYSTEMS])
            problems.add("several_systems", self._systems[systems[1]], "system", systems=shown)
        if self.seen and not self._answers:
            problems.add("no_answers", tree.root.line, rows=self.seen)
        problems.refuse_if_any()
        keys = tuple(sorted(self._keys))
        self._remark(keys)
        columns = tree.columns or columns_of(self._became, keys)
        remarks = tuple(problems.remarks)
        system = systems[0] if systems else ""
        return AnswerFacts(system, about, keys, remarks, tree.format, tree.encoding, tree.shape, columns)

    def _remark(self, keys: Sequence[str]) -> None:
        """What a person should know about a file that has no problem."""
        problems = self.problems
        for code, rows in {"no_answer_yet": self._not_yet, "empty_answers": self._empty}.items():
            if rows:
                problems.remark(code, rows=rows)
        problems.remark_readings()
        if keys:
            problems.remark("metadata_kept", keys=", ".join(keys))
        if not self._found and (names := looking_like_passages(_LIKE_PASSAGES, keys)):
            problems.remark("passages_not_found", names=names)

    def _refuse_second(self, answer: AnswerRow) -> None:
        name = answer.question_id or answer.question
        if not name:
            return
        question = "" if answer.question_id else composed(answer.question)
        key = (answer.question_id, question, answer.sample)
        if key not in self._first:
            self._first[key] = answer.line
        else:
            about = {"question": name[:80], "sample": answer.sample, "first_line": self._first[key]}
            self.problems.add("duplicate_answer", answer.line, "sample", **about)


_SHOWN_SYSTEMS = 5


def _not_yet(row: Row) -> bool:
    """Whether the row is a golden of DeepEval that waits for its answer."""
    others = (name for name in ANSWER if name != NOT_YET)
    return row.named(NOT_YET) and not row.has(NOT_YET, *others, *CONTEXTS, *RETRIEVED_IDS, "error")


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


def _read(row: Row) -> AnswerRow:
    before = len(row.problems.found)
    id_ = row.name(*QUESTION_ID)
    question = row.text(*TEXT)
    if not id_ and not question:
        id_ = row.name("id") or row.name("_id")
    if not id_ and not question and len(row.problems.found) == before:
        row.note_missing("question_id", "question", like="question")
    contexts, retrieved = row.take(*CONTEXTS), row.take(*RETRIEVED_IDS)
    error = row.text("error")
    text = _answer_text(row, bool(error), bool(error) or contexts is not None or retrieved is not None)
    spec = AnswerSpec(
        text=text or "",
        contexts=_contexts(contexts) if contexts else None,
        retrieved_ids=retrieved.names() if retrieved else None,
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
        likely = row.likely("answer")
        if likely:
            row.note("answer_missing_likely", "answer", likely=likely)
        else:
            row.note("answer_missing", "answer")
    return None
