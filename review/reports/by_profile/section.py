"""What a profile adds to a report, in the terms of its source: figures under the source's names, bands, who passes,
what high and low figures mean together, classes by category, spread. Everything judge-only, as it came.
As values and as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from evaluation.core.registry import Bilingual
from evaluation.profiles.per_answer import AnswerOverall
from evaluation.profiles.spec import OVERALL, Band, Cell, ProfileSpec, Table
from review.evidence.answers import RunAnswer
from review.reports.by_profile.classes import Abstention, ClassTable
from review.reports.by_profile.passing import PassRate


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
        found["bands"] = {one.name: _banded(one) for one in section.bands}
    if section.passing:
        found["passing"] = asdict(section.passing)
    if section.diagnoses:
        found["diagnosis"] = {one.table.name: _diagnosed(one) for one in section.diagnoses}
    if section.classes:
        found["classes"] = {table.name: _table(table) for table in section.classes}
    if section.abstention:
        found["abstention"] = asdict(section.abstention)
    if section.spread:
        found["spread"] = [asdict(one) for one in section.spread]
    return {**found, "deviations": [_text(text) for text in section.deviations]}


def _text(text: Bilingual) -> dict[str, str]:
    return {"en": text.en, "ko": text.ko}


def _banded(banded: Banded) -> dict[str, Any]:
    titles = {band.name: _text(band.title.bilingual) for band in banded.bands}
    return {
        "value": banded.value,
        "band": banded.band.name if banded.band else None,
        "answers": dict(banded.answers),
        "titles": titles,
    }


def _diagnosed(found: Diagnosed) -> dict[str, Any]:
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


def _table(table: ClassTable) -> dict[str, Any]:
    return {
        "labels": list(table.labels),
        "total": {one.label: {k: v for k, v in asdict(one).items() if k != "label"} for one in table.total},
        "by_category": {name: dict(counts) for name, counts in table.categories.items()},
    }
