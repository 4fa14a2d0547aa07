"""Map records of other products to rows; a map file gives a JMESPath expression for each field.

Known shapes are such files (``shapes/*.yaml``) and are recognised by their columns; users can write their own. A row
keeps the line of its record, unused values become metadata, and the use of every column is reported."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions, signature
from pydantic import BeforeValidator, Field, ValidationError
from pydantic_core import PydanticCustomError

from evaluation.core.errors import InvalidFile, Problem
from evaluation.core.samples import FrozenModel
from evaluation.formats import promptfoo
from evaluation.formats.columns import guess_columns, lacks_required_columns
from evaluation.formats.record_formats import record_formats
from evaluation.formats.text_trees import feed, read_yaml
from evaluation.formats.tree import Columns, FileTree, Limits, Node, NodeKind, Problems, TreeBuilder, plain_value
from evaluation.formats.values import Field as Value
from evaluation.formats.values import looks_like_list

SHAPES_DIRECTORY = Path(__file__).parent / "shapes"
MAX_MAP_BYTES = 100_000
# Characters.
_MAX_EXPRESSION_LENGTH = 2_000
# Multi-selects in one expression: [@, @][] doubles its value, and pipes could repeat that.
_MAX_LISTS = 3
# Number of rows from which columns are detected.
SAMPLE_ROWS = 50
# Records whose values help to map the columns, and the characters of a value.
PREVIEW_RECORDS = 5
MAX_SAMPLE_LENGTH = 80
_NAME = re.compile(r'[A-Za-z_]\w*|"[^"]+"')


class _FunctionsWithSplit(Functions):  # type: ignore[misc]
    """JMESPath's standard functions, and ``split`` as in JMESPath Community."""

    @signature({"types": ["string"]}, {"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_split(self, text: str, separator: str) -> list[str]:
        return text.split(separator or None)


_OPTIONS = jmespath.Options(custom_functions=_FunctionsWithSplit())


def _as_list(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _expression_error(expression: str, detail: str) -> PydanticCustomError:
    context = {"expression": expression[:80], "detail": detail[:200]}
    return PydanticCustomError("expression_invalid", "“{expression}”: {detail}", context)


def _check_expression(expression: str) -> str:
    try:
        tree = jmespath.compile(expression).parsed
    except JMESPathError as error:
        raise _expression_error(expression, str(error).splitlines()[0].rstrip(":")) from error
    if sum(node["type"].startswith("multi_select") for node in _walk(tree)) > _MAX_LISTS:
        raise _expression_error(expression, f"more than {_MAX_LISTS} lists")
    return expression


Expression = Annotated[
    str,
    Field(max_length=_MAX_EXPRESSION_LENGTH, min_length=1),
    BeforeValidator(lambda expression: _check_expression(str(expression))),
]
#: Alternative expressions; the first with a value counts.
Expressions = Annotated[tuple[Expression, ...], BeforeValidator(_as_list)]


class _RecordMap(FrozenModel):
    """Expressions for the fields of one kind of record.

    ``when``: condition of a record; records without it are skipped and counted. ``metadata``: expression for the
    metadata, by default every unused value."""

    when: Expressions = ()
    metadata: Expressions = ()

    def fields(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Mapped fields with their expressions."""
        for name in type(self).model_fields:
            if name not in _RecordMap.model_fields and (expressions := getattr(self, name)):
                yield name, expressions


class QuestionMap(_RecordMap):
    """Expressions for the fields of a question."""

    question: Expressions
    id: Expressions = ()
    expected_answer: Expressions = ()
    expected_keywords: Expressions = ()
    category: Expressions = ()
    check: Expressions = ()
    check_phrases: Expressions = ()
    difficulty: Expressions = ()
    tags: Expressions = ()
    group: Expressions = ()
    nuggets: Expressions = ()
    ground_truth_chunk_ids: Expressions = ()
    history: Expressions = ()
    persona: Expressions = ()
    required_info: Expressions = ()
    clarification_ok: Expressions = ()
    hops: Expressions = ()
    aggregation_type: Expressions = ()
    inference_type: Expressions = ()


class AnswerMap(_RecordMap):
    """Expressions for the fields of an answer."""

    question_id: Expressions = ()
    question: Expressions = ()
    answer: Expressions = ()
    error: Expressions = ()
    contexts: Expressions = ()
    retrieved_context_ids: Expressions = ()
    latency_seconds: Expressions = ()
    confidence: Expressions = ()
    sample: Expressions = ()
    system: Expressions = ()


class Shape(FrozenModel):
    """Structure of a product's records.

    ``known_by``: alternative sets of columns that identify the shape, provided that no column of ``without`` exists.
    ``rows``: path to the records, with ``[]`` after lists (``data[].qas[]``); not needed if the root is a list.
    ``questions``, ``answers``: maps of the fields; a missing one is not in such files. ``instead``: kind of a file that
    has neither (``shape_is_…`` among the problems). ``prepare``: module that converts records which expressions cannot
    read. ``writes``: expression that creates a record of this shape from a :class:`~evaluation.formats.records.Record`,
    one per line or, with ``document``, all in one JSON document under ``rows``."""

    title: str = "map"
    known_by: tuple[tuple[str, ...], ...] = ()
    without: tuple[str, ...] = ()
    rows: str = Field(default="", pattern=r"^[\w.\[\]-]*$", max_length=200)
    prepare: Literal["", "promptfoo"] = ""
    instead: str = ""
    questions: QuestionMap | None = None
    answers: AnswerMap | None = None
    writes: str = ""
    document: bool = False

    def record_map(self, name: str) -> QuestionMap | AnswerMap | None:
        return self.questions if name == QUESTIONS else self.answers

    def records(self, root: Node) -> list[Node]:
        """Records of a file; empty if it has another structure."""
        return _nodes_at(root, self.rows.split(".")) if self.rows and root.kind is NodeKind.MAP else root.elements


QUESTIONS, ANSWERS = "questions", "answers"


def read_map(data: bytes, name: str = "map") -> Shape:
    """Read a map file: YAML or JSON with ``questions`` and ``answers``, and one or more expressions per field.

    :raises InvalidFile: with the first problem of the file."""
    problems = Problems(name)
    if len(data) > MAX_MAP_BYTES:
        problems.stop("file_too_large", size=len(data), limit=MAX_MAP_BYTES)
    try:
        root = read_yaml(data.decode("utf-8-sig"), problems, Limits())
        problems.refuse_if_any()
        shape = Shape.model_validate(
            {"title": name, **(plain_value(root) if root and root.kind is NodeKind.MAP else {})}
        )
    except UnicodeDecodeError as error:
        problems.stop("encoding_unknown", byte=f"0x{data[error.start]:02X}")
    except ValidationError as error:
        first = error.errors()[0]
        problems.stop("map_invalid", None, ".".join(map(str, first["loc"])), detail=first["msg"])
    if not (shape.questions or shape.answers or shape.instead):
        problems.stop("map_invalid", None, QUESTIONS, detail=f"neither {QUESTIONS} nor {ANSWERS}")
    return shape


@lru_cache(maxsize=1)
def shipped_shapes() -> Mapping[str, Shape]:
    """Known shapes by file name."""
    maps = [*SHAPES_DIRECTORY.glob("*.yaml"), *(record_format.shape for record_format in record_formats())]
    return {path.stem: read_map(path.read_bytes(), path.stem) for path in sorted(maps, key=lambda path: path.stem)}


def recognise_shape(root: Node) -> Shape | None:
    """Return the known shape with the most matching columns, if any."""
    best_shape, best_count = None, 0
    for shape in shipped_shapes().values():
        columns: set[str] = set()
        for row in shape.records(root)[:SAMPLE_ROWS]:
            columns |= row.entries.keys()
        matched_count = max((len(names) for names in shape.known_by if columns.issuperset(names)), default=0)
        if matched_count > best_count and columns.isdisjoint(shape.without):
            best_shape, best_count = shape, matched_count
    return best_shape


def apply_shape(tree: FileTree, kind: str, chosen_shape: Shape | None, problems: Problems) -> FileTree:
    """Return the tree with its records mapped to rows; unchanged if no shape is given or recognised.

    :raises InvalidFile: if the shape has no such kind of row, or there are no records at its path."""
    shape = chosen_shape or recognise_shape(tree.root)
    if shape is None:
        refuse_unknown_columns(tree.root.elements, kind, problems, tree.encoding)
        return tree
    reader = record_reader(shape, kind, problems)
    records = [node for node in shape.records(tree.root) if node.kind is NodeKind.MAP]
    if not records:
        problems.stop("map_finds_no_rows", tree.root.line, rows=shape.rows or "[]")
    rows = [row for record in records if (row := reader.read_row(record))]
    set_fields = {
        name: node for name, node in tree.root.entries.items() if node.kind not in {NodeKind.MAP, NodeKind.LIST}
    }
    root = Node(NodeKind.MAP, {**set_fields, kind: Node(NodeKind.LIST, rows, tree.root.line)}, tree.root.line)
    return reader.finish_tree(tree._replace(root=root), shape, kind, has_rows=bool(rows))


class UnknownColumns(InvalidFile):
    """No column is known for a required field. ``samples``: each column with its values in the first records."""

    def __init__(self, problems: Iterable[Problem], samples: Mapping[str, Sequence[str]], encoding: str) -> None:
        super().__init__(problems)
        self.samples, self.encoding = samples, encoding


def refuse_unknown_columns(records: Sequence[Node], kind: str, problems: Problems, encoding: str = "utf-8") -> None:
    """Refuse records without a known column for a required field, once, with a proposed map.

    :raises UnknownColumns: ``columns_unknown``, after the problems so far."""
    names = list(dict.fromkeys(name for record in records[:SAMPLE_ROWS] for name in record.entries))
    if len(names) < 2 or not lacks_required_columns(kind, names):
        return
    proposal = column_map(kind, guess_columns(kind, names))
    problems.add("columns_unknown", records[0].line, columns=", ".join(names), map=proposal)
    first = [record.entries for record in records[:PREVIEW_RECORDS]]
    samples = {name: [_sample(row[name]) if name in row else "" for row in first] for name in names}
    raise UnknownColumns(problems.sorted_by_line(), samples, encoding)


def _sample(value: Node) -> str:
    text = str(plain_value(value))
    return text if len(text) <= MAX_SAMPLE_LENGTH else f"{text[: MAX_SAMPLE_LENGTH - 1]}…"


def require_map(shape: Shape, kind: str, problems: Problems) -> QuestionMap | AnswerMap:
    """Return the shape's map for questions or answers.

    :raises InvalidFile: if it has none."""
    record_map = shape.record_map(kind)
    if record_map is None:
        problems.stop(f"shape_is_{shape.instead}" if shape.instead else f"shape_lacks_{kind}", shape=shape.title)
    return record_map


def record_reader(shape: Shape, kind: str, problems: Problems) -> RecordReader:
    """Return a reader for the shape's questions or answers.

    :raises InvalidFile: if the shape has none."""
    return RecordReader(require_map(shape, kind, problems), problems, prepare=shape.prepare)


# Title of a map that assigns fields to whole columns.
COLUMN_MAP_TITLE = "columns"
#: Fields whose values are lists: several columns of a table can feed one.
LIST_FIELDS = frozenset(
    {"contexts", "retrieved_context_ids", "expected_answer", "expected_keywords", "tags", "ground_truth_chunk_ids"}
)


def field_names(kind: str) -> tuple[str, ...]:
    """Fields that a column of questions or answers can map to."""
    map_class = QuestionMap if kind == QUESTIONS else AnswerMap
    return tuple(name for name in map_class.model_fields if name not in _RecordMap.model_fields)


def column_map(kind: str, columns: Columns) -> str:
    """Return a map file for pairs of column and field.

    Several columns of a list field are joined in their order; of another field the first non-empty one counts. Columns
    without a field become metadata."""
    fields: dict[str, list[str]] = {}
    for column, field in columns:
        if field in field_names(kind):
            fields.setdefault(field, []).append(json.dumps(column, ensure_ascii=False))
    for field in LIST_FIELDS & fields.keys():
        if len(fields[field]) > 1:
            fields[field] = [f"[{', '.join(fields[field])}][] | [?@]"]
    return json.dumps({"title": COLUMN_MAP_TITLE, "rows": kind, kind: fields}, ensure_ascii=False)


class RecordReader:
    """Reads records with one map and collects the use of every column."""

    def __init__(self, record_map: QuestionMap | AnswerMap, problems: Problems, *, prepare: str = "") -> None:
        self.fields = tuple(record_map.fields())
        self.when, self.metadata = record_map.when, record_map.metadata
        self.problems = problems
        self.builder = TreeBuilder(problems, Limits())
        self.skipped_rows = 0
        self.assertions = promptfoo.Assertions() if prepare else None
        self._fields_by_column: dict[str, set[str]] = {}

    def read_row(self, record: Node) -> Node | None:
        """Return the row of a record, or ``None`` if the record does not satisfy ``when``."""
        if self.assertions:
            record = self.assertions.group_assertions(record)
        nodes = {name: self._expand_cell(node, name) for name, node in record.entries.items()}
        values = {name: plain_value(node) for name, node in nodes.items()}
        if self.when and not (self._first_match(self.when, values, record, "when") or ("", ""))[1]:
            self.skipped_rows += 1
            return None
        entries: dict[str, Node] = {}
        used: set[tuple[str, ...]] = set()
        for name, expressions in self.fields:
            match = self._first_match(expressions, values, record, name)
            if match is None:
                continue
            expression, value = match
            column_node = record.entries.get(expression.strip('"')) if _NAME.fullmatch(expression) else None
            entries[name] = column_node or self._build_node(value, record.line)
            for path in _paths(jmespath.compile(expression).parsed):
                used.add(path)
                dotted_path = ".".join(path)
                for column in (self.assertions and self.assertions.columns.get(dotted_path)) or (dotted_path,):
                    self._fields_by_column.setdefault(column, set()).add(name)
        unused = _unused_values(values, used)
        for name in values:
            if name in unused or _is_blank(values[name]):
                target = "metadata" if name in unused and not self.metadata else "—"
                self._fields_by_column.setdefault(name, set()).add(target)
        if self.metadata:
            match = self._first_match(self.metadata, values, record, "metadata")
            unused = match[1] if match and isinstance(match[1], dict) else {}
        nested = unused.pop("metadata", {})
        metadata = {**nested, **unused} if isinstance(nested, dict) else {**unused, "metadata": nested}
        if metadata:
            entries["metadata"] = self._build_node(metadata, record.line)
        return Node(NodeKind.MAP, entries, record.line)

    def finish_tree(self, tree: FileTree, shape: Shape, kind: str, *, has_rows: bool) -> FileTree:
        """Return the tree with the use of its columns, and add the remarks. ``has_rows``: at least one row was read.

        :raises InvalidFile: for answers without any row."""
        if kind == ANSWERS and not has_rows:
            self.problems.stop("no_answers", tree.root.line, rows=self.skipped_rows)
        if self.assertions and (unsupported := self.assertions.unsupported):
            types = ", ".join(f"{name} ({count})" for name, count in unsupported.most_common())
            self.problems.remark("assertions_not_taken", types=types)
        columns = self.columns()
        summary = "; ".join(f"{column} → {targets}" for column, targets in columns)
        self.problems.remark("shape_known", shape=shape.title, columns=summary)
        if self.skipped_rows:
            self.problems.remark("no_answer_yet" if kind == ANSWERS else "rows_left_out", rows=self.skipped_rows)
        return tree._replace(shape=shape.title, columns=columns)

    def columns(self) -> tuple[tuple[str, str], ...]:
        """Each column with its fields, ``metadata``, or a dash if it is empty."""
        return tuple(
            (name, ", ".join(sorted(targets - ({"—"} if len(targets) > 1 else set()))))
            for name, targets in self._fields_by_column.items()
        )

    def _first_match(
        self, expressions: Sequence[str], values: Mapping[str, Any], record: Node, field: str
    ) -> tuple[str, Any] | None:
        """Return the first expression with a non-blank value; else the first with an empty text or list."""
        empty: tuple[str, Any] | None = None
        for expression in expressions:
            try:
                value = jmespath.compile(expression).search(values, _OPTIONS)
            except (JMESPathError, ArithmeticError, TypeError, ValueError, RecursionError) as error:
                self.problems.add("map_failed", record.line, field, expression=expression, detail=str(error)[:200])
                return None
            if not _is_blank(value):
                return expression, value
            if empty is None and value in ("", []):
                empty = expression, value
        return empty

    def _expand_cell(self, node: Node, name: str) -> Node:
        """Parse a table cell with a list or map in JSON or Python notation, so that paths can descend into it."""
        if node.kind is not NodeKind.CELL or not looks_like_list(node):
            return node
        cell_problems = Problems("")
        expanded = Value(node, name, cell_problems).expand().node
        return node if cell_problems.errors else expanded

    def _build_node(self, value: Any, line: int) -> Node:
        self.builder.restart()
        feed(self.builder, value, line)
        assert self.builder.root is not None  # noqa: S101  -- tells the type checker
        return self.builder.root


def _walk(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield tree
    for child in tree["children"]:
        if isinstance(child, Mapping):
            yield from _walk(child)


def _paths(tree: Mapping[str, Any]) -> set[tuple[str, ...]]:
    """Paths of names, from the record, that an expression reads."""
    kind, children = tree["type"], [child for child in tree["children"] if isinstance(child, Mapping)]
    if kind == "field":
        return {(tree["value"],)}
    if kind == "subexpression":
        left, right = _paths(children[0]), children[1]
        return {(*path, right["value"]) for path in left} if right["type"] == "field" else left
    if kind in {"literal", "identity", "current", "slice", "index"}:
        return set()
    if kind in {"or_expression", "and_expression", "comparator", "not_expression", "function_expression"} or (
        kind.startswith("multi_select")
    ):
        return {path for child in children for path in _paths(child)}
    return _paths(children[0]) if children else set()


def _unused_values(values: Mapping[str, Any], used: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """Values without the used paths and without blanks."""
    paths_by_name: dict[str, list[tuple[str, ...]]] = {}
    for first, *tail in used:
        paths_by_name.setdefault(first, []).append(tuple(tail))
    unused = {}
    for name, value in values.items():
        paths = paths_by_name.get(name, [])
        if () in paths or _is_blank(value) or (paths and not isinstance(value, Mapping)):
            continue
        if remainder := _unused_values(value, paths) if paths else value:
            unused[name] = remainder
    return unused


def _is_blank(value: object) -> bool:
    return value is None or value is False or value in ("", [], {})


def _nodes_at(node: Node, steps: Sequence[str]) -> list[Node]:
    """Nodes at a path of names, with ``[]`` after lists; the last list is always expanded."""
    nodes = [node]
    for step in steps:
        nodes = [
            parent.entries[step.removesuffix("[]")] for parent in nodes if step.removesuffix("[]") in parent.entries
        ]
        if step.endswith("[]") or step is steps[-1]:
            nodes = [element for parent in nodes for element in parent.elements]
    return nodes
