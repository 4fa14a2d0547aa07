"""What every reader gives: a tree of plain values in which each knows its line and how it was spelled."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple


class Kind(StrEnum):
    """What a value is. ``ambiguous``: a spelling that the format would silently turn into something else (YAML's
    ``010``, ``no``, ``1:30``, a date; a date cell of a workbook); its value is the spelling. ``cell``: a table's cell,
    a text that may stand for a number or a list."""

    TEXT = "text"
    INTEGER = "integer"
    REAL = "real"
    BOOLEAN = "boolean"
    NULL = "null"
    AMBIGUOUS = "ambiguous"
    CELL = "cell"
    LIST = "list"
    MAP = "map"


class Node(NamedTuple):
    """One value. ``value`` is a ``list[Node]`` for lists, a ``dict[str, Node]`` for maps, else the plain scalar.
    ``spelling`` is how a scalar that is not a text stands in the file. ``line`` counts from 1 (tables: the row)."""

    kind: Kind
    value: Any
    line: int
    spelling: str = ""

    @property
    def entries(self) -> dict[str, Node]:
        """The entries of a map, empty for everything else."""
        return self.value if self.kind is Kind.MAP else {}

    @property
    def elements(self) -> list[Node]:
        """The elements of a list, empty for everything else."""
        return self.value if self.kind is Kind.LIST else []

    @property
    def absent(self) -> bool:
        """Whether it says nothing: null, or an empty cell of a table."""
        return self.kind is Kind.NULL or (self.kind is Kind.CELL and not self.value.strip())


class FileTree(NamedTuple):
    """The root of a file's tree, the file's format and the encoding it was read in."""

    root: Node
    format: str
    encoding: str


def plain(node: Node) -> Any:
    """The value without lines, as JSON knows it; ambiguous scalars stay as they were spelled."""
    if node.kind is Kind.MAP:
        return {key: plain(child) for key, child in node.value.items()}
    if node.kind is Kind.LIST:
        return [plain(child) for child in node.value]
    return node.value
