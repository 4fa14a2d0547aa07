"""What a profile adds to a report, in the terms of its source: figures under the source's names, bands, who passes,
what high and low figures mean together, classes by category, spread. Everything judge-only, as it came."""

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
from evaluation.profiles.arithmetic import Passing, PassOrFail, band_of, cell_of, has_passing, pass_or_fail
from evaluation.profiles.per_answer import AnswerOverall
from evaluation.profiles.spec import FLAGS, OVERALL, Band, Cell, ProfileSpec, Table
from evaluation.scoring.writing import counting
from review.evidence.answers import RunAnswer
from review.reports.estimates import ThreeScores
from review.reports.gathering import Gathered
from review.reports.scores import NEGATIVE, MetricValues, Side
from review.statistics.agreement.bootstrap import clopper_pearson


@dataclass(frozen=True, slots=True)
class ClassShare:
    """A label's count and share of the labelled answers, with the exact 95% interval."""

    label: str
    count: int
    share: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ClassTable:
    """A class metric over the run (one system), and by category: label -> count. ``name`` is the source's name."""

    metric: str
    name: str
    labels: tuple[str, ...]
    total: tuple[ClassShare, ...]
    categories: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Abstention:
    """Answerable questions and questions whose right answer is to abstain, by whether the answer abstained. Abstaining
    on an unanswerable question is right."""

    answerable_answered: int
    answerable_abstained: int
    unanswerable_answered: int
    unanswerable_abstained: int


def class_tables(profile: ProfileSpec, side: Side) -> tuple[ClassTable, ...]:
    """The tables of the profile's class metrics that have labels."""
    metrics = [one for name, one in side.metrics.items() if name in profile.metrics and one.scale.labels]
    return tuple(_table(profile, one) for one in metrics if one.labels)


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
        categories={name: {label: found[label] for label in labels} for name, found in categories.items()},
    )


def abstention(side: Side) -> Abstention | None:
    """Who abstained when, by the rule ``dont_know``, else by the class of the answer; ``None`` without either."""
    metric = side.metrics.get("dont_know") or side.metrics.get("answer_class")
    if metric is None:
        return None
    found = Counter(
        (answer.category != NEGATIVE, value.label == DONT_KNOW or value.value == 1.0)
        for answer, value in zip(metric.answers, metric.values, strict=True)
        if value.status is Status.SCORED
    )
    counts = [found[answerable, abstained] for answerable in (True, False) for abstained in (False, True)]
    return Abstention(*counts) if found else None


Flags = Mapping[int, frozenset[str]]


@dataclass(frozen=True, slots=True)
class PassRate:
    """Passed / (passed + failed), with the exact 95% interval; ``None`` where nothing is decided. ``below`` counts
    answers under each threshold, by the source's names, ``flags`` answers with each automatic failure; one answer
    may have several."""

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
    """The flags of every answer of the run that has any. One query; none for profiles without automatic failures."""
    if not profile.automatic_failures:
        return {}
    rows = counting(run).filter(metric__name=FLAGS, status=Status.SCORED).values_list("answer_id", "detail")
    kinds = (UNKNOWN_PHONE, FORBIDDEN_NAME, AVOIDANCE)
    return {pk: frozenset(kind for kind in kinds if detail.get(kind)) for pk, detail in rows}


def each_answer(
    profile: ProfileSpec, side: Side, overall: Sequence[AnswerOverall], flags: Flags
) -> list[PassOrFail | None]:
    """Whether each answer of a side passes, in their order; ``None`` for one without an overall score to have."""
    found: list[PassOrFail | None] = []
    for at, (answer, one) in enumerate(zip(side.answers, overall, strict=True)):
        if one.status is Status.NOT_APPLICABLE:
            found.append(None)
            continue
        values: dict[str, float | None] = {OVERALL: one.value}
        for name, metric in side.metrics.items():
            value = metric.values[at]
            if name in profile.thresholds and value.status in {Status.SCORED, Status.FAILED}:
                values[name] = value.value
        flagged = side.metrics.get(FLAGS)
        lost = flagged is not None and flagged.values[at].status is Status.FAILED
        found.append(pass_or_fail(profile, values, flags.get(answer.answer_id, frozenset()), lost=lost))
    return found


