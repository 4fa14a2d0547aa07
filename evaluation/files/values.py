"""A node to a typed value, and a row of them. What does not fit is noted with its line and field, and the empty value
returned. A row finds its fields by name and alias, remembers which were used, and keeps the rest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from typing import Any

from evaluation.files.text_trees import JSONSyntax, scan_json
from evaluation.files.tree import SHORT_TEXT, Kind, Limits, Node, Problems, TreeBuilder, plain

_JSON_LIST = re.compile(r'\[\s*(?:["\[{\]]|null\b)')
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
_WRITTEN = {Kind.TEXT, Kind.CELL}
_YES = {"true", "yes", "y", "1", "on"}
_NO = {"false", "no", "n", "0", "off"}


def read_text(node: Node, field: str, problems: Problems) -> str:
    """A text as it stands. A number, a boolean or a date is refused: quoted it would be a text without a doubt."""
    if node.kind in _WRITTEN:
        return str(node.value)
    if node.kind in {Kind.LIST, Kind.MAP}:
        problems.add("not_text", node.line, field, found=node.kind.value)
    elif node.kind is not Kind.NULL:
        code = "format_as_text" if problems.file.lower().endswith(".xlsx") else "quote_value"
        problems.add(code, node.line, field, value=node.spelling)
    return ""


def read_name(node: Node, field: str, problems: Problems) -> str:
    """A short text such as an id or a category, without surrounding white space, at most 200 characters."""
    name = read_text(node, field, problems).strip()
    if len(name) > SHORT_TEXT:
        problems.add("too_long", node.line, field, length=len(name), limit=SHORT_TEXT)
    return name


def expand_cell(node: Node, field: str, problems: Problems, *, split: bool = True) -> Node:
    """A table's cell as the list it stands for, as JSON or with ``|`` between the items; other nodes unchanged.

    With ``split`` off, and for a cell with several lines (a Markdown table is full of bars), only JSON makes a list.
    """
    if node.kind is not Kind.CELL:
        return node
    text = str(node.value).strip()
    if text == "null":
        return Node(Kind.NULL, None, node.line)
    if _JSON_LIST.match(text) or text.startswith("{"):
        return _cell_json(text, node, field, problems)
    parts = text.split("|") if split and splits_at_bars(node) else [text]
    items = [Node(Kind.CELL, part.strip(), node.line, part.strip()) for part in parts if part.strip()]
    return Node(Kind.LIST, items, node.line)


def splits_at_bars(node: Node) -> bool:
    """Whether the node is a table's cell with ``|`` between several items."""
    if node.kind is not Kind.CELL:
        return False
    text = str(node.value).strip()
    return "|" in text and "\n" not in text and not _JSON_LIST.match(text) and not text.startswith("{")


def _cell_json(text: str, node: Node, field: str, problems: Problems) -> Node:
    builder = TreeBuilder(problems, Limits())
    try:
        # One line, so that every value inside carries the number of the table's row.
        scan_json(text.replace("\n", " ").replace("\r", " "), node.line, builder)
    except JSONSyntax as error:
        problems.add("cell_json", node.line, field, detail=error.detail)
        return Node(Kind.NULL, None, node.line)
    return builder.root or Node(Kind.NULL, None, node.line)


def read_texts(node: Node, field: str, problems: Problems) -> tuple[str, ...]:
    """One text or a list of texts, without surrounding white space; empty ones are left out."""
    node = expand_cell(node, field, problems)
    if node.kind is not Kind.LIST:
        texts = [read_text(node, field, problems)]
    else:
        texts = [read_text(item, f"{field}[{i}]", problems) for i, item in enumerate(node.elements)]
    return tuple(stripped for text in texts if (stripped := text.strip()))


def read_keywords(node: Node, field: str, problems: Problems) -> tuple[tuple[str, ...], ...]:
    """Keywords, each a text or a list of alternatives. Whole numbers are taken by their text (``200``), unless their
    spelling is one that a format would turn into another number (``010``)."""
    node = expand_cell(node, field, problems)
    if node.kind is Kind.TEXT:
        node = Node(Kind.LIST, [node], node.line)
    if node.kind not in {Kind.LIST, Kind.NULL}:
        problems.add("not_list", node.line, field, found=node.kind.value)
    keywords = []
    for i, item in enumerate(node.elements):
        place = f"{field}[{i}]"
        alternatives = item.elements if item.kind is Kind.LIST else [item]
        words = tuple(_keyword(word, place, problems) for word in alternatives)
        if not words or not all(words):
            _note_empty(item, place, problems)
        keywords.append(words)
    return tuple(keywords)


