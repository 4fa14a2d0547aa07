"""Source 001's tables by system on the page that compares runs: classes by category and system, spread of scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from review.reports.report import Report
from review.web.pages.profile_card import ClassView, SpreadRow, profile_card


@dataclass(frozen=True, slots=True)
class ClassCell:
    """How many answers have a label; ``share`` with its 95% interval over all categories, empty within one."""

    count: int
    share: str = ""


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
    row: SpreadRow


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
    titles = dict.fromkeys(view.title for _name, card in cards for view in card.classes)
    classes = tuple(
        _classes(title, [(name, view) for name, card in cards for view in card.classes if view.title == title])
        for title in titles
    )
    spread = _spread([(name, row) for name, card in cards for row in card.spread])
    return SystemsCard(classes, spread, empty=not (classes or spread))


def _classes(title: str, views: Sequence[tuple[str, ClassView]]) -> ClassesBySystem:
    labels = tuple(dict.fromkeys(label for _name, view in views for label in view.labels))
    lines = [ClassLine("", name, _shares(view, labels)) for name, view in views]
    for category in dict.fromkeys(row.name for _name, view in views for row in view.rows):
        found = [(name, _counts(view, category, labels)) for name, view in views]
        lines += [ClassLine(category, name, cells) for name, cells in found if cells]
    return ClassesBySystem(title, labels, tuple(lines))


def _shares(view: ClassView, labels: Sequence[str]) -> tuple[ClassCell, ...]:
    told = {label: ClassCell(count, f"{share} ({interval})") for label, count, share, interval in view.shares}
    return tuple(told.get(label, ClassCell(0)) for label in labels)


def _counts(view: ClassView, category: str, labels: Sequence[str]) -> tuple[ClassCell, ...]:
    """Nothing where the system answered no question of the category."""
    for row in view.rows:
        if row.name == category:
            counts = dict(zip(view.labels, row.counts, strict=True))
            return tuple(ClassCell(counts.get(label, 0)) for label in labels)
    return ()


def _spread(rows: Sequence[tuple[str, SpreadRow]]) -> tuple[SpreadLine, ...]:
    lines = []
    for category in dict.fromkeys(row.name for _name, row in rows):
        lines += [SpreadLine(name, row) for name, row in rows if row.name == category]
    return tuple(lines)
