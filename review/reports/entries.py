"""Declaration of a report: a tree of sections with entries, each a figure or a fact.

``sections.py`` declares the tree. Writers walk it and name no figure themselves, so an entry appears in all its
outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Annotated, Any, Generic, NotRequired, Self, TypeVar

from django.utils.functional import Promise
from django.utils.text import capfirst
from pydantic import Field

from evaluation.core.json_types import object_type
from review.charts.forest import Shape
from review.reports.figure import Figure
from review.reports.json_types import FigureValue

Row = TypeVar("Row")
Inner = TypeVar("Inner")
Path = tuple[str, ...]
DASH = "–"


class Output(StrEnum):
    """Possible outputs of an entry: the run page, file formats of a report, and command output."""

    PAGE = "page"
    HTML = "html"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    XLSX = "xlsx"
    MARKDOWN = "md"
    JUNIT = "junit"
    TERMINAL = "terminal"


EVERYWHERE = frozenset(Output) - {Output.JUNIT, Output.TERMINAL}


def only(*outputs: Output) -> frozenset[Output]:
    """Restrict an entry to these outputs."""
    return frozenset(outputs)


@dataclass(frozen=True, slots=True)
class Entry(Generic[Row]):
    """A figure or fact of a section's rows.

    ``read`` takes the value from a row: a :class:`Figure`, a number, a text, or several by label. ``meaning`` documents
    it, ``type`` is its type in JSON. Readers see ``title``, or ``page_title`` on pages and in HTML. ``digits``
    overrides the writer's decimals and ``unit`` follows the number. ``mark`` is the plot symbol. ``column`` replaces
    ``name`` in CSV. ``if_any`` omits missing values. ``bad`` marks a count that should be zero. ``exact`` values are
    not rounded in JSON."""

    name: str
    read: Callable[[Row], Any]
    meaning: str
    outputs: frozenset[Output] = EVERYWHERE
    title: str | Promise = ""
    page_title: str | Promise = ""
    digits: int | None = None
    unit: str = ""
    mark: Shape | None = None
    column: str | None = None
    if_any: bool = False
    bad: bool = False
    exact: bool = False
    type: Any = FigureValue

    @property
    def page_heading(self) -> str:
        """The title with a capital, as column heads have it; symbols such as *n* keep their letter."""
        heading = str(self.page_title or self.title)
        return heading if len(heading) == 1 else capfirst(heading)

    def with_title(self, title: str | Promise) -> Self:
        return replace(self, title=title, page_title="")

    def is_absent(self, value: Any) -> bool:
        """Return whether the entry is omitted because it has no value."""
        return self.if_any and value in (None, "")

    def text(self, value: Any, digits: int = 3) -> str:
        """Format a value for readers, figures without interval."""
        if isinstance(value, Figure):
            value = value.value
        if value is None or value == "":
            return DASH
        if isinstance(value, Mapping):
            return ", ".join(f"{label} {self.text(element, digits)}" for label, element in value.items())
        if isinstance(value, float):
            value = f"{value:.{digits if self.digits is None else self.digits}f}"
        return f"{value} {self.unit}" if self.unit else str(value)


@dataclass(frozen=True, slots=True, eq=False)
class Section(Generic[Row, Inner]):
    """Entries about one kind of row, and subsections, in JSON order.

    ``rows`` derives named rows from a row of the enclosing section. A ``single`` section has one unnamed row."""

    name: str
    rows: Callable[[Row], Iterable[tuple[str, Inner]]]
    parts: list[Entry[Inner] | Section[Inner, Any]]
    single: bool = False

    def entries(self, output: Output) -> list[Entry[Inner]]:
        """Entries of the section itself that appear in an output."""
        return [part for part in self.parts if isinstance(part, Entry) and output in part.outputs]

    def nested(self, row: Inner, output: Output, convert: Callable[[Any], Any]) -> dict[str, Any]:
        """One row as nested mappings of converted values."""
        document: dict[str, Any] = {}
        for part in self.parts:
            if isinstance(part, Section):
                if part.has_entries(output):
                    document[part.name] = part.tree(row, output, convert)
            elif output in part.outputs and not part.is_absent(value := part.read(row)):
                document[part.name] = value if part.exact else convert(value)
        return document

    def tree(self, row: Row, output: Output, convert: Callable[[Any], Any]) -> dict[str, Any]:
        """Rows by name, or the only row, as nested mappings of converted values."""
        rows = {name: self.nested(inner, output, convert) for name, inner in self.rows(row)}
        return rows[""] if self.single else rows

    def json_type(self, name: str) -> Any:
        """Type of one row in JSON. ``name`` is that of the type, and begins the names of subsections."""
        keys: dict[str, Any] = {}
        for part in self.parts:
            if isinstance(part, Section):
                kind: Any = part.json_type(name + part.name.title().replace("_", ""))
                keys[part.name] = kind if part.single else dict[str, kind]
            elif Output.JSON in part.outputs:
                kind = Annotated[part.type, Field(description=part.meaning)]
                keys[part.name] = NotRequired[kind] if part.if_any else kind
        return object_type(name, keys)

    def leaves(self, row: Row, output: Output) -> Iterator[tuple[Path, Any]]:
        """Yield every value with its path: names of sections and rows, then of the entry."""
        for key, inner in self.rows(row):
            path = (self.name,) if self.single else (self.name, key)
            for part in self.parts:
                if isinstance(part, Section):
                    yield from (((*path, *inner_path), value) for inner_path, value in part.leaves(inner, output))
                elif output in part.outputs and not part.is_absent(value := part.read(inner)):
                    yield (*path, part.name), value

    def has_entries(self, output: Output) -> bool:
        sections = (section for section in self.parts if isinstance(section, Section))
        return bool(self.entries(output)) or any(section.has_entries(output) for section in sections)