def _keyword(node: Node, field: str, problems: Problems) -> str:
    if node.kind is Kind.INTEGER:
        return node.spelling
    return read_text(node, field, problems).strip()


def _note_empty(node: Node, field: str, problems: Problems) -> None:
    """An empty keyword occurs in every answer; what was already noted for this place is not noted twice."""
    if not problems.found or (problems.found[-1].line, problems.found[-1].field) != (node.line, field):
        problems.add("empty_item", node.line, field)


def read_integer(node: Node, field: str, problems: Problems, low: int, high: int) -> int | None:
    """A whole number within the limits, both inclusive."""
    spelling = node.spelling if node.kind is Kind.INTEGER else str(node.value).strip()
    if node.kind not in {Kind.INTEGER, *_WRITTEN} or not _INTEGER.fullmatch(spelling):
        problems.add("not_integer", node.line, field, value=shown(node))
        return None
    if not low <= int(spelling) <= high:
        problems.add("out_of_range", node.line, field, value=spelling, low=low, high=high)
        return None
    return int(spelling)


def read_number(node: Node, field: str, problems: Problems, low: float, high: float) -> float | None:
    """A finite number within the limits, both inclusive."""
    number = number_of(node)
    if number is None:
        problems.add("not_number", node.line, field, value=shown(node))
    elif not low <= number <= high:
        problems.add("out_of_range", node.line, field, value=shown(node), low=low, high=high)
        return None
    return number


def number_of(node: Node) -> float | None:
    """The finite number that a number or a written number stands for, else ``None``; booleans are no numbers."""
    if node.kind in {Kind.INTEGER, Kind.REAL}:
        return float(node.value)
    if node.kind not in _WRITTEN or not _NUMBER.fullmatch(str(node.value).strip()):
        return None
    number = float(node.value)
    return number if math.isfinite(number) else None


def boolean_of(node: Node) -> bool | None:
    """The truth that ``true``, ``no``, ``1`` or ``"yes"`` stands for, else ``None``."""
    if node.kind is Kind.BOOLEAN:
        return bool(node.value)
    if node.kind in {Kind.LIST, Kind.MAP, Kind.NULL, Kind.REAL}:
        return None
    word = str(node.value).strip().lower()
    return True if word in _YES else False if word in _NO else None


def read_boolean(node: Node, field: str, problems: Problems) -> bool:
    """True or false, in the words of :func:`boolean_of`."""
    truth = boolean_of(node)
    if truth is None:
        problems.add("not_boolean", node.line, field, value=shown(node))
    return bool(truth)


def read_moment(node: Node, field: str, problems: Problems) -> datetime | None:
    """A date, or date and time, in ISO 8601; without an offset it stays without one."""
    spelling = str(node.value).strip()
    if node.kind in {Kind.AMBIGUOUS, *_WRITTEN}:
        try:
            return datetime.fromisoformat(spelling)
        except ValueError:
            pass
    problems.add("not_a_date", node.line, field, value=shown(node))
    return None


def shown(node: Node) -> str:
    """The value in a message: its spelling, cut short, or what kind of collection it is."""
    if node.kind in {Kind.LIST, Kind.MAP}:
        return node.kind.value
    return (node.spelling or str(node.value))[:80]


@lru_cache(maxsize=4096)
def folded(key: str) -> str:
    """A field name as it is compared: ``Question ID`` is ``question_id``."""
    return key.strip().casefold().replace(" ", "_").replace("-", "_")


