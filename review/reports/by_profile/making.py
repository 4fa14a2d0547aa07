"""From what was gathered about a run to its profile's own section."""

from __future__ import annotations

import math
from collections import Counter

from evaluation.profiles.arithmetic import band_of, cell_of
from evaluation.profiles.spec import OVERALL, Band, ProfileSpec, Table
from review.reports.by_profile.classes import abstention, class_tables
from review.reports.by_profile.passing import flags_of, pass_rate
from review.reports.by_profile.section import Banded, Diagnosed, ProfileSection, spreads
from review.reports.gathering import Gathered
from review.reports.report import ThreeScores
from review.reports.values import MetricValues, Side


def profile_section(basis: Gathered, overall: ThreeScores) -> ProfileSection:
    """The section of the run's judge-only side. One query where the profile has automatic failures."""
    profile, side, scores = basis.profile, basis.sides.machine, basis.machine.answers
    return ProfileSection(
        profile=profile.name,
        source=profile.source,
        figures=_figures(profile, side, overall),
        bands=_bands(profile, basis, overall),
        passing=pass_rate(profile, side, scores, flags_of(basis.run, profile)),
        diagnoses=tuple(_diagnosed(table, side) for table in profile.tables),
        classes=class_tables(profile, side),
        abstention=abstention(side) if "answer_class" in profile.metrics else None,
        spread=spreads(profile, side.answers, scores),
        deviations=tuple(text.bilingual for text in profile.deviations),
    )


def mean_of(metric: MetricValues | None) -> float | None:
    """The mean of a metric's numbers."""
    numbers = [number for _, number in metric.numbers] if metric else []
    return math.fsum(numbers) / len(numbers) if numbers else None


def label_count_name(label: str) -> str:
    """How source 001 names the count of a class: ``correct_answers_count``."""
    return f"{label.lower()}_answers_count"


def _figures(profile: ProfileSpec, side: Side, overall: ThreeScores) -> dict[str, float | int | None]:
    found: dict[str, float | int | None] = {}
    for name in profile.metrics:
        metric = side.metrics.get(name)
        if metric is None or not metric.scale.labels:
            mean = mean_of(metric)
            found[profile.report_name(name)] = None if mean is None else profile.report_value(name, mean)
        elif name == "answer_class":
            counts = Counter(metric.labels)
            found |= {label_count_name(label): counts[label] for label in metric.scale.labels}
    value = overall.judge_only.value
    if profile.parts:
        found[profile.report_name(OVERALL)] = None if value is None else profile.report_value(OVERALL, value)
    return found


def _bands(profile: ProfileSpec, basis: Gathered, overall: ThreeScores) -> tuple[Banded, ...]:
    found = []
    for name, bands in profile.metric_bands.items():
        metric = basis.sides.machine.metrics.get(name)
        numbers = [number for _, number in metric.numbers] if metric else []
        found.append(_banded(profile.report_name(name), bands, mean_of(metric), numbers))
    if profile.bands:
        numbers = [one.value for one in basis.machine.answers if one.value is not None]
        found.append(_banded(profile.report_name(OVERALL), profile.bands, overall.judge_only.value, numbers))
    return tuple(found)


def _banded(name: str, bands: tuple[Band, ...], value: float | None, numbers: list[float]) -> Banded:
    counts = Counter(band.name for number in numbers if (band := band_of(bands, number)) is not None)
    return Banded(
        name=name,
        value=value,
        band=None if value is None else band_of(bands, value),
        bands=bands,
        answers={band.name: counts[band.name] for band in bands},
    )


def _diagnosed(table: Table, side: Side) -> Diagnosed:
    names = [name for axis in table.axes for name in axis.metrics]
    counts: Counter[str] = Counter()
    for at in range(len(side.answers)):
        values = {name: side.metrics[name].values[at].value for name in names if name in side.metrics}
        cell = cell_of(table, values)
        counts[cell.name if cell else ""] += 1
    run = cell_of(table, {name: mean_of(side.metrics.get(name)) for name in names})
    return Diagnosed(table, {cell.name: counts[cell.name] for cell in table.cells}, counts[""], run)
