"""What a profile adds to a report, in the terms of its source: figures under the source's names, bands, who passes,
what high and low figures mean together, classes by category, spread. Everything judge-only, as it came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evaluation.core.registry import Bilingual
from evaluation.profiles.interpretation import Band, Cell, Table
from review.reports.by_profile.classes import Abstention, ClassTable
from review.reports.by_profile.passing import PassRate
from review.reports.by_profile.spread import Spread


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
