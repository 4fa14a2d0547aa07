"""What the run's profile makes of its figures, as a card: who passes and why not, bands, what high and low figures mean
together, classes by category, and the spread of the answers' scores."""

from __future__ import annotations

from dataclasses import dataclass

from django.utils.translation import get_language, gettext

from evaluation.core.registry import Bilingual
from evaluation.profiles.spec import OVERALL
from evaluation.wording import numbers
from evaluation.wording.categories import category_name
from review.reports.by_profile.classes import Abstention, ClassTable
from review.reports.by_profile.passing import PassRate
from review.reports.by_profile.section import Banded, Diagnosed
from review.reports.by_profile.spread import Spread
from review.reports.report import MetricLine, Report


@dataclass(frozen=True, slots=True)
class Counted:
    """A name with how many answers it has."""

    name: str
    count: int


@dataclass(frozen=True, slots=True)
class PassingView:
    """The pass rate with its interval, and the reasons for failing, the commonest first."""

    rate: str
    interval: str
    passed: int
    decided: int
    unknown: int
    reasons: tuple[Counted, ...]


@dataclass(frozen=True, slots=True)
class BandView:
    """A figure with its band, and the answers in each band."""

    title: str
    value: str
    band: str
    answers: tuple[Counted, ...]


@dataclass(frozen=True, slots=True)
class CellView:
    """A field of a table of high and low; ``run`` marks the one of the run's means."""

    title: str
    text: str
    signs: tuple[str, ...]
    count: int
    run: bool


@dataclass(frozen=True, slots=True)
class DiagnosisView:
    """A table of high and low; ``unknown`` answers have no value on one of its sides."""

    title: str
    cells: tuple[CellView, ...]
    unknown: int


@dataclass(frozen=True, slots=True)
class ClassRow:
    """A category with its count of each label."""

    name: str
    counts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ClassView:
    """A class metric: the share of each label over the run, and counts by category."""

    title: str
    labels: tuple[str, ...]
    shares: tuple[tuple[str, int, str, str], ...]
    rows: tuple[ClassRow, ...]


@dataclass(frozen=True, slots=True)
class SpreadRow:
    """Mean, lowest and highest score of a category; ``name`` is empty for the whole run."""

    name: str
    n: int
    mean: str
    lowest: str
    highest: str


@dataclass(frozen=True, slots=True)
class ProfileCard:
    """Everything the card shows; ``empty`` where the profile has nothing to add."""

    passing: PassingView | None
    bands: tuple[BandView, ...]
    diagnoses: tuple[DiagnosisView, ...]
    classes: tuple[ClassView, ...]
    abstention: Abstention | None
    spread: tuple[SpreadRow, ...]
    deviations: tuple[str, ...]
    empty: bool


def profile_card(report: Report) -> ProfileCard:
    """The card in the reader's language."""
    section, language = report.by_profile, get_language() or "en"
    titles = _titles(report, language)
    return ProfileCard(
        passing=_passing(section.passing, titles, language) if section.passing else None,
        bands=tuple(_band(one, titles, language) for one in section.bands),
        diagnoses=tuple(_diagnosis(one, language) for one in section.diagnoses),
        classes=tuple(_classes(one, titles) for one in section.classes),
        abstention=section.abstention,
        spread=tuple(_spread(one) for one in section.spread) if len(section.spread) > 1 else (),
        deviations=tuple(text.in_language(language) for text in section.deviations),
        empty=not (section.says_anything or section.deviations),
    )


def _titles(report: Report, language: str) -> dict[str, str]:
    """The source's name of a figure -> its title."""
    lines: tuple[MetricLine, ...] = report.metrics
    found = {line.report_name: line.title.in_language(language) for line in reversed(lines)}
    return found | {OVERALL: gettext("Overall score"), "overall_score": gettext("Overall score")}


def _text(text: Bilingual, language: str) -> str:
    return text.in_language(language)


def _passing(rate: PassRate, titles: dict[str, str], language: str) -> PassingView:
    below = [
        Counted(gettext("%(figure)s below its threshold") % {"figure": titles.get(name, name)}, count)
        for name, count in rate.below.items()
        if count
    ]
    flags = [Counted(_text(rate.flag_titles[name], language), count) for name, count in rate.flags.items() if count]
    return PassingView(
        rate="–" if rate.rate is None else numbers.share(rate.rate),
        interval="" if rate.low is None or rate.high is None else _shares(rate.low, rate.high),
        passed=rate.passed,
        decided=rate.passed + rate.failed,
        unknown=rate.unknown,
        reasons=tuple(sorted([*below, *flags], key=lambda one: -one.count)),
    )


def _shares(low: float, high: float) -> str:
    return f"{100 * low:.0f}–{100 * high:.0f}%"


def _band(banded: Banded, titles: dict[str, str], language: str) -> BandView:
    return BandView(
        title=titles.get(banded.name, banded.name),
        value="–" if banded.value is None else numbers.plain(banded.value),
        band=_text(banded.band.title.bilingual, language) if banded.band else "",
        answers=tuple(
            Counted(_text(band.title.bilingual, language), banded.answers[band.name]) for band in banded.bands
        ),
    )


def _diagnosis(found: Diagnosed, language: str) -> DiagnosisView:
    cells = []
    for cell in found.table.cells:
        signs = tuple(
            (gettext("%(figure)s high") if axis.name in cell.high else gettext("%(figure)s low"))
            % {"figure": _text(axis.title.bilingual, language)}
            for axis in found.table.axes
        )
        cells.append(
            CellView(
                title=_text(cell.title.bilingual, language),
                text=_text(cell.text.bilingual, language),
                signs=signs,
                count=found.answers[cell.name],
                run=found.run is not None and found.run.name == cell.name,
            )
        )
    return DiagnosisView(_text(found.table.title.bilingual, language), tuple(cells), found.unknown)


def _classes(table: ClassTable, titles: dict[str, str]) -> ClassView:
    return ClassView(
        title=titles.get(table.name, table.name),
        labels=table.labels,
        shares=tuple((s.label, s.count, numbers.share(s.share), _shares(s.low, s.high)) for s in table.total),
        rows=tuple(
            ClassRow(category_name(name), tuple(counts[label] for label in table.labels))
            for name, counts in table.categories.items()
        ),
    )


def _spread(one: Spread) -> SpreadRow:
    return SpreadRow(
        category_name(one.category),
        one.n,
        numbers.plain(one.mean),
        numbers.plain(one.lowest),
        numbers.plain(one.highest),
    )
