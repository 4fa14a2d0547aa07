"""The value or label that somebody or something gave, in words."""

from __future__ import annotations

from typing import Protocol

from evaluation.core.scales import Scale
from evaluation.wording import numbers


class Valued(Protocol):
    """A rating, decision or score: a value or, on a scale of classes, a label."""

    @property
    def value(self) -> float | None:
        """The number, where it is one."""

    @property
    def label(self) -> str | None:
        """The class, where it is one."""


def said(one: Valued | None) -> float | str | None:
    """What it is, ``None`` where there is neither."""
    if one is None:
        return None
    return one.label if one.value is None else one.value


def value_text(one: Valued | None, scale: Scale) -> str:
    """It as its scale is read, a dash without one."""
    return numbers.on_scale(said(one), scale)