def pass_rate(profile: ProfileSpec, side: Side, overall: Sequence[AnswerOverall], flags: Flags) -> PassRate | None:
    """The pass rate of a side; ``None`` for profiles without a rule, or without a score of single answers."""
    if not has_passing(profile) or not overall:
        return None
    each = each_answer(profile, side, overall, flags)
    told = [one for one in each if one is not None]
    verdicts = Counter(one.verdict for one in told)
    passed, failed = verdicts[Passing.PASSED], verdicts[Passing.FAILED]
    decided = passed + failed
    low, high = clopper_pearson(passed / decided, decided) if decided else (None, None)
    return PassRate(
        passed=passed,
        failed=failed,
        unknown=verdicts[Passing.UNKNOWN],
        not_applicable=each.count(None),
        rate=passed / decided if decided else None,
        low=low,
        high=high,
        below={profile.report_name(name): sum(name in one.below for one in told) for name in profile.thresholds},
        flags={one.flag: sum(one.flag in of.flags for of in told) for one in profile.automatic_failures},
        flag_titles={one.flag: one.title.bilingual for one in profile.automatic_failures},
    )


@dataclass(frozen=True, slots=True)
class Spread:
    """The scores of ``n`` answers, on the scale the profile's source shows them. ``category`` is empty for all."""

    category: str
    n: int
    mean: float
    lowest: float
    highest: float


def spreads(profile: ProfileSpec, answers: Sequence[RunAnswer], overall: Sequence[AnswerOverall]) -> tuple[Spread, ...]:
    """The spread over all answers first, then by category in the order they appear; none for run-mean profiles."""
    scored = [
        (answer.category, profile.report_value(OVERALL, one.value))
        for answer, one in zip(answers, overall, strict=False)
        if one.value is not None
    ]
    if not scored:
        return ()
    named = [_spread(name, [v for c, v in scored if c == name]) for name in dict.fromkeys(c for c, _ in scored)]
    return (_spread("", [value for _, value in scored]), *named)


