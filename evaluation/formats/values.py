"""A value of a tree to what is meant by it, and a row of them, which finds its fields by name and alias, remembers
which were used, and keeps the rest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from evaluation.core.canonical import composed
from evaluation.formats.literals import LiteralSyntax, scan_literal
from evaluation.formats.text_trees import JSONSyntax, scan_json
from evaluation.formats.tree import SHORT_TEXT, Columns, Kind, Limits, Node, Problems, TreeBuilder, plain

# What begins a list of texts, lists or maps as JSON, Python or numpy write it; ``[주의] 확인`` does not.
_LIST = re.compile(r"""\[\s*(?:["'\[{(\]]|(?:null|None|nan)\b|(?:array|list|np\.\w+)\()""")
_TUPLE_OR_NUMBERS = re.compile(r"""\(\s*["'].*\)|\[\s*[-+]?[0-9][-+0-9.eE,\s]*\]""", re.DOTALL)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,3})?")
# How pandas and Python write a missing value into a table.
_MISSING_WORDS = frozenset({"nan", "NaN", "NaT", "None", "null", "<NA>"})
_WRITTEN = {Kind.TEXT, Kind.CELL}
_COLLECTIONS = {Kind.LIST, Kind.MAP}
# Ends of names that tell what a field is beside a text: an id, a kind, a file, a place, a number, a time.
_NO_TEXT = re.compile(
    r"^__|(?:^|_)(?:ids?|u?uid|key|type|kind|label|file\w*|page\w*|url|link|path|no|nr|num\w*|name|time\w*|date|lang\w*|score|"
    r"rating|start|end|index|count|len\w*|tokens?|doc\w*|contexts?|chunk\w*|passages?|evidence|sources?|model)$"
    r"|(?:번호|유형|종류|파일|파일명|출처|날짜|시간|점수)$"
)
#: Names that a field of the file itself may have, by the field of ours.
LIKE = {
    "question": re.compile(r"question|query|prompt|input|utterance|request|질문|질의|문의|문항|물음"),
    "answer": re.compile(r"answer|response|output|completion|predict|generat|reply|답변|응답|출력|생성"),
    "reference": re.compile(r"answer|reference|truth|gold|expect|target|ideal|정답|모범|기대"),
}
_NAMED = 12  # names of fields in one message
_YES = {"true", "yes", "y", "1", "on"}
_NO = {"false", "no", "n", "0", "off"}


