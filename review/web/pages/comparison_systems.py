"""Source 001's tables by system on the page that compares runs: classes by category and system, spread of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from review.reports.by_profile.classes import ClassShare, ClassTable
from review.reports.by_profile.section import Spread
from review.reports.report import Report
from review.web.pages.profile_card import profile_card


@dataclass(frozen=True, slots=True)
class ClassCell:
    """How many answers have a label; ``share`` of all answers, ``None`` within one category."""

    count: int
    share: ClassShare | None = None


@dataclass(frozen=True, slots=True)
class ClassLine:
    """A system's answers in a category, which is empty for all of them."""

    category: str
    system: str
    cells: tuple[ClassCell, ...]


@dataclass(frozen=True, slots=True)
class ClassesBySystem:
    """A class metric of all systems, category by category."""

    title: str
    labels: tuple[str, ...]
    lines: tuple[ClassLine, ...]


@dataclass(frozen=True, slots=True)
class SpreadLine:
    """Mean, lowest and highest score of a system's answers in a category."""

    system: str
    row: Spread


@dataclass(frozen=True, slots=True)
class SystemsCard:
    """The tables; ``empty`` where no run's profile has classes or scores of answers."""

    classes: tuple[ClassesBySystem, ...]
    spread: tuple[SpreadLine, ...]
    empty: bool


def systems_card(reports: Sequence[Report], run_names: Mapping[int, str]) -> SystemsCard:
    """The card of the runs' reports. Runs of one system are told apart by their names."""
    systems = [report.header.system for report in reports]
    named = [
        run_names[report.header.run_id] if systems.count(system) > 1 else system
        for report, system in zip(reports, systems, strict=True)
    ]
    cards = list(zip(named, [profile_card(report) for report in reports], strict=True))
    tables: dict[str, list[tuple[str, ClassTable]]] = {}
    for name, card in cards:
        for title, table in card.classes:
            tables.setdefault(title, []).append((name, table))
    classes = tuple(_classes(title, found) for title, found in tables.items())
    spread = _spread([(name, row) for name, card in cards for row in card.spread])
    return SystemsCard(classes, spread, empty=not (classes or spread))


def _classes(title: str, tables: Sequence[tuple[str, ClassTable]]) -> ClassesBySystem:
    labels = tuple(dict.fromkeys(label for _name, table in tables for label in table.labels))
    lines = [ClassLine("", name, _shares(table, labels)) for name, table in tables]
    for category in dict.fromkeys(category for _name, table in tables for category in table.categories):
        for name, table in tables:
            if category in table.categories:  # nothing where the system answered no question of it
                counts = table.categories[category]
                lines.append(ClassLine(category, name, tuple(ClassCell(counts.get(label, 0)) for label in labels)))
    return ClassesBySystem(title, labels, tuple(lines))


def _shares(table: ClassTable, labels: Sequence[str]) -> tuple[ClassCell, ...]:
    told = {one.label: ClassCell(one.count, one) for one in table.total}
    return tuple(told.get(label, ClassCell(0)) for label in labels)


def _spread(rows: Sequence[tuple[str, Spread]]) -> tuple[SpreadLine, ...]:
    lines = []
    for category in dict.fromkeys(row.category for _name, row in rows):
        lines += [SpreadLine(name, row) for name, row in rows if row.category == category]
    return tuple(lines)
