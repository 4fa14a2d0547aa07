"""What the run's profile makes of its figures, as a card: who passes and why not, bands, what high and low figures mean
together, classes by category, and the spread of the answers' scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.translation import get_language, gettext

from evaluation.profiles.spec import OVERALL, Band, Cell
from review.reports.by_profile.classes import ClassTable
from review.reports.by_profile.passing import PassRate
from review.reports.by_profile.section import Banded, Diagnosed, ProfileSection, Spread
from review.reports.report import Report


@dataclass(frozen=True, slots=True)
class PassingView:
    """The pass rate, and the reasons for failing with their counts, the commonest first."""

    rate: PassRate
    decided: int
    reasons: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class CellView:
    """A field of a table of high and low with its answers; ``run`` marks the one of the run's means."""

    cell: Cell
    signs: tuple[str, ...]
    count: int
    run: bool


@dataclass(frozen=True, slots=True)
class ProfileCard:
    """Everything the card shows, ``empty`` where the profile has nothing to add. Bands and classes come with the titles
    of their figures, bands also with the answers in each, and each table of high and low with its fields."""

    section: ProfileSection
    passing: PassingView | None
    bands: tuple[tuple[str, Banded, tuple[tuple[Band, int], ...]], ...]
    diagnoses: tuple[tuple[Diagnosed, tuple[CellView, ...]], ...]
    classes: tuple[tuple[str, ClassTable], ...]
    spread: tuple[Spread, ...]
    empty: bool


def profile_card(report: Report) -> ProfileCard:
    """The card in the reader's language."""
    section, language = report.by_profile, get_language() or "en"
    titles = figure_titles(report)
    return ProfileCard(
        section=section,
        passing=_passing(section.passing, titles, language) if section.passing else None,
        bands=tuple((titles.get(one.name, one.name), one, _counts(one)) for one in section.bands),
        diagnoses=tuple((one, _cells(one, language)) for one in section.diagnoses),
        classes=tuple((titles.get(one.name, one.name), one) for one in section.classes),
        spread=section.spread if len(section.spread) > 1 else (),
        empty=not (section.says_anything or section.deviations),
    )


def figure_titles(report: Report) -> dict[str, str]:
    """The source's name of a figure -> its title."""
    language = get_language() or "en"
    found = {line.report_name: line.title.in_language(language) for line in reversed(report.metrics)}
    return found | {OVERALL: gettext("Overall score"), "overall_score": gettext("Overall score")}


def _passing(rate: PassRate, titles: Mapping[str, str], language: str) -> PassingView:
    below = [
        (gettext("%(figure)s below its threshold") % {"figure": titles.get(name, name)}, count)
        for name, count in rate.below.items()
        if count
    ]
    flags = [(rate.flag_titles[name].in_language(language), count) for name, count in rate.flags.items() if count]
    return PassingView(rate, rate.passed + rate.failed, tuple(sorted([*below, *flags], key=lambda one: -one[1])))


def _counts(banded: Banded) -> tuple[tuple[Band, int], ...]:
    """How many answers fall into each of the bands."""
    return tuple((band, banded.answers[band.name]) for band in banded.bands)


def _cells(found: Diagnosed, language: str) -> tuple[CellView, ...]:
    cells = []
    for cell in found.table.cells:
        signs = tuple(
            (gettext("%(figure)s high") if axis.name in cell.high else gettext("%(figure)s low"))
            % {"figure": axis.title.bilingual.in_language(language)}
            for axis in found.table.axes
        )
        run = found.run is not None and found.run.name == cell.name
        cells.append(CellView(cell, signs, found.answers[cell.name], run))
    return tuple(cells)
