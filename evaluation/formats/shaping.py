"""Records of other products to rows: a map file says by JMESPath where in a record each field stands.

The shapes that teams have are such files (``shapes/*.yaml``) and are recognised by their columns; a person's own map
says the rest. A record keeps the line it begins in, what no expression used stays as metadata, and of every column is
told what became of it.
"""

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

from evaluation.core.samples import FrozenModel
from evaluation.formats import promptfoo
from evaluation.formats.record_formats import record_formats
from evaluation.formats.text_trees import feed, read_yaml
from evaluation.formats.tree import Columns, FileTree, Kind, Limits, Node, Problems, TreeBuilder, plain
from evaluation.formats.values import Field as Value
from evaluation.formats.values import begins_list

SHIPPED = Path(__file__).parent / "shapes"
MAP_BYTES = 100_000
_LONGEST = 300  # characters of an expression
_MOST_LISTS = 3  # multi-selects in one: [@, @][] doubles its value, and pipes could repeat that
SAMPLE = 50  # rows whose columns are looked at
_NAME = re.compile(r'[A-Za-z_]\w*|"[^"]+"')


class _WithSplit(Functions):  # type: ignore[misc]
    """The standard functions, and ``split`` as JMESPath Community has it."""

    @signature({"types": ["string"]}, {"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_split(self, text: str, separator: str) -> list[str]:
        return text.split(separator or None)


_OPTIONS = jmespath.Options(custom_functions=_WithSplit())


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _invalid(expression: str, detail: str) -> PydanticCustomError:
    told = {"expression": expression[:80], "detail": detail[:200]}
    return PydanticCustomError("expression_invalid", "“{expression}”: {detail}", told)


def _checked(expression: str) -> str:
    try:
        tree = jmespath.compile(expression).parsed
    except JMESPathError as error:
        raise _invalid(expression, str(error).splitlines()[0].rstrip(":")) from error
    if sum(node["type"].startswith("multi_select") for node in _nodes(tree)) > _MOST_LISTS:
        raise _invalid(expression, f"more than {_MOST_LISTS} lists")
    return expression


Expression = Annotated[str, Field(max_length=_LONGEST, min_length=1), BeforeValidator(lambda one: _checked(str(one)))]
#: Expressions of which the first that finds something counts.
Found = Annotated[tuple[Expression, ...], BeforeValidator(_listed)]


class _Part(FrozenModel):
    """``when``: what a record has to have; the others are left out, and counted. ``metadata``: what is kept of a
    record beside its fields, where that is not everything that no expression used."""

    when: Found = ()
    metadata: Found = ()

    def fields(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The fields that are mapped, with their expressions."""
        for name in type(self).model_fields:
            if name not in _Part.model_fields and (expressions := getattr(self, name)):
                yield name, expressions


class QuestionMap(_Part):
    """Where the fields of a question stand."""

    question: Found
    id: Found = ()
    expected_answer: Found = ()
    expected_keywords: Found = ()
    category: Found = ()
    check: Found = ()
    check_phrases: Found = ()
    difficulty: Found = ()
    tags: Found = ()
    group: Found = ()
    nuggets: Found = ()
    ground_truth_chunk_ids: Found = ()
    history: Found = ()
    persona: Found = ()
    required_info: Found = ()
    clarification_ok: Found = ()
    hops: Found = ()
    aggregation_type: Found = ()
    inference_type: Found = ()


class AnswerMap(_Part):
    """Where the fields of an answer stand."""

    question_id: Found = ()
    question: Found = ()
    answer: Found = ()
    error: Found = ()
    contexts: Found = ()
    retrieved_context_ids: Found = ()
    latency_seconds: Found = ()
    confidence: Found = ()
    sample: Found = ()
    system: Found = ()


class Shape(FrozenModel):
    """How the records of a product are read. ``known_by``: sets of columns, one of which is there with none of
    ``without``. ``rows``: where the records stand, as names with ``[]`` behind lists (``data[].qas[]``); a file that is
    a list needs none. A part that is left out is not in such files; ``instead`` names what they are, where they have
    neither (``shape_is_…`` among the problems). ``prepare``: the module that turns what no expression can into what
    one can. ``writes`` makes a record of this shape from one of ours
    (``records``), all of them standing in one ``document`` at ``rows`` or on a line each."""

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

    def part(self, name: str) -> QuestionMap | AnswerMap | None:
        """The part for ``questions`` or ``answers``."""
        return self.questions if name == QUESTIONS else self.answers

    def records(self, root: Node) -> list[Node]:
        """The records in a file, empty where it does not have this form."""
        return _below(root, self.rows.split(".")) if self.rows and root.kind is Kind.MAP else root.elements


QUESTIONS, ANSWERS = "questions", "answers"


def read_map(data: bytes, name: str = "map") -> Shape:
    """A map file: YAML or JSON with ``questions`` and ``answers``, each field with its expression or several.

    :raises InvalidFile: with the first problem of the file.
    """
    problems = Problems(name)
    if len(data) > MAP_BYTES:
        problems.stop("file_too_large", size=len(data), limit=MAP_BYTES)
    try:
        root = read_yaml(data.decode("utf-8-sig"), problems, Limits())
        problems.refuse_if_any()
        shape = Shape.model_validate({"title": name, **(plain(root) if root and root.kind is Kind.MAP else {})})
    except UnicodeDecodeError as error:
        problems.stop("encoding_unknown", byte=f"0x{data[error.start]:02X}")
    except ValidationError as error:
        first = error.errors()[0]
        problems.stop("map_invalid", None, ".".join(map(str, first["loc"])), detail=first["msg"])
    if not (shape.questions or shape.answers or shape.instead):
        problems.stop("map_invalid", None, QUESTIONS, detail=f"neither {QUESTIONS} nor {ANSWERS}")
    return shape


@lru_cache(maxsize=1)
def shipped() -> Mapping[str, Shape]:
    """The known shapes by the names of their files."""
    maps = [*SHIPPED.glob("*.yaml"), *(form.shape for form in record_formats())]
    return {path.stem: read_map(path.read_bytes(), path.stem) for path in sorted(maps, key=lambda path: path.stem)}


def recognised(root: Node) -> Shape | None:
    """The shape of whose columns the file has most, if it is a known one."""
    best, most = None, 0
    for shape in shipped().values():
        columns: set[str] = set()
        for row in shape.records(root)[:SAMPLE]:
            columns |= row.entries.keys()
        there = max((len(names) for names in shape.known_by if columns.issuperset(names)), default=0)
        if there > most and columns.isdisjoint(shape.without):
            best, most = shape, there
    return best


def shaped(tree: FileTree, wanted: str, given: Shape | None, problems: Problems) -> FileTree:
    """The tree with the rows that its map or its known shape makes of its records; unchanged without one.

    :raises InvalidFile: where the shape does not have what is wanted, or no record is found where the map says.
    """
    shape = given or recognised(tree.root)
    if shape is None:
        return tree
    reader = reader_of(shape, wanted, problems)
    records = [node for node in shape.records(tree.root) if node.kind is Kind.MAP]
    if not records:
        problems.stop("map_finds_no_rows", tree.root.line, rows=shape.rows or "[]")
    rows = [row for record in records if (row := reader.row(record))]
    about = {name: node for name, node in tree.root.entries.items() if node.kind not in {Kind.MAP, Kind.LIST}}
    root = Node(Kind.MAP, {**about, wanted: Node(Kind.LIST, rows, tree.root.line)}, tree.root.line)
    return reader.told(tree._replace(root=root), shape, wanted, any_row=bool(rows))


def part_of(shape: Shape, wanted: str, problems: Problems) -> QuestionMap | AnswerMap:
    """What the shape says of questions or of answers.

    :raises InvalidFile: where it says nothing of them.
    """
    part = shape.part(wanted)
    if part is None:
        problems.stop(f"shape_is_{shape.instead}" if shape.instead else f"shape_lacks_{wanted}", shape=shape.title)
    return part


def reader_of(shape: Shape, wanted: str, problems: Problems) -> RecordReader:
    """The reader of the shape's questions or answers.

    :raises InvalidFile: where it says nothing of them.
    """
    return RecordReader(part_of(shape, wanted, problems), problems, prepare=shape.prepare)


CHOSEN = "columns"  # the title of a map that says of whole columns what they are


def field_names(wanted: str) -> tuple[str, ...]:
    """The fields that a column of questions or of answers can be."""
    part = QuestionMap if wanted == QUESTIONS else AnswerMap
    return tuple(name for name in part.model_fields if name not in _Part.model_fields)


def map_of_columns(wanted: str, columns: Columns) -> str:
    """The map file that reads each column as the field beside it; of several for one field the first that says
    something counts. Columns without a field become metadata."""
    fields: dict[str, list[str]] = {}
    for column, field in columns:
        if field in field_names(wanted):
            fields.setdefault(field, []).append(json.dumps(column, ensure_ascii=False))
    return json.dumps({"title": CHOSEN, "rows": wanted, wanted: fields}, ensure_ascii=False)


class RecordReader:
    """Reads records by the expressions of one part, and remembers what became of every column."""

    def __init__(self, part: QuestionMap | AnswerMap, problems: Problems, *, prepare: str = "") -> None:
        self.fields = tuple(part.fields())
        self.when, self.metadata = part.when, part.metadata
        self.problems = problems
        self.builder = TreeBuilder(problems, Limits())
        self.left_out = 0
        self.assertions = promptfoo.Assertions() if prepare else None
        self._became: dict[str, set[str]] = {}

    def row(self, record: Node) -> Node | None:
        """The row that the record is, ``None`` where it does not have what it must."""
        if self.assertions:
            record = self.assertions.gather(record)
        nodes = {name: self._expanded(node, name) for name, node in record.entries.items()}
        values = {name: plain(node) for name, node in nodes.items()}
        if self.when and not (self._find(self.when, values, record, "when") or ("", ""))[1]:
            self.left_out += 1
            return None
        entries: dict[str, Node] = {}
        used: set[tuple[str, ...]] = set()
        for name, expressions in self.fields:
            found = self._find(expressions, values, record, name)
            if found is None:
                continue
            expression, value = found
            bare = record.entries.get(expression.strip('"')) if _NAME.fullmatch(expression) else None
            entries[name] = bare or self._node(value, record.line)
            for path in _paths(jmespath.compile(expression).parsed):
                used.add(path)
                where = ".".join(path)
                for column in (self.assertions and self.assertions.columns.get(where)) or (where,):
                    self._became.setdefault(column, set()).add(name)
        rest = _without(values, used)
        for name in values:
            if name in rest or _says_nothing(values[name]):
                told = "metadata" if name in rest and not self.metadata else "—"
                self._became.setdefault(name, set()).add(told)
        if self.metadata:
            found = self._find(self.metadata, values, record, "metadata")
            rest = found[1] if found and isinstance(found[1], dict) else {}
        inner = rest.pop("metadata", {})
        kept = {**inner, **rest} if isinstance(inner, dict) else {**rest, "metadata": inner}
        if kept:
            entries["metadata"] = self._node(kept, record.line)
        return Node(Kind.MAP, entries, record.line)

    def told(self, tree: FileTree, shape: Shape, wanted: str, *, any_row: bool) -> FileTree:
        """The tree with what became of the columns, which is remarked; ``any_row`` of what was read is wanted.

        :raises InvalidFile: for answers where there is none.
        """
        if wanted == ANSWERS and not any_row:
            self.problems.stop("no_answers", tree.root.line, rows=self.left_out)
        if self.assertions and (not_taken := self.assertions.not_taken):
            types = ", ".join(f"{name} ({count})" for name, count in not_taken.most_common())
            self.problems.remark("assertions_not_taken", types=types)
        columns = self.columns()
        told = "; ".join(f"{column} → {became}" for column, became in columns)
        self.problems.remark("shape_known", shape=shape.title, columns=told)
        if self.left_out:
            self.problems.remark("no_answer_yet" if wanted == ANSWERS else "rows_left_out", rows=self.left_out)
        return tree._replace(shape=shape.title, columns=columns)

    def columns(self) -> tuple[tuple[str, str], ...]:
        """Every column that has been seen, with the fields it became, ``metadata``, or a dash where it is empty."""
        return tuple(
            (name, ", ".join(sorted(became - ({"—"} if len(became) > 1 else set()))))
            for name, became in self._became.items()
        )

    def _find(
        self, expressions: Sequence[str], values: Mapping[str, Any], record: Node, field: str
    ) -> tuple[str, Any] | None:
        """The first expression that finds something, and what; an empty text or list where none finds more."""
        empty: tuple[str, Any] | None = None
        for expression in expressions:
            try:
                value = jmespath.compile(expression).search(values, _OPTIONS)
            except (JMESPathError, ArithmeticError, TypeError, ValueError, RecursionError) as error:
                self.problems.add("map_failed", record.line, field, expression=expression, detail=str(error)[:200])
                return None
            if not _says_nothing(value):
                return expression, value
            if empty is None and value in ("", []):
                empty = expression, value
        return empty

    def _expanded(self, node: Node, name: str) -> Node:
        """A table's cell that is a list or map in JSON's or Python's notation, as such, so that paths lead into it."""
        if node.kind is not Kind.CELL or not begins_list(node):
            return node
        quiet = Problems("")
        found = Value(node, name, quiet).expanded().node
        return node if quiet.found else found

    def _node(self, value: Any, line: int) -> Node:
        self.builder.restart()
        feed(self.builder, value, line)
        assert self.builder.root is not None  # noqa: S101  -- tells the type checker
        return self.builder.root


def _nodes(tree: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield tree
    for child in tree["children"]:
        if isinstance(child, Mapping):
            yield from _nodes(child)


def _paths(tree: Mapping[str, Any]) -> set[tuple[str, ...]]:
    """The paths from the record on that an expression reads, as far as they are names."""
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


def _without(values: Mapping[str, Any], used: Iterable[tuple[str, ...]]) -> dict[str, Any]:
    """The values without the used paths, nulls and what became empty."""
    below: dict[str, list[tuple[str, ...]]] = {}
    for first, *further in used:
        below.setdefault(first, []).append(tuple(further))
    rest = {}
    for name, value in values.items():
        paths = below.get(name, [])
        if () in paths or _says_nothing(value) or (paths and not isinstance(value, Mapping)):
            continue
        if left := _without(value, paths) if paths else value:
            rest[name] = left
    return rest


def _says_nothing(value: object) -> bool:
    return value is None or value is False or value in ("", [], {})


def _below(node: Node, steps: Sequence[str]) -> list[Node]:
    """The nodes that names, with ``[]`` behind lists, lead to; the last list is taken apart in any case."""
    found = [node]
    for step in steps:
        found = [one.entries[step.removesuffix("[]")] for one in found if step.removesuffix("[]") in one.entries]
        if step.endswith("[]") or step is steps[-1]:
            found = [element for one in found for element in one.elements]
    return found