def _spread(category: str, values: Sequence[float]) -> Spread:
    return Spread(category, len(values), math.fsum(values) / len(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Banded:
    """A figure of the run in the band it falls into, and how many answers fall into each; ``name`` is the source's name
    of the figure. ``band`` is ``None`` without a figure, or below the lowest band."""

    name: str
    value: float | None
    band: Band | None
    bands: tuple[Band, ...]
    answers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """A table of high and low with how many answers fall into each field, ``unknown`` into none for lack of a value,
    and the field of the run's means."""

    table: Table
    answers: Mapping[str, int]
    unknown: int
    run: Cell | None


@dataclass(frozen=True, slots=True)
class ProfileSection:
    """The profile's own part of a report. ``figures`` are by the source's names, on the source's scales, ``None`` where
    there is none. ``spread`` is of the answers' overall scores, for the run (its system) and by category."""

    profile: str
    source: str
    figures: Mapping[str, float | int | None]
    bands: tuple[Banded, ...]
    passing: PassRate | None
    diagnoses: tuple[Diagnosed, ...]
    classes: tuple[ClassTable, ...]
    abstention: Abstention | None
    spread: tuple[Spread, ...]
    deviations: tuple[Bilingual, ...]

    @property
    def says_anything(self) -> bool:
        """Whether there is more than figures and deviations."""
        return bool(self.bands or self.passing or self.diagnoses or self.classes or self.spread)


def section_json(section: ProfileSection) -> dict[str, Any]:
    """``figures`` under the source's names first, then what else the profile has to say; absent where it does not."""
    found: dict[str, Any] = {
        "profile": section.profile,
        "source": section.source,
        "figures": dict(section.figures),
    }
    if section.bands:
        found["bands"] = {one.name: _banded_json(one) for one in section.bands}
    if section.passing:
        found["passing"] = asdict(section.passing)
    if section.diagnoses:
        found["diagnosis"] = {one.table.name: _diagnosed_json(one) for one in section.diagnoses}
    if section.classes:
        found["classes"] = {table.name: _table_json(table) for table in section.classes}
    if section.abstention:
        found["abstention"] = asdict(section.abstention)
    if section.spread:
        found["spread"] = [asdict(one) for one in section.spread]
    return {**found, "deviations": [_text(text) for text in section.deviations]}


def _text(text: Bilingual) -> dict[str, str]:
    return {"en": text.en, "ko": text.ko}


def _banded_json(banded: Banded) -> dict[str, Any]:
    return {
        "value": banded.value,
        "band": banded.band.name if banded.band else None,
        "answers": dict(banded.answers),
        "titles": {band.name: _text(band.title.bilingual) for band in banded.bands},
    }


def _diagnosed_json(found: Diagnosed) -> dict[str, Any]:
    return {
        "run": found.run.name if found.run else None,
        "unknown": found.unknown,
        "cells": {
            cell.name: {
                "high": list(cell.high),
                "answers": found.answers[cell.name],
                "title": _text(cell.title.bilingual),
                "text": _text(cell.text.bilingual),
            }
            for cell in found.table.cells
        },
    }


def _table_json(table: ClassTable) -> dict[str, Any]:
    return {
        "labels": list(table.labels),
        "total": {one.label: {k: v for k, v in asdict(one).items() if k != "label"} for one in table.total},
        "by_category": {name: dict(counts) for name, counts in table.categories.items()},
    }


def profile_section(basis: Gathered, overall: ThreeScores) -> ProfileSection:
    """The section of the run's judge-only side, without bands and tables of metrics that the run does not compute. One
    query where the profile has automatic failures."""
    profile, side, scores = basis.profile, basis.sides.machine, basis.machine.answers
    return ProfileSection(
        profile=profile.name,
        source=profile.source,
        figures=_figures(profile, side, overall),
        bands=_bands(profile, basis, overall),
        passing=pass_rate(profile, side, scores, flags_of(basis.run, profile)),
        diagnoses=tuple(_diagnosed(table, side) for table in profile.tables if _has_values(table, side)),
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


def _figures(profile: ProfileSpec, side: Side, overall: ThreeScores) -> dict[str, float | int | None]:
    found: dict[str, float | int | None] = {}
    for name in profile.metrics:
        metric = side.metrics.get(name)
        if metric is None or not metric.scale.labels:
            mean = _mean(metric)
            found[profile.report_name(name)] = None if mean is None else profile.report_value(name, mean)
        elif name == "answer_class":  # named as source 001 does: ``correct_answers_count``
            counts = Counter(metric.labels)
            found |= {f"{label.lower()}_answers_count": counts[label] for label in metric.scale.labels}
    value = overall.judge_only.value
    if profile.parts:
        found[profile.report_name(OVERALL)] = None if value is None else profile.report_value(OVERALL, value)
    return found


def _bands(profile: ProfileSpec, basis: Gathered, overall: ThreeScores) -> tuple[Banded, ...]:
    found = []
    for name, bands in profile.metric_bands.items():
        metric = basis.sides.machine.metrics.get(name)
        if metric is None or not _applies(metric):
            continue
        found.append(_banded(profile.report_name(name), bands, _mean(metric), _numbers(metric)))
    if profile.bands:
        numbers = [one.value for one in basis.machine.answers if one.value is not None]
        found.append(_banded(profile.report_name(OVERALL), profile.bands, overall.judge_only.value, numbers))
    return tuple(found)


def _applies(metric: MetricValues) -> bool:
    """Whether the metric applies to any answer."""
    return metric.count(Status.NOT_APPLICABLE) < len(metric.values)


def _has_values(table: Table, side: Side) -> bool:
    """Whether every axis of the table has a metric that the run computes."""
    there = {name for name, metric in side.metrics.items() if _applies(metric)}
    return all(there & set(axis.metrics) for axis in table.axes)


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
    run = cell_of(table, {name: _mean(side.metrics.get(name)) for name in names})
    return Diagnosed(table, {cell.name: counts[cell.name] for cell in table.cells}, counts[""], run)