class Row:
    """The fields of one map. The first name of a field is its own, the others are aliases."""

    def __init__(self, node: Node, problems: Problems) -> None:
        self.line = node.line
        self.problems = problems
        self._entries: dict[str, tuple[str, Node]] = {}
        self._left: dict[str, Node] = {}
        for key, value in node.entries.items():
            if folded(key) in self._entries:
                self._left[key] = value
            else:
                self._entries[folded(key)] = (key, value)

    def named_cell(self, *names: str) -> bool:
        """Whether the row is a table's and has one of the columns, be its cell empty."""
        return any(self._entries[name][1].kind is Kind.CELL for name in names if name in self._entries)

    def has(self, *names: str) -> list[str]:
        """Which of the names hold something."""
        return [name for name in names if name in self._entries and not self._entries[name][1].absent]

    def peek(self, name: str) -> Node | None:
        """The value under exactly this name, which stays unused."""
        entry = self._entries.get(folded(name))
        return None if entry is None or entry[1].absent else entry[1]

    def take(self, *names: str) -> Node | None:
        """The value of the field, ``None`` where it is absent. Two names with different values are a problem."""
        if self._entries.keys().isdisjoint(names):
            return None
        present = self.has(*names)
        values = [self._entries[name][1] for name in present]
        for other, value in zip(present[1:], values[1:], strict=True):
            if plain(value) != plain(values[0]):
                self.problems.add("alias_twice", value.line, present[0], first=present[0], second=other)
        for name in names:
            self._entries.pop(name, None)
        return values[0] if values else None

    def set_aside(self, name: str) -> None:
        """Treat the field as no name of anything: it goes to the rest."""
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._left[entry[0]] = entry[1]

    def text(self, *names: str) -> str:
        """A text without surrounding white space, empty where it is absent."""
        node = self.take(*names)
        return "" if node is None else read_text(node, names[0], self.problems).strip()

    def name(self, *names: str) -> str:
        """A short text, empty where it is absent."""
        node = self.take(*names)
        return "" if node is None else read_name(node, names[0], self.problems)

    def required_text(self, *names: str) -> str:
        """A text; that it is missing or blank is a problem."""
        return self._required(self.text, names)

    def required_name(self, *names: str) -> str:
        """A short text; that it is missing or blank is a problem."""
        return self._required(self.name, names)

    def _required(self, read: Callable[..., str], names: tuple[str, ...]) -> str:
        before = len(self.problems.found)
        text = read(*names)
        if not text and len(self.problems.found) == before:
            self.problems.add("missing", self.line, names[0], names=", ".join(names))
        return text

    def texts(self, *names: str) -> tuple[str, ...]:
        """One text or a list, empty where it is absent."""
        node = self.take(*names)
        return () if node is None else read_texts(node, names[0], self.problems)

    def integer(self, name: str, high: int, field: str = "") -> int | None:
        """A whole number from 0, ``None`` where it is absent."""
        node = self.take(name)
        return None if node is None else read_integer(node, field or name, self.problems, 0, high)

    def number(self, name: str, low: float, high: float, field: str = "") -> float | None:
        """A finite number, ``None`` where it is absent."""
        node = self.take(name)
        return None if node is None else read_number(node, field or name, self.problems, low, high)

    def boolean(self, name: str, default: bool) -> bool:
        """True or false."""
        node = self.take(name)
        return default if node is None else read_boolean(node, name, self.problems)

    def rest(self) -> dict[str, Any]:
        """Everything not taken, as plain values without a table's empty cells; a map named ``metadata`` is merged in,
        the row's own keys first."""
        extra = self._entries.pop("metadata", None)
        nodes = {**self._left, **dict(self._entries.values())}
        left = {k: plain(node) for k, node in nodes.items() if node.kind is not Kind.CELL or not node.absent}
        if extra is None or extra[1].absent:
            return left
        if extra[1].kind is not Kind.MAP:
            return left | {extra[0]: plain(extra[1])}
        inner = {key: plain(node) for key, node in extra[1].entries.items()}
        return {(f"metadata.{key}" if key in left else key): value for key, value in inner.items()} | left


def rows_of(node: Node, problems: Problems) -> list[Node]:
    """The elements of a list that are maps; the others are problems."""
    rows = []
    for item in node.elements:
        if item.kind is Kind.MAP:
            rows.append(item)
        else:
            problems.add("row_not_mapping", item.line, found=item.kind.value)
    return rows
