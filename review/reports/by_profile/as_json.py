"""A profile's section as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from evaluation.core.registry import Bilingual
from review.reports.by_profile.classes import ClassTable
from review.reports.by_profile.section import Banded, Diagnosed, ProfileSection


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
