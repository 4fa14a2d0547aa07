"""What a report is declared with: entries, each a figure or a fact under its name, in a tree of sections.

``sections.py`` declares the tree. Writers walk it and name no figure themselves, so that an entry stands in every
output that it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Generic, Self, TypeVar

from django.utils.functional import Promise

from review.charts.forest import Shape
from review.reports.figure import Figure

Row = TypeVar("Row")
Inner = TypeVar("Inner")
Path = tuple[str, ...]
NOTHING = "–"


class Output(StrEnum):
    """Where an entry can stand: the run page, the formats of a report, and what commands print."""

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
    """The outputs of an entry that does not stand everywhere."""
    return frozenset(outputs)


@dataclass(frozen=True, slots=True)
class Entry(Generic[Row]):
    """A figure or fact of a section's rows. ``of`` takes it from a row: a :class:`Figure`, a number, a text, or several
    of them by label. ``meaning`` says what it is and how it is computed; ``title`` is what readers see, ``page_title``
    on pages and in HTML where that differs.

    ``digits`` are its decimals where the writer's own do not suit, ``unit`` stands behind the number. ``mark`` tells
    who says so. ``column`` is its name in CSV where that is not ``name``. ``if_any``: left out where there is none.
    ``bad``: a count that ought to be nought. ``exact``: JSON rounds nothing of it.
    """

    name: str
    of: Callable[[Row], Any]
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

    @property
    def page_heading(self) -> str:
        """Its title on pages and in HTML."""
        return str(self.page_title or self.title)

    def called(self, title: str | Promise) -> Self:
        """The same under another title."""
        return replace(self, title=title, page_title="")

    def absent(self, value: Any) -> bool:
        """Whether it is left out for having no value."""
        return self.if_any and value in (None, "")

    def text(self, value: Any, digits: int = 3) -> str:
        """A value of the entry for readers; a figure without its interval."""
        if isinstance(value, Figure):
            value = value.value
        if value is None or value == "":
            return NOTHING
        if isinstance(value, Mapping):
            return ", ".join(f"{label} {self.text(one, digits)}" for label, one in value.items())
        if isinstance(value, float):
            value = f"{value:.{digits if self.digits is None else self.digits}f}"
        return f"{value} {self.unit}" if self.unit else str(value)


@dataclass(frozen=True, slots=True, eq=False)
class Section(Generic[Row, Inner]):
    """Entries about the same thing, and the sections within it, in the order of JSON. ``rows`` takes from the row of
    the section around it the rows it has, by their names; ``single`` sections have one, without a name."""

    name: str
    rows: Callable[[Row], Iterable[tuple[str, Inner]]]
    parts: list[Entry[Inner] | Section[Inner, Any]]
    single: bool = False

    def entries(self, output: Output) -> list[Entry[Inner]]:
        """Its own entries that stand in an output."""
        return [one for one in self.parts if isinstance(one, Entry) and output in one.outputs]

    def nested(self, row: Inner, output: Output, convert: Callable[[Any], Any]) -> dict[str, Any]:
        """One of its rows as nested mappings of converted values."""
        found: dict[str, Any] = {}
        for part in self.parts:
            if isinstance(part, Section):
                if part.says_anything(output):
                    found[part.name] = part.tree(row, output, convert)
            elif output in part.outputs and not part.absent(value := part.of(row)):
                found[part.name] = value if part.exact else convert(value)
        return found

    def tree(self, row: Row, output: Output, convert: Callable[[Any], Any]) -> dict[str, Any]:
        """Its rows by name (or its only row) as nested mappings of converted values."""
        found = {name: self.nested(inner, output, convert) for name, inner in self.rows(row)}
        return found[""] if self.single else found

    def leaves(self, row: Row, output: Output) -> Iterator[tuple[Path, Any]]:
        """Every value of its rows with its path: names of sections and rows, then that of the entry."""
        for key, inner in self.rows(row):
            path = (self.name,) if self.single else (self.name, key)
            for part in self.parts:
                if isinstance(part, Section):
                    yield from (((*path, *rest), value) for rest, value in part.leaves(inner, output))
                elif output in part.outputs and not part.absent(value := part.of(inner)):
                    yield (*path, part.name), value

    def says_anything(self, output: Output) -> bool:
        """Whether anything of it stands in an output."""
        inner = (one for one in self.parts if isinstance(one, Section))
        return bool(self.entries(output)) or any(one.says_anything(output) for one in inner)
