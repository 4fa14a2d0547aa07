"""Interpretation of tree values, and rows that look up fields by name and alias and keep unused ones."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from evaluation.core.canonical import normalize_nfc
from evaluation.formats.literals import LiteralSyntaxError, scan_literal
from evaluation.formats.text_trees import JSONSyntaxError, scan_json
from evaluation.formats.tree import MAX_SHORT_TEXT, Columns, Limits, Node, NodeKind, Problems, TreeBuilder, plain_value

# Start of a list of texts, lists or maps in JSON, Python or numpy notation; excludes ``[주의] 확인``.
_LIST = re.compile(r"""\[\s*(?:["'\[{(\]]|(?:null|None|nan)\b|(?:array|list|np\.\w+)\()""")
_TUPLE_OR_NUMBERS = re.compile(r"""\(\s*["'].*\)|\[\s*[-+]?[0-9][-+0-9.eE,\s]*\]""", re.DOTALL)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
# Words for a missing value that pandas and Python write into tables.
_MISSING_WORDS = frozenset({"nan", "NaN", "NaT", "None", "null", "<NA>"})
_TEXT_KINDS = {NodeKind.TEXT, NodeKind.CELL}
_COLLECTIONS = {NodeKind.LIST, NodeKind.MAP}
# Name suffixes of fields that are no texts: ids, kinds, files, places, numbers, times.
NON_TEXT_NAME = re.compile(
    r"^__|(?:^|_)(?:ids?|u?uid|key|type|kind|label|file\w*|page\w*|url|link|path|no|nr|num\w*|name|time\w*|date|lang\w*|score|"
    r"rating|start|end|index|count|len\w*|tokens?|doc\w*|contexts?|chunk\w*|passages?|evidence|sources?|model)$"
    r"|(?:번호|유형|종류|파일|파일명|출처|날짜|시간|점수)$"
)
#: Field -> pattern of likely names for it in other files.
LIKELY_NAMES = {
    "question": re.compile(r"question|query|prompt|input|utterance|request|질문|질의|문의|문항|물음"),
    "answer": re.compile(r"answer|response|output|completion|predict|generat|reply|답변|응답|출력|생성|^답$"),
    "reference": re.compile(r"answer|reference|truth|gold|expect|target|ideal|정답|모범|기대"),
}
# Limit for field names in one message.
_MAX_NAMES = 12
_YES = {"true", "yes", "y", "1", "on"}
_NO = {"false", "no", "n", "0", "off"}


class Field(NamedTuple):
    """A value with the name used in problems. Invalid values are noted and read as the empty value."""

    node: Node
    name: str
    problems: Problems

    def note(self, code: str, **params: Any) -> None:
        """Note a problem of the field."""
        self.problems.add(code, self.node.line, self.name, **params)

    def with_node(self, node: Node, suffix: str = "") -> Field:
        """Return a field for a replacement node, or for a nested node at the path ``suffix``."""
        return Field(node, self.name + suffix, self.problems)

    def text(self) -> str:
        """Verbatim text, or the spelling of a number unless the format makes it doubtful.

        Booleans, dates and values that a format would convert are refused."""
        node = self.node
        if node.kind in _TEXT_KINDS:
            if node.kind is NodeKind.CELL and str(node.value).strip() in _MISSING_WORDS:
                self.problems.missing_words[self.name] += 1
            return str(node.value)
        if node.kind in {NodeKind.INTEGER, NodeKind.REAL} - self.problems.doubtful_kinds:
            return node.spelling
        if node.kind in _COLLECTIONS:
            self.note("not_text", found=node.kind.value)
        elif node.kind is not NodeKind.NULL:
            code = "format_as_text" if self.problems.file.lower().endswith(".xlsx") else "quote_value"
            self.note(code, value=node.spelling)
        return ""

    def short_text(self) -> str:
        """Name such as an id or category: in NFC, stripped, at most 200 characters."""
        text = normalize_nfc(self.text().strip())
        if len(text) > MAX_SHORT_TEXT:
            self.note("too_long", length=len(text), limit=MAX_SHORT_TEXT)
        return text

    def expand(self, *, split: bool = True) -> Field:
        """Parse a text as a list, in JSON, Python or numpy notation, or in a table cell separated by ``|``.

        Other values are unchanged. To keep a text that looks like a list, write it as a JSON list of one. Bars do not
        separate if ``split`` is off, or in cells of several lines, which may be Markdown tables."""
        node = self.node
        if node.kind not in _TEXT_KINDS:
            return self
        text = str(node.value).strip()
        if node.kind is NodeKind.CELL and text == "null":
            return self.with_node(Node(NodeKind.NULL, None, node.line))
        if looks_like_list(node):
            return self.with_node(self._parse_list(text))
        if _TUPLE_OR_NUMBERS.fullmatch(text) and (literal := self._parse_literal(text)):
            return self.with_node(literal)
        if node.kind is NodeKind.TEXT:
            return self
        parts = text.split("|") if split and is_bar_separated(node) else [text]
        items = [Node(NodeKind.CELL, part.strip(), node.line, part.strip()) for part in parts if part.strip()]
        return self.with_node(Node(NodeKind.LIST, items, node.line))

    def _parse_list(self, text: str) -> Node:
        """Parse the list or map in the text, as JSON, else as Python or numpy print it."""
        builder, line = TreeBuilder(self.problems, Limits()), self.node.line
        try:
            # A single line, so that every nested value has the line of the table row.
            scan_json(text.replace("\n", " ").replace("\r", " "), line, builder)
        except JSONSyntaxError as error:
            if literal := self._parse_literal(text):
                return literal
            self.note("cell_json", detail=error.detail)
            return Node(NodeKind.NULL, None, line)
        return builder.root or Node(NodeKind.NULL, None, line)

    def _parse_literal(self, text: str) -> Node | None:
        builder = TreeBuilder(self.problems, Limits())
        try:
            scan_literal(text, self.node.line, builder)
        except LiteralSyntaxError:
            return None
        self.problems.lists_by_field[self.name] += 1
        return builder.root

    def items(self) -> list[Field]:
        """Elements of a list; null is an empty list."""
        if self.node.kind not in {NodeKind.LIST, NodeKind.NULL}:
            self.note("not_list", found=self.node.kind.value)
        return [self.with_node(item, f"[{index}]") for index, item in enumerate(self.node.elements)]

    def texts(self) -> tuple[str, ...]:
        """One text or a list of texts, stripped, without empty ones."""
        expanded = self.expand()
        fields = expanded.items() if expanded.node.kind is NodeKind.LIST else [expanded]
        return tuple(filter(None, [field.text().strip() for field in fields]))

    def names(self) -> tuple[str, ...]:
        """One name or a list of names, such as ids or tags, in NFC."""
        return tuple(map(normalize_nfc, self.texts()))

    def flat_names(self) -> tuple[str, ...]:
        """Names of a possibly nested list, flattened in order."""
        expanded = self.expand()
        if expanded.node.kind is not NodeKind.LIST:
            return self.names()
        name_groups = (
            item.flat_names() if item.node.kind is NodeKind.LIST else (item.text(),) for item in expanded.items()
        )
        return tuple(normalize_nfc(name.strip()) for names in name_groups for name in names if name.strip())

    def keywords(self) -> tuple[tuple[str, ...], ...]:
        """Keywords, each a text or a list of alternatives.

        Whole numbers count as their spelling (``200``), unless a format would convert it (``010``)."""
        expanded = self.expand()
        cells = expanded.node.elements
        # Spreadsheets often separate keywords by semicolons.
        if self.node.kind is NodeKind.CELL and len(cells) == 1 and cells[0].kind is NodeKind.CELL:
            parts = [part.strip() for part in str(cells[0].value).split(";") if part.strip()]
            expanded = self.with_node(
                Node(NodeKind.LIST, [Node(NodeKind.CELL, part, self.node.line, part) for part in parts], self.node.line)
            )
        if expanded.node.kind is NodeKind.TEXT:
            expanded = self.with_node(Node(NodeKind.LIST, [expanded.node], expanded.node.line))
        keywords = []
        for field in expanded.items():
            alternatives = field.node.elements if field.node.kind is NodeKind.LIST else [field.node]
            words = tuple(
                node.spelling if node.kind is NodeKind.INTEGER else field.with_node(node).text().strip()
                for node in alternatives
            )
            if not (words and all(words)):
                field._note_empty()
            keywords.append(words)
        return tuple(keywords)

    def _note_empty(self) -> None:
        """Note an empty keyword, which would match every answer, unless a problem is noted for the same place."""
        errors = self.problems.errors
        if not errors or (errors[-1].line, errors[-1].field) != (self.node.line, self.name):
            self.note("empty_item")

    def integer(self, low: int, high: int) -> int | None:
        """Whole number from ``low`` to ``high``, both inclusive."""
        node = self.node
        spelling = node.spelling if node.kind is NodeKind.INTEGER else str(node.value).strip()
        if node.kind not in {NodeKind.INTEGER, *_TEXT_KINDS} or not _INTEGER.fullmatch(spelling):
            self.note("not_integer", value=display_value(node))
        elif not low <= int(spelling) <= high:
            self.note("out_of_range", value=spelling, low=low, high=high)
        else:
            return int(spelling)
        return None

    def number(self, low: float, high: float) -> float | None:
        """Finite number from ``low`` to ``high``, both inclusive."""
        number = parse_number(self.node)
        if number is None:
            self.note("not_number", value=display_value(self.node))
        elif not low <= number <= high:
            self.note("out_of_range", value=display_value(self.node), low=low, high=high)
            return None
        return number

    def boolean(self) -> bool:
        """Boolean in the spellings of :func:`parse_boolean`."""
        flag = parse_boolean(self.node)
        if flag is None:
            self.note("not_boolean", value=display_value(self.node))
        return bool(flag)

    def moment(self) -> datetime | None:
        """Date, or date and time, in ISO 8601; naive without an offset."""
        if self.node.kind in {NodeKind.AMBIGUOUS, *_TEXT_KINDS}:
            try:
                return datetime.fromisoformat(str(self.node.value).strip())
            except ValueError:
                pass
        self.note("not_a_date", value=display_value(self.node))
        return None


def is_bar_separated(node: Node) -> bool:
    """Return whether the node is a table cell with several parts separated by ``|``."""
    if node.kind is not NodeKind.CELL:
        return False
    text = str(node.value)
    return "|" in text and "\n" not in text.strip() and not looks_like_list(node)


def looks_like_list(node: Node) -> bool:
    """Return whether the text must be a list in JSON, Python or numpy notation, or a map in a table cell.

    In a format with lists of its own, the text must also end like a list."""
    text = str(node.value).strip()
    if node.kind is NodeKind.CELL:
        return bool(_LIST.match(text)) or text.startswith("{")
    return node.kind is NodeKind.TEXT and text.endswith("]") and bool(_LIST.match(text))


def parse_number(node: Node) -> float | None:
    """Finite number of a node or its text, else ``None``; booleans are not numbers."""
    if node.kind not in {NodeKind.INTEGER, NodeKind.REAL, *_TEXT_KINDS} or not _NUMBER.fullmatch(
        str(node.value).strip()
    ):
        return None
    number = float(node.value)
    return number if math.isfinite(number) else None


def parse_boolean(node: Node) -> bool | None:
    """Boolean of ``true``, ``no``, ``1``, ``"yes"`` and the like, else ``None``."""
    if node.kind is NodeKind.BOOLEAN:
        return bool(node.value)
    if node.kind in {NodeKind.LIST, NodeKind.MAP, NodeKind.NULL, NodeKind.REAL}:
        return None
    word = str(node.value).strip().lower()
    return True if word in _YES else False if word in _NO else None


def display_value(node: Node) -> str:
    """Value for a message: its truncated spelling, or the kind of a collection."""
    if node.kind in _COLLECTIONS:
        return node.kind.value
    return (node.spelling or str(node.value))[:80]


@lru_cache(maxsize=4096)
def fold_name(key: str) -> str:
    """Normalize a field name for comparison: ``Question ID`` and ``questionId`` become ``question_id``."""
    return _CAMEL.sub("_", key.strip()).casefold().replace(" ", "_").replace("-", "_")


class Row:
    """Fields of one map. The first name of a field is its own; the others are aliases."""

    def __init__(self, node: Node, problems: Problems) -> None:
        self.line = node.line
        self.problems = problems
        self._entries: dict[str, tuple[str, Node]] = {}
        self._leftover: dict[str, Node] = {}
        # Column of the file -> field that used it.
        self.mapped_columns: dict[str, str] = {}
        for key, value in node.entries.items():
            if fold_name(key) in self._entries:
                self._leftover[key] = value
            else:
                self._entries[fold_name(key)] = (key, value)

    def note(self, code: str, field: str = "", **params: Any) -> None:
        """Note a problem of the row."""
        self.problems.add(code, self.line, field, **params)

    def has_cell(self, *names: str) -> bool:
        """Return whether the row is a table row with one of the columns, even if the cell is empty."""
        return any(self._entries[name][1].kind is NodeKind.CELL for name in names if name in self._entries)

    def has_column(self, name: str) -> bool:
        """Return whether the row has the field, even if it is empty."""
        return name in self._entries

    def has(self, *names: str) -> list[str]:
        """Return those of the names that have a value."""
        return [name for name in names if name in self._entries and not self._entries[name][1].absent]

    def peek(self, name: str) -> Node | None:
        """Return the value under exactly this name, also from ``metadata``, without using it up."""
        entry = self._entries.get(fold_name(name))
        nested = self._entries["metadata"][1].entries if entry is None and "metadata" in self._entries else {}
        node = nested.get(name) if entry is None else entry[1]
        return None if node is None or node.absent else node

    def peek_name(self, name: str) -> str | None:
        """Return the name (NFC) under exactly this field name, without using it up."""
        node = self.peek(name)
        return normalize_nfc(str(node.value).strip()) if node is not None and node.kind in _TEXT_KINDS else None

    def take(self, *names: str) -> Field | None:
        """Use up a field and its aliases; ``None`` if all are absent.

        Different values under two names are a problem."""
        present: list[tuple[str, Node]] = []
        for name in names:
            if (entry := self._entries.pop(name, None)) is not None:
                self.mapped_columns[entry[0]] = names[0]
                if not entry[1].absent:
                    present.append((name, entry[1]))
        for alias, value in present[1:]:
            first, node = present[0]
            if plain_value(value) != plain_value(node):
                self.problems.add("alias_twice", value.line, first, first=first, second=alias)
        return Field(present[0][1], names[0], self.problems) if present else None

    def move_to_metadata(self, name: str) -> None:
        """Treat a field as unknown, so that it becomes metadata."""
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._leftover[entry[0]] = entry[1]

    def text(self, *names: str) -> str:
        """Stripped text; empty if absent."""
        field = self.take(*names)
        return field.text().strip() if field else ""

    def name(self, *names: str) -> str:
        """Short text; empty if absent."""
        field = self.take(*names)
        return field.short_text() if field else ""

    def required_text(self, *names: str) -> str:
        """Text; a missing or blank one is a problem."""
        return self._required(self.text, names)

    def required_name(self, *names: str) -> str:
        """Short text; a missing or blank one is a problem."""
        return self._required(self.name, names)

    def _required(self, read: Callable[..., str], names: tuple[str, ...]) -> str:
        error_count = len(self.problems.errors)
        text = read(*names)
        if not text and len(self.problems.errors) == error_count:
            self.note_missing(*names)
        return text

    def note_missing(self, *names: str, similar_to: str = "") -> None:
        """Note that none of the fields exists, and name the columns of the row that may be meant, else all columns.

        ``similar_to`` is a key of :data:`LIKELY_NAMES`, by default the first name."""
        params, similar_to = {"names": ", ".join(names)}, similar_to or names[0]
        # The field exists but is empty.
        if names[0] in self.mapped_columns.values():
            self.note("missing", names[0], **params)
        elif likely := self.likely_names(similar_to):
            self.note("missing_likely", names[0], likely=likely, **params)
        elif similar_to in LIKELY_NAMES and (columns := [key for key, _ in self._entries.values()]):
            self.note("missing_among", names[0], columns=_shorten(columns), **params)
        else:
            self.note("missing", names[0], **params)

    def likely_names(self, field: str) -> str:
        """Column names of the row that may mean a known text field."""
        texts = [key for key, node in self._entries.values() if node.kind in _TEXT_KINDS and not node.absent]
        return similar_names(field, texts)

    def texts(self, *names: str) -> tuple[str, ...]:
        """One text or a list; empty if absent."""
        field = self.take(*names)
        return field.texts() if field else ()

    def names(self, *names: str) -> tuple[str, ...]:
        """One name or a list; empty if absent."""
        field = self.take(*names)
        return field.names() if field else ()

    def integer(self, name: str, high: int, prefix: str = "") -> int | None:
        """Whole number from 0; ``None`` if absent."""
        field = self.take(name)
        return field._replace(name=prefix + name).integer(0, high) if field else None

    def number(self, name: str, low: float, high: float, prefix: str = "") -> float | None:
        """Finite number; ``None`` if absent."""
        field = self.take(name)
        return field._replace(name=prefix + name).number(low, high) if field else None

    def boolean(self, name: str, default: bool) -> bool:
        field = self.take(name)
        return field.boolean() if field else default

    def take_metadata(self) -> dict[str, Any]:
        """Return all unused fields as plain values, without empty table cells.

        A map named ``metadata`` is merged in; on conflicts its keys get the prefix ``metadata.``."""
        extra = self._entries.pop("metadata", None)
        nodes = {**self._leftover, **dict(self._entries.values())}
        values = {
            k: plain_value(node) for k, node in nodes.items() if node.kind is not NodeKind.CELL or not node.absent
        }
        if extra is None or extra[1].absent:
            return values
        if extra[1].kind is not NodeKind.MAP:
            return values | {extra[0]: plain_value(extra[1])}
        nested = {key: plain_value(node) for key, node in extra[1].entries.items()}
        return {(f"metadata.{key}" if key in values else key): value for key, value in nested.items()} | values


def column_uses(mapped_columns: Mapping[str, str], metadata_keys: Iterable[str]) -> Columns:
    """Pair each column with the field that used it, and unused columns with ``metadata``."""
    return (*mapped_columns.items(), *((key, "metadata") for key in metadata_keys if key not in mapped_columns))


def similar_names(field: str, keys: Iterable[str]) -> str:
    """Names that may mean a known text field, joined and shortened."""
    if (pattern := LIKELY_NAMES.get(field)) is None:
        return ""
    return _shorten(
        [key for key in keys if pattern.search(fold_name(key)) and not NON_TEXT_NAME.search(fold_name(key))]
    )


def passage_like_names(pattern: re.Pattern[str], keys: Iterable[str]) -> str:
    """Names that match a pattern of passages or their ids, joined and shortened."""
    return _shorten([key for key in keys if pattern.search(fold_name(key))])


def _shorten(names: Sequence[str]) -> str:
    return ", ".join(name[:40] for name in names[:_MAX_NAMES]) + (", …" if len(names) > _MAX_NAMES else "")


def mapping_rows(node: Node, problems: Problems) -> list[Node]:
    """Elements of a list that are maps; others are noted as problems."""
    rows = []
    for item in node.elements:
        if item.kind is NodeKind.MAP:
            rows.append(item)
        else:
            problems.add("row_not_mapping", item.line, found=item.kind.value)
    return rows
