"""Scales of metrics: levels, real numbers, yes or no, classes, seconds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

_LEVELS = re.compile(r"^(?:levels )?(-?\d+)\.\.(-?\d+)$")
_REAL = re.compile(r"^(?:real )?(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)(?::real)?$")


class ScaleKind(StrEnum):
    """What a value of the scale is."""

    LEVELS = "levels"
    REAL = "real"
    YES_NO = "yes_no"
    CLASS = "class"
    SECONDS = "seconds"


@dataclass(frozen=True, slots=True)
class Scale:
    """A closed range of numbers, or a closed list of labels.

    ``low`` and ``high`` are inclusive; for ``yes_no`` they are 0 and 1, for ``seconds`` 0 and a day, for classes 0.
    ``labels`` is filled for classes only, in their declared order.
    """

    kind: ScaleKind
    low: float = 0.0
    high: float = 0.0
    labels: tuple[str, ...] = ()

    @classmethod
    @lru_cache(maxsize=1024)  # asked for each of a hundred thousand values
    def parse(cls, text: str) -> Scale:
        """Read ``levels 1..5`` or ``1..5``, ``0..1:real`` or ``real 0..1``, ``bool`` or ``yes_no``,
        ``class a|b`` or ``class:a|b``, ``seconds``.

        :raises ValueError: when the text is none of these or the range is empty.
        """
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
            return cls._ranged(ScaleKind.LEVELS, match)
        if match := re.match(r"^(-?\d+)-(\d+)$", text):
            return cls._ranged(ScaleKind.LEVELS, match)
        if (match := _REAL.match(text)) and ("real" in text or "." in match[1] + match[2]):
            return cls._ranged(ScaleKind.REAL, match)
        raise ValueError(f"not a scale: {text!r} (1..5, 0..1:real, -2..2, bool, class:a|b)")

    @classmethod
    def _ranged(cls, kind: ScaleKind, match: re.Match[str]) -> Scale:
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
        """The whole-number levels of a ``levels`` or ``yes_no`` scale, lowest first; empty for the others."""
        if self.kind in {ScaleKind.LEVELS, ScaleKind.YES_NO}:
            return tuple(range(int(self.low), int(self.high) + 1))
        return ()

    @property
    def width(self) -> float:
        """Upper end minus lower end."""
        return self.high - self.low

    def holds(self, value: float) -> bool:
        """Whether the number lies on the scale: finite, in range, and whole where the scale has levels."""
        if self.kind is ScaleKind.CLASS or not math.isfinite(value) or not self.low <= value <= self.high:
            return False
        return not self.levels or float(value).is_integer()

    def holds_mean(self, value: float) -> bool:
        """Whether the number can be a mean of values on the scale (levels need not be whole)."""
        return self.kind is not ScaleKind.CLASS and math.isfinite(value) and self.low <= value <= self.high


UNIT = Scale(ScaleKind.REAL, 0, 1)
PERCENT = Scale(ScaleKind.REAL, 0, 100)
YES_NO = Scale(ScaleKind.YES_NO, 0, 1)


class ReviewForm(StrEnum):
    """What an expert rates the metric by."""

    LEVEL = "level"
    CLAIMS = "claims"
    NUGGETS = "nuggets"
    CONTEXTS = "contexts"
    YES_NO = "yes_no"
    CLASS = "class"
    NONE = "none"


def review_form_of(scale: Scale) -> ReviewForm:
    """What an expert rates a metric of this scale by, where it has no parts."""
    forms = {ScaleKind.CLASS: ReviewForm.CLASS, ScaleKind.YES_NO: ReviewForm.YES_NO}
    return forms.get(scale.kind, ReviewForm.LEVEL)