class Field(NamedTuple):
    """A value under the name by which problems speak of it. What does not fit is noted, and the empty value given."""

    node: Node
    name: str
    problems: Problems

    def note(self, code: str, **params: Any) -> None:
        """Note a problem of it."""
        self.problems.add(code, self.node.line, self.name, **params)

    def at(self, node: Node, place: str = "") -> Field:
        """What stands in its place, or inside it at ``place``."""
        return Field(node, self.name + place, self.problems)

    def text(self) -> str:
        """A text as it stands, a number by its spelling unless the format leaves that in doubt. A truth value, a date
        and whatever a format would turn into another value are refused."""
        node = self.node
        if node.kind in _WRITTEN:
            if node.kind is Kind.CELL and str(node.value).strip() in _MISSING_WORDS:
                self.problems.missing_words[self.name] += 1
            return str(node.value)
        if node.kind in {Kind.INTEGER, Kind.REAL} - self.problems.doubted:
            return node.spelling
        if node.kind in _COLLECTIONS:
            self.note("not_text", found=node.kind.value)
        elif node.kind is not Kind.NULL:
            code = "format_as_text" if self.problems.file.lower().endswith(".xlsx") else "quote_value"
            self.note(code, value=node.spelling)
        return ""

    def short_text(self) -> str:
        """A name such as an id or a category: composed (NFC), without surrounding white space, at most 200
        characters."""
        text = composed(self.text().strip())
        if len(text) > SHORT_TEXT:
            self.note("too_long", length=len(text), limit=SHORT_TEXT)
        return text

    def expanded(self, *, split: bool = True) -> Field:
        """The list that a text stands for, as JSON, Python or numpy write one, or in a table's cell with ``|`` between
        the items; others unchanged. To say a text that looks like a list, write a JSON list of one.

        With ``split`` off, and for a cell of several lines (a Markdown table is full of bars), bars make no list.
        """
        node = self.node
        if node.kind not in _WRITTEN:
            return self
        text = str(node.value).strip()
        if node.kind is Kind.CELL and text == "null":
            return self.at(Node(Kind.NULL, None, node.line))
        if begins_list(node):
            return self.at(self._written_list(text))
        if _TUPLE_OR_NUMBERS.fullmatch(text) and (found := self._literal(text)):
            return self.at(found)
        if node.kind is Kind.TEXT:
            return self
        parts = text.split("|") if split and splits_at_bars(node) else [text]
        items = [Node(Kind.CELL, part.strip(), node.line, part.strip()) for part in parts if part.strip()]
        return self.at(Node(Kind.LIST, items, node.line))

    def _written_list(self, text: str) -> Node:
        """The list or map that the text is, as JSON, else as Python or numpy print it."""
        builder, line = TreeBuilder(self.problems, Limits()), self.node.line
        try:
            # One line, so that every value inside carries the number of the table's row.
            scan_json(text.replace("\n", " ").replace("\r", " "), line, builder)
        except JSONSyntax as error:
            if found := self._literal(text):
                return found
            self.note("cell_json", detail=error.detail)
            return Node(Kind.NULL, None, line)
        return builder.root or Node(Kind.NULL, None, line)

    def _literal(self, text: str) -> Node | None:
        builder = TreeBuilder(self.problems, Limits())
        try:
            scan_literal(text, self.node.line, builder)
        except LiteralSyntax:
            return None
        self.problems.lists[self.name] += 1
        return builder.root

    def items(self) -> list[Field]:
        """The elements of a list; null is an empty one."""
        if self.node.kind not in {Kind.LIST, Kind.NULL}:
            self.note("not_list", found=self.node.kind.value)
        return [self.at(item, f"[{place}]") for place, item in enumerate(self.node.elements)]

    def texts(self) -> tuple[str, ...]:
        """One text or a list of texts, without surrounding white space; empty ones are left out."""
        found = self.expanded()
        several = found.items() if found.node.kind is Kind.LIST else [found]
        return tuple(filter(None, [one.text().strip() for one in several]))

    def names(self) -> tuple[str, ...]:
        """One name or a list of names such as ids and tags, composed (NFC)."""
        return tuple(map(composed, self.texts()))

    def flat_names(self) -> tuple[str, ...]:
        """The names of a list that may hold further lists, in their order."""
        found = self.expanded()
        if found.node.kind is not Kind.LIST:
            return self.names()
        inner = (item.flat_names() if item.node.kind is Kind.LIST else (item.text(),) for item in found.items())
        return tuple(composed(name.strip()) for names in inner for name in names if name.strip())

    def keywords(self) -> tuple[tuple[str, ...], ...]:
        """Keywords, each a text or a list of alternatives. Whole numbers are taken by their text (``200``), unless
        their spelling is one that a format would turn into another number (``010``)."""
        found = self.expanded()
        if found.node.kind is Kind.TEXT:
            found = self.at(Node(Kind.LIST, [found.node], found.node.line))
        keywords = []
        for one in found.items():
            alternatives = one.node.elements if one.node.kind is Kind.LIST else [one.node]
            words = tuple(w.spelling if w.kind is Kind.INTEGER else one.at(w).text().strip() for w in alternatives)
            if not (words and all(words)):
                one._note_empty()
            keywords.append(words)
        return tuple(keywords)

    def _note_empty(self) -> None:
        """An empty keyword occurs in every answer; what was already noted for this place is not noted twice."""
        found = self.problems.found
        if not found or (found[-1].line, found[-1].field) != (self.node.line, self.name):
            self.note("empty_item")

    def integer(self, low: int, high: int) -> int | None:
        """A whole number within the limits, both inclusive."""
        node = self.node
        spelling = node.spelling if node.kind is Kind.INTEGER else str(node.value).strip()
        if node.kind not in {Kind.INTEGER, *_WRITTEN} or not _INTEGER.fullmatch(spelling):
            self.note("not_integer", value=shown(node))
        elif not low <= int(spelling) <= high:
            self.note("out_of_range", value=spelling, low=low, high=high)
        else:
            return int(spelling)
        return None

    def number(self, low: float, high: float) -> float | None:
        """A finite number within the limits, both inclusive."""
        number = number_of(self.node)
        if number is None:
            self.note("not_number", value=shown(self.node))
        elif not low <= number <= high:
            self.note("out_of_range", value=shown(self.node), low=low, high=high)
            return None
        return number

    def boolean(self) -> bool:
        """True or false, in the words of :func:`boolean_of`."""
        truth = boolean_of(self.node)
        if truth is None:
            self.note("not_boolean", value=shown(self.node))
        return bool(truth)

    def moment(self) -> datetime | None:
        """A date, or date and time, in ISO 8601; without an offset it stays without one."""
        if self.node.kind in {Kind.AMBIGUOUS, *_WRITTEN}:
            try:
                return datetime.fromisoformat(str(self.node.value).strip())
            except ValueError:
                pass
        self.note("not_a_date", value=shown(self.node))
        return None


