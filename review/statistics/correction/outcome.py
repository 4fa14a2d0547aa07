"""What a correction gives back: an estimate with an interval and what it is an interval of, or why it is withheld."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Target(StrEnum):
    """What the interval is about: all answers of this run as they are, or questions like these."""

    THIS_RUN = "this_run"
    QUESTIONS_LIKE_THESE = "questions_like_these"


class Method(StrEnum):
    """How the estimate was made."""

    REGRESSION = "regression"
    MEAN_OF_LABELS = "mean_of_labels"  # no slope: the judge has one value per stratum, or gives none
    CENSUS = "census"
    BOUND = "bound"  # judge and experts never differed on a label
    CLOPPER_PEARSON = "clopper_pearson"
    AS_IT_CAME = "as_it_came"  # nobody rated it with known probabilities: the judge's mean
    SUM = "sum"  # of components


class WithheldReason(StrEnum):
    """Why there is no corrected figure; ``missing`` says what would give one."""

    TOO_FEW_LABELS = "too_few_labels"
    STRATUM_TOO_FEW_LABELS = "stratum_too_few_labels"
    NON_RESPONSE = "non_response"
    NOT_ESTIMABLE = "not_estimable"
    NO_PROBABILITY = "no_probability"
    SMALL_FRAME = "small_frame"  # fewer than 20 answers: they are rated completely or not corrected
    COMPONENTS_WITHHELD = "components_withheld"
    TOO_FEW_GROUPS = "too_few_groups"
    NO_VALUES = "no_values"


class Warn(StrEnum):
    """What a reader should know about an estimate."""

    FEW_OFF_COMMONEST = "few_off_commonest"  # fewer than 5 labels differ from the commonest
    FAILED_STRATUM_BOUNDS = "failed_stratum_bounds"  # answers the judge failed on, with fewer than 2 labels
    CLIPPED = "clipped"
    FEW_GROUPS = "few_groups"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure with its interval.

    ``n`` is the size of the frame, ``labels`` the ratings used, ``effective_labels`` how many labels of a uniform
    draw without the judge would give the same width, ``slope`` the regression's b (stored as lambda).
    ``non_response`` is the share of reached items without a rating and ``response_bounds`` what the value would be
    had all of these been worst or best. ``named`` lists components that entered as they came.
    """

    value: float
    low: float
    high: float
    target: Target
    method: Method
    n: int
    labels: int
    effective_labels: float | None = None
    slope: float | None = None
    warnings: tuple[Warn, ...] = ()
    non_response: float = 0.0
    response_bounds: tuple[float, float] | None = None
    named: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The stable form of the ``correct`` command, the report and REST."""
        return {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "target": str(self.target),
            "n": self.n,
            "labels": self.labels,
            "effective_labels": self.effective_labels,
            "lambda": self.slope,
            "method": str(self.method),
            "warnings": [str(warning) for warning in self.warnings],
            "non_response": self.non_response,
            "response_bounds": None if self.response_bounds is None else list(self.response_bounds),
            "as_it_came": list(self.named),
        }


@dataclass(frozen=True, slots=True)
class Withheld:
    """No figure, and what is missing for one: labels, strata, components."""

    reason: WithheldReason
    target: Target
    n: int
    labels: int
    missing: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    def to_dict(self) -> dict[str, Any]:
        """The stable form: ``withheld`` holds the reason, ``missing`` what would lift it."""
        return {
            "withheld": str(self.reason),
            "missing": dict(self.missing),
            "target": str(self.target),
            "n": self.n,
            "labels": self.labels,
        }


Outcome = Estimate | Withheld
