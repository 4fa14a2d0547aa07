"""Judge-only figures in the terms of the profile's source: bands, pass rate, diagnosis, classes by category, and
spread."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evaluation.core.metric_specs import Bilingual
from evaluation.core.samples import Status
from evaluation.judging.families.answer_class import DONT_KNOW
from evaluation.metrics.hallucination_flags import AVOIDANCE, FORBIDDEN_NAME, UNKNOWN_PHONE
from evaluation.models import Run
from evaluation.profiles.arithmetic import PassResult, PassVerdict, band_of, cell_of, has_passing, pass_or_fail
from evaluation.profiles.per_answer import AnswerOverall
from evaluation.profiles.spec import FLAGS_METRIC, OVERALL, DiagnosisTable, ProfileSpec, ScoreBand, TableCell
from evaluation.scoring.scores import counting_scores
from review.evidence.answers import RunAnswer
from review.reports.estimates import OverallScores
from review.reports.inputs import ReportInputs
from review.reports.scores import NEGATIVE, MetricValues, Side
from review.statistics.agreement.bootstrap import clopper_pearson


@dataclass(frozen=True, slots=True)
class ClassShare:
    """Count and share of a label among the labelled answers, with the exact 95% interval."""

    label: str
    count: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ClassTable:
    """A class metric over the run and by category (label -> count). ``name`` is the source's."""

    metric: str
    name: str
    labels: tuple[str, ...]
    total: tuple[ClassShare, ...]
    categories: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Abstention:
    """Answered and abstained counts of answerable and unanswerable questions. Abstaining on an unanswerable question is
    correct."""

    answerable_answered: int
    answerable_abstained: int
    unanswerable_answered: int
    unanswerable_abstained: int


def class_tables(profile: ProfileSpec, side: Side) -> tuple[ClassTable, ...]:
    metrics = [metric for name, metric in side.metrics.items() if name in profile.metrics and metric.scale.labels]
    return tuple(_table(profile, metric) for metric in metrics if metric.labels)


def _table(profile: ProfileSpec, metric: MetricValues) -> ClassTable:
    counts = Counter(metric.labels)
    total = counts.total()
    categories: dict[str, Counter[str]] = {}
    for answer, value in zip(metric.answers, metric.values, strict=True):
        if value.label is not None:
            categories.setdefault(answer.category, Counter())[value.label] += 1
    labels = metric.scale.labels
    return ClassTable(
        metric=metric.name,
        name=profile.report_name(metric.name),
        labels=labels,
        total=tuple(
            ClassShare(label, counts[label], counts[label] / total, *clopper_pearson(counts[label] / total, total))
            for label in labels
        ),
        categories={
            name: {label: category_counts[label] for label in labels} for name, category_counts in categories.items()
        },
    )


def abstention(side: Side) -> Abstention | None:
    """Count abstentions by the rule ``dont_know``, else by the answer class. ``None`` without either metric."""
    metric = side.metrics.get("dont_know") or side.metrics.get("answer_class")
    if metric is None:
        return None
    outcomes = Counter(
        (answer.category != NEGATIVE, value.label == DONT_KNOW or value.value == 1.0)
        for answer, value in zip(metric.answers, metric.values, strict=True)
        if value.status is Status.SCORED
    )
    counts = [outcomes[answerable, abstained] for answerable in (True, False) for abstained in (False, True)]
    return Abstention(*counts) if outcomes else None


Flags = Mapping[int, frozenset[str]]


@dataclass(frozen=True, slots=True)
class PassRate:
    """Passed / (passed + failed), with the exact 95% interval. ``None`` if no answer is decided.

    ``below`` counts answers under each threshold by the source's names, ``flags`` answers with each automatic failure.
    An answer may count several times."""

    passed: int
    failed: int
    unknown: int
    not_applicable: int
    rate: float | None
    low: float | None
    high: float | None
    below: Mapping[str, int]
    flags: Mapping[str, int]
    flag_titles: Mapping[str, Bilingual]


def flags_of(run: Run, profile: ProfileSpec) -> Flags:
    """Flags by answer. One query; none for profiles without automatic failures."""
    if not profile.automatic_failures:
        return {}
    rows = (
        counting_scores(run).filter(metric__name=FLAGS_METRIC, status=Status.SCORED).values_list("answer_id", "detail")
    )
    kinds = (UNKNOWN_PHONE, FORBIDDEN_NAME, AVOIDANCE)
    return {pk: frozenset(kind for kind in kinds if detail.get(kind)) for pk, detail in rows}


