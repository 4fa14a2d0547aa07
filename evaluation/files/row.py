"""One row of a file: finds its fields by name and alias, remembers which were used, and keeps the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from evaluation.files.problems import Problems
from evaluation.files.tree import Kind, Node, plain
from evaluation.files.values import read_boolean, read_name, read_text, read_texts


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