def splits_at_bars(node: Node) -> bool:
    """Whether the node is a table's cell with ``|`` between several items."""
    if node.kind is not Kind.CELL:
        return False
    text = str(node.value)
    return "|" in text and "\n" not in text.strip() and not begins_list(node)


def begins_list(node: Node) -> bool:
    """Whether the text has to be a list in JSON's, Python's or numpy's notation, or in a table a map. A text of a
    format that has lists of its own has to only where it ends like one as well."""
    text = str(node.value).strip()
    if node.kind is Kind.CELL:
        return bool(_LIST.match(text)) or text.startswith("{")
    return node.kind is Kind.TEXT and text.endswith("]") and bool(_LIST.match(text))


def number_of(node: Node) -> float | None:
    """The finite number that a number or a written number stands for, else ``None``; booleans are no numbers."""
    if node.kind not in {Kind.INTEGER, Kind.REAL, *_WRITTEN} or not _NUMBER.fullmatch(str(node.value).strip()):
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


def shown(node: Node) -> str:
    """The value in a message: its spelling, cut short, or what kind of collection it is."""
    if node.kind in _COLLECTIONS:
        return node.kind.value
    return (node.spelling or str(node.value))[:80]


@lru_cache(maxsize=4096)
def folded(key: str) -> str:
    """A field name as it is compared: ``Question ID`` and ``questionId`` are ``question_id``."""
    return _CAMEL.sub("_", key.strip()).casefold().replace(" ", "_").replace("-", "_")