def answer_verdicts(
    profile: ProfileSpec, side: Side, overall: Sequence[AnswerOverall], flags: Flags
) -> list[PassResult | None]:
    """Pass verdict of each answer in order, ``None`` if the overall score does not apply."""
    verdicts: list[PassResult | None] = []
    for index, (answer, score) in enumerate(zip(side.answers, overall, strict=True)):
        if score.status is Status.NOT_APPLICABLE:
            verdicts.append(None)
            continue
        values: dict[str, float | None] = {OVERALL: score.value}
        for name, metric in side.metrics.items():
            value = metric.values[index]
            if name in profile.thresholds and value.status in {Status.SCORED, Status.FAILED}:
                values[name] = value.value
        flagged = side.metrics.get(FLAGS_METRIC)
        lost = flagged is not None and flagged.values[index].status is Status.FAILED
        verdicts.append(pass_or_fail(profile, values, flags.get(answer.answer_id, frozenset()), flags_unavailable=lost))
    return verdicts


def pass_rate(profile: ProfileSpec, side: Side, overall: Sequence[AnswerOverall], flags: Flags) -> PassRate | None:
    """Pass rate of a side. ``None`` for profiles without a pass rule or without scores per answer."""
    if not has_passing(profile) or not overall:
        return None
    results = answer_verdicts(profile, side, overall, flags)
    known_results = [result for result in results if result is not None]
    verdicts = Counter(result.verdict for result in known_results)
    passed, failed = verdicts[PassVerdict.PASSED], verdicts[PassVerdict.FAILED]
    decided = passed + failed
    low, high = clopper_pearson(passed / decided, decided) if decided else (None, None)
    return PassRate(
        passed=passed,
        failed=failed,
        unknown=verdicts[PassVerdict.UNKNOWN],
        not_applicable=results.count(None),
        rate=passed / decided if decided else None,
        low=low,
        high=high,
        below={
            profile.report_name(name): sum(name in result.below for result in known_results)
            for name in profile.thresholds
        },
        flags={
            rule.flag: sum(rule.flag in result.flags for result in known_results) for rule in profile.automatic_failures
        },
        flag_titles={rule.flag: rule.title.bilingual for rule in profile.automatic_failures},
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """Scores of ``n`` answers on the source's scale. ``category`` is empty for all answers."""

    category: str
    n: int
    mean: float
    lowest: float
    highest: float


def spreads(profile: ProfileSpec, answers: Sequence[RunAnswer], overall: Sequence[AnswerOverall]) -> tuple[Spread, ...]:
    """Spread over all answers, then by category in order of appearance. Empty for run-mean profiles."""
    scored = [
        (answer.category, profile.report_value(OVERALL, score.value))
        for answer, score in zip(answers, overall, strict=False)
        if score.value is not None
    ]
    if not scored:
        return ()
    by_category = [_spread(name, [v for c, v in scored if c == name]) for name in dict.fromkeys(c for c, _ in scored)]
    return (_spread("", [value for _, value in scored]), *by_category)


def _spread(category: str, values: Sequence[float]) -> Spread:
    return Spread(category, len(values), math.fsum(values) / len(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class BandedFigure:
    """A figure with its band and the number of answers per band. ``name`` is the source's.

    ``band`` is ``None`` without a figure, or below the lowest band."""

    name: str
    value: float | None
    band: ScoreBand | None
    bands: tuple[ScoreBand, ...]
    answers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A diagnosis table of high and low figures with answers per cell, and the cell of the run's means.

    ``unknown`` answers lack a value."""

    table: DiagnosisTable
    answers: Mapping[str, int]
    unknown: int
    run: TableCell | None


@dataclass(frozen=True, slots=True)
class ProfileSection:
    """The profile's part of a report. ``figures`` have the source's names and scales, ``None`` if undefined.

    ``spread`` covers overall scores of answers, for the run and by category."""

    profile: str
    source: str
    figures: Mapping[str, float | int | None]
    bands: tuple[BandedFigure, ...]
    passing: PassRate | None
    diagnoses: tuple[Diagnosis, ...]
    classes: tuple[ClassTable, ...]
    abstention: Abstention | None
    spread: tuple[Spread, ...]
    deviations: tuple[Bilingual, ...]

    @property
    def has_content(self) -> bool:
        """Return whether it has more than figures and deviations."""
        return bool(self.bands or self.passing or self.diagnoses or self.classes or self.spread)


def section_json(section: ProfileSection) -> dict[str, Any]:
    """JSON form with ``figures`` under the source's names first. Empty parts are omitted."""
    document: dict[str, Any] = {
        "profile": section.profile,
        "source": section.source,
        "figures": dict(section.figures),
    }
    if section.bands:
        document["bands"] = {banded.name: _banded_json(banded) for banded in section.bands}
    if section.passing:
        document["passing"] = asdict(section.passing)
    if section.diagnoses:
        document["diagnosis"] = {diagnosis.table.name: _diagnosed_json(diagnosis) for diagnosis in section.diagnoses}
    if section.classes:
        document["classes"] = {table.name: _table_json(table) for table in section.classes}
    if section.abstention:
        document["abstention"] = asdict(section.abstention)
    if section.spread:
        document["spread"] = [asdict(spread) for spread in section.spread]
    return {**document, "deviations": [_text(text) for text in section.deviations]}


def _text(text: Bilingual) -> dict[str, str]:
    return {"en": text.en, "ko": text.ko}


def _banded_json(banded: BandedFigure) -> dict[str, Any]:
    return {
        "value": banded.value,
        "band": banded.band.name if banded.band else None,
        "answers": dict(banded.answers),
        "titles": {band.name: _text(band.title.bilingual) for band in banded.bands},
    }


def _diagnosed_json(diagnosis: Diagnosis) -> dict[str, Any]:
    return {
        "run": diagnosis.run.name if diagnosis.run else None,
        "unknown": diagnosis.unknown,
        "cells": {
            cell.name: {
                "high": list(cell.high),
                "answers": diagnosis.answers[cell.name],
                "title": _text(cell.title.bilingual),
                "text": _text(cell.text.bilingual),
            }
            for cell in diagnosis.table.cells
        },
    }


def _table_json(table: ClassTable) -> dict[str, Any]:
    return {
        "labels": list(table.labels),
        "total": {share.label: {k: v for k, v in asdict(share).items() if k != "label"} for share in table.total},
        "by_category": {name: dict(counts) for name, counts in table.categories.items()},
    }


def profile_section(basis: ReportInputs, overall: OverallScores) -> ProfileSection:
    """Build the section from the judge-only side, without bands and tables of metrics that the run did not compute.

    One query if the profile has automatic failures."""
    profile, side, scores = basis.profile, basis.sides.machine, basis.machine.answers
    return ProfileSection(
        profile=profile.name,
        source=profile.source,
        figures=_figures(profile, side, overall),
        bands=_bands(profile, basis, overall),
        passing=pass_rate(profile, side, scores, flags_of(basis.run, profile)),
        diagnoses=tuple(_diagnosis(table, side) for table in profile.tables if _has_values(table, side)),
        classes=class_tables(profile, side),
        abstention=abstention(side) if "answer_class" in profile.metrics else None,
        spread=spreads(profile, side.answers, scores),
        deviations=tuple(text.bilingual for text in profile.deviations),
    )


def _mean(metric: MetricValues | None) -> float | None:
    numbers = _numbers(metric)
    return math.fsum(numbers) / len(numbers) if numbers else None


def _numbers(metric: MetricValues | None) -> list[float]:
    return [number for _, number in metric.numbers] if metric else []


def _figures(profile: ProfileSpec, side: Side, overall: OverallScores) -> dict[str, float | int | None]:
    figures: dict[str, float | int | None] = {}
    for name in profile.metrics:
        metric = side.metrics.get(name)
        if metric is None or not metric.scale.labels:
            mean = _mean(metric)
            figures[profile.report_name(name)] = None if mean is None else profile.report_value(name, mean)
        # As in the source: ``correct_answers_count``.
        elif name == "answer_class":
            counts = Counter(metric.labels)
            figures |= {f"{label.lower()}_answers_count": counts[label] for label in metric.scale.labels}
    value = overall.judge_only.value
    if profile.parts:
        figures[profile.report_name(OVERALL)] = None if value is None else profile.report_value(OVERALL, value)
    return figures


def _bands(profile: ProfileSpec, basis: ReportInputs, overall: OverallScores) -> tuple[BandedFigure, ...]:
    figures = []
    for name, bands in profile.metric_bands.items():
        metric = basis.sides.machine.metrics.get(name)
        if metric is None or not _applies_anywhere(metric):
            continue
        figures.append(_banded_figure(profile.report_name(name), bands, _mean(metric), _numbers(metric)))
    if profile.bands:
        numbers = [score.value for score in basis.machine.answers if score.value is not None]
        figures.append(_banded_figure(profile.report_name(OVERALL), profile.bands, overall.judge_only.value, numbers))
    return tuple(figures)


def _applies_anywhere(metric: MetricValues) -> bool:
    return metric.count(Status.NOT_APPLICABLE) < len(metric.values)


def _has_values(table: DiagnosisTable, side: Side) -> bool:
    """Return whether every axis of the table has a computed metric."""
    applicable = {name for name, metric in side.metrics.items() if _applies_anywhere(metric)}
    return all(applicable & set(axis.metrics) for axis in table.axes)


def _banded_figure(name: str, bands: tuple[ScoreBand, ...], value: float | None, numbers: list[float]) -> BandedFigure:
    counts = Counter(band.name for number in numbers if (band := band_of(bands, number)) is not None)
    return BandedFigure(
        name=name,
        value=value,
        band=None if value is None else band_of(bands, value),
        bands=bands,
        answers={band.name: counts[band.name] for band in bands},
    )


def _diagnosis(table: DiagnosisTable, side: Side) -> Diagnosis:
    names = [name for axis in table.axes for name in axis.metrics]
    counts: Counter[str] = Counter()
    for index in range(len(side.answers)):
        values = {name: side.metrics[name].values[index].value for name in names if name in side.metrics}
        cell = cell_of(table, values)
        counts[cell.name if cell else ""] += 1
    run = cell_of(table, {name: _mean(side.metrics.get(name)) for name in names})
    return Diagnosis(table, {cell.name: counts[cell.name] for cell in table.cells}, counts[""], run)
