"""One figure with its interval, or the reason why it is withheld."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Withheld(StrEnum):
    """Why there is no figure; sentences in ``evaluation/wording/reasons.py``. Profile arithmetic and the correction
    have further codes of their own."""

    NOT_FINISHED = "not_finished"
    NO_VALUES = "no_values"
    NOT_REVIEWED = "not_reviewed"
    NOT_BOTH_RATED = "not_both_rated"  # a comparison in which experts rated other parts of one run than of the other
    RULES_ONLY = "rules_only"
    PARTIAL = "partial"
    CLASSES = "classes"  # labels have no mean; their shares stand instead


@dataclass(frozen=True, slots=True)
class Figure:
    """A value with its interval, or ``withheld`` with a reason code (after ``": "`` the names it is about).

    ``n`` counts the answers (latency and means: those with a value). ``low`` and ``high`` are the 95% interval,
    ``target`` what it is about (``questions_like_these``: variation over questions, not judge error; ``this_run``:
    all answers of the run, of which a sample was rated); without an interval ``no_interval`` says why. ``worst`` and
    ``best`` bound the figure had the failed results been at the ends of their scales; ``None`` where nothing failed.
    ``extra`` holds what only corrected figures have: ``labels, effective_labels, lambda, method, warnings,
    response_bounds, as_it_came, missing``.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    target: str = ""
    n: int = 0
    withheld: str = ""
    no_interval: str = ""
    worst: float | None = None
    best: float | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    def __post_init__(self) -> None:
        if (self.value is None) != bool(self.withheld):
            raise ValueError("a figure has either a value or a reason")

    def to_dict(self) -> dict[str, Any]:
        """The stable JSON form: ``value, low, high, target, n`` or ``withheld``; bounds only where something failed."""
        bounds = {} if self.worst is None else {"worst": self.worst, "best": self.best}
        if self.withheld:
            return {"withheld": self.withheld, "n": self.n, **bounds, **self.extra}
        missing = {"no_interval": self.no_interval} if self.no_interval else {}
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "target": self.target,
            "n": self.n,
            **missing,
            **bounds,
            **self.extra,
        }


def withheld(reason: str, n: int = 0, **extra: Any) -> Figure:
    """No figure, and why."""
    return Figure(n=n, withheld=reason, extra=extra)