class Row:
    """The fields of one map. The first name of a field is its own, the others are aliases."""

    def __init__(self, node: Node, problems: Problems) -> None:
        self.line = node.line
        self.problems = problems
        self._entries: dict[str, tuple[str, Node]] = {}
        self._left: dict[str, Node] = {}
        self.became: dict[str, str] = {}  # the row's own keys that were taken -> the field
        for key, value in node.entries.items():
            if folded(key) in self._entries:
                self._left[key] = value
            else:
                self._entries[folded(key)] = (key, value)

    def note(self, code: str, field: str = "", **params: Any) -> None:
        """Note a problem of the row."""
        self.problems.add(code, self.line, field, **params)

    def named_cell(self, *names: str) -> bool:
        """Whether the row is a table's and has one of the columns, be its cell empty."""
        return any(self._entries[name][1].kind is Kind.CELL for name in names if name in self._entries)

    def named(self, name: str) -> bool:
        """Whether the row has the field, be it empty."""
        return name in self._entries

    def has(self, *names: str) -> list[str]:
        """Which of the names hold something."""
        return [name for name in names if name in self._entries and not self._entries[name][1].absent]

    def peek(self, name: str) -> Node | None:
        """The value under exactly this name, be it within ``metadata``, which stays unused."""
        entry = self._entries.get(folded(name))
        inner = self._entries["metadata"][1].entries if entry is None and "metadata" in self._entries else {}
        node = inner.get(name) if entry is None else entry[1]
        return None if node is None or node.absent else node

    def peek_name(self, name: str) -> str | None:
        """A name under exactly this name of a field, composed (NFC), which stays unused."""
        node = self.peek(name)
        return composed(str(node.value).strip()) if node is not None and node.kind in _WRITTEN else None

    def take(self, *names: str) -> Field | None:
        """The field, under the first of its names; ``None`` where it is absent. Two names with different values are a
        problem."""
        present: list[tuple[str, Node]] = []
        for name in names:
            if (entry := self._entries.pop(name, None)) is not None:
                self.became[entry[0]] = names[0]
                if not entry[1].absent:
                    present.append((name, entry[1]))
        for other, value in present[1:]:
            first, node = present[0]
            if plain(value) != plain(node):
                self.problems.add("alias_twice", value.line, first, first=first, second=other)
        return Field(present[0][1], names[0], self.problems) if present else None

    def set_aside(self, name: str) -> None:
        """Treat the field as no name of anything: it goes to the rest."""
        entry = self._entries.pop(name, None)
        if entry is not None:
            self._left[entry[0]] = entry[1]

    def text(self, *names: str) -> str:
        """A text without surrounding white space, empty where it is absent."""
        field = self.take(*names)
        return field.text().strip() if field else ""

    def name(self, *names: str) -> str:
        """A short text, empty where it is absent."""
        field = self.take(*names)
        return field.short_text() if field else ""

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
            self.note_missing(*names)
        return text

    def note_missing(self, *names: str, like: str = "") -> None:
        """Note that none of the fields is there, naming those of the row's own that may be meant, else all. ``like``
        is one of :data:`LIKE`, else the first of the names."""
        known, like = {"names": ", ".join(names)}, like or names[0]
        if names[0] in self.became.values():  # the field is there, but empty
            self.note("missing", names[0], **known)
        elif likely := self.likely(like):
            self.note("missing_likely", names[0], likely=likely, **known)
        elif like in LIKE and (columns := [key for key, _ in self._entries.values()]):
            self.note("missing_among", names[0], columns=_shortened(columns), **known)
        else:
            self.note("missing", names[0], **known)

    def likely(self, field: str) -> str:
        """The row's own names that may stand for a field of ours which holds a text."""
        texts = [key for key, node in self._entries.values() if node.kind in _WRITTEN and not node.absent]
        return looking_like(field, texts)

    def texts(self, *names: str) -> tuple[str, ...]:
        """One text or a list, empty where it is absent."""
        field = self.take(*names)
        return field.texts() if field else ()

    def names(self, *names: str) -> tuple[str, ...]:
        """One name or a list, empty where it is absent."""
        field = self.take(*names)
        return field.names() if field else ()

    def integer(self, name: str, high: int, place: str = "") -> int | None:
        """A whole number from 0, ``None`` where it is absent."""
        field = self.take(name)
        return field._replace(name=place + name).integer(0, high) if field else None

    def number(self, name: str, low: float, high: float, place: str = "") -> float | None:
        """A finite number, ``None`` where it is absent."""
        field = self.take(name)
        return field._replace(name=place + name).number(low, high) if field else None

    def boolean(self, name: str, default: bool) -> bool:
        """True or false."""
        field = self.take(name)
        return field.boolean() if field else default

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


def columns_of(became: Mapping[str, str], kept: Iterable[str]) -> Columns:
    """The rows' own names of fields with what they became, and those that were kept as metadata."""
    return (*became.items(), *((key, "metadata") for key in kept if key not in became))


def looking_like(field: str, keys: Iterable[str]) -> str:
    """Those of the names that may stand for a field of ours which holds a text."""
    if (pattern := LIKE.get(field)) is None:
        return ""
    return _shortened([key for key in keys if pattern.search(folded(key)) and not _NO_TEXT.search(folded(key))])


def looking_like_passages(pattern: re.Pattern[str], keys: Iterable[str]) -> str:
    """Those of the names in which the pattern of passages or their ids is found."""
    return _shortened([key for key in keys if pattern.search(folded(key))])


def _shortened(names: Sequence[str]) -> str:
    return ", ".join(name[:40] for name in names[:_NAMED]) + (", …" if len(names) > _NAMED else "")


def rows_of(node: Node, problems: Problems) -> list[Node]:
    """The elements of a list that are maps; the others are problems."""
    rows = []
    for item in node.elements:
        if item.kind is Kind.MAP:
            rows.append(item)
        else:
            problems.add("row_not_mapping", item.line, found=item.kind.value)
    return rows
