"""Scales of metrics: levels, real numbers, yes/no, classes, seconds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

_LEVELS = re.compile(r"^(?:levels )?(-?\d+)\.\.(-?\d+)$")
_REAL = re.compile(r"^(?:real )?(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)(?::real)?$")


class ScaleKind(StrEnum):
    """Kind of the values of a scale."""

    LEVELS = "levels"
    REAL = "real"
    YES_NO = "yes_no"
    CLASS = "class"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class Scale:
    """Closed range of numbers, or closed list of labels.

    ``low`` and ``high`` are inclusive: 0 and 1 for ``yes_no``, 0 and one day for ``seconds``, 0 and 0 for classes.
    ``labels`` is set for classes only, in declared order."""

    kind: ScaleKind
    low: float = 0.0
    high: float = 0.0
    labels: tuple[str, ...] = ()

    @classmethod
    # Parsed for each of a hundred thousand values.
    @lru_cache(maxsize=1024)
    def parse(cls, text: str) -> Scale:
        """Parse ``levels 1..5`` or ``1..5``, ``0..1:real`` or ``real 0..1``, ``bool`` or ``yes_no``, ``class a|b`` or
        ``class:a|b``, ``seconds``.

        :raises ValueError: for any other text and for an empty range."""
        text = text.strip()
        if text in {"bool", "yes_no"}:
            return cls(ScaleKind.YES_NO, 0, 1)
        if text == "seconds":
            return cls(ScaleKind.SECONDS, 0, 86_400)
        if text.startswith(("class:", "class ")):
            labels = tuple(part.strip() for part in text[6:].split("|") if part.strip())
            if len(labels) < 2 or len(set(labels)) != len(labels):
                raise ValueError(f"a class scale needs at least two different labels: {text!r}")
            return cls(ScaleKind.CLASS, labels=labels)
        if match := _LEVELS.match(text.replace("–", "-")):
            return cls._from_range(ScaleKind.LEVELS, match)
        if match := re.match(r"^(-?\d+)-(\d+)$", text):
            return cls._from_range(ScaleKind.LEVELS, match)
        if (match := _REAL.match(text)) and ("real" in text or "." in match[1] + match[2]):
            return cls._from_range(ScaleKind.REAL, match)
        raise ValueError(f"not a scale: {text!r} (1..5, 0..1:real, -2..2, bool, class:a|b)")

    @classmethod
    def _from_range(cls, kind: ScaleKind, match: re.Match[str]) -> Scale:
        low, high = float(match[1]), float(match[2])
        if low >= high:
            raise ValueError(f"the scale's lower end {low:g} is not below its upper end {high:g}")
        return cls(kind, low, high)

    def __str__(self) -> str:
        if self.kind is ScaleKind.CLASS:
            return "class " + "|".join(self.labels)
        if self.kind in {ScaleKind.YES_NO, ScaleKind.SECONDS}:
            return str(self.kind)
        return f"{self.kind} {self.low:g}..{self.high:g}"

    @property
    def levels(self) -> tuple[int, ...]:
        """Whole-number levels of a ``levels`` or ``yes_no`` scale, ascending; empty for other scales."""
        if self.kind in {ScaleKind.LEVELS, ScaleKind.YES_NO}:
            return tuple(range(int(self.low), int(self.high) + 1))
        return ()

    @property
    def width(self) -> float:
        return self.high - self.low

    def contains(self, value: float) -> bool:
        """Return whether a number is on the scale: finite, in range, and whole if the scale has levels."""
        if self.kind is ScaleKind.CLASS or not math.isfinite(value) or not self.low <= value <= self.high:
            return False
        return not self.levels or float(value).is_integer()

    def contains_mean(self, value: float) -> bool:
        """Return whether a number can be a mean of values on the scale; levels need not be whole."""
        return self.kind is not ScaleKind.CLASS and math.isfinite(value) and self.low <= value <= self.high


UNIT = Scale(ScaleKind.REAL, 0, 1)
PERCENT = Scale(ScaleKind.REAL, 0, 100)
YES_NO = Scale(ScaleKind.YES_NO, 0, 1)


class ReviewForm(StrEnum):
    """Form in which an expert rates a metric."""

    LEVEL = "level"
    CLAIMS = "claims"
    NUGGETS = "nuggets"
    CONTEXTS = "contexts"
    YES_NO = "yes_no"
    CLASS = "class"
    NONE = "none"


def default_review_form(scale: Scale) -> ReviewForm:
    """Review form of a metric without parts, by its scale."""
    forms = {ScaleKind.CLASS: ReviewForm.CLASS, ScaleKind.YES_NO: ReviewForm.YES_NO}
    return forms.get(scale.kind, ReviewForm.LEVEL)
