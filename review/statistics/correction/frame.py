"""What a correction reads: the whole frame of a component, with the ratings of the answers that were sampled."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from enum import StrEnum

Key = Hashable


class ReviewState(StrEnum):
    """Where review of an answer stands. Confirmed flags are no state: such an answer leaves the frame."""

    NOT_SAMPLED = "not_sampled"
    NOT_REACHED = "not_reached"  # sampled, not yet served; no non-response, because the order is random
    NO_RESPONSE = "no_response"  # skipped, flagged without confirmation, or "cannot judge"
    RATED = "rated"


@dataclass(frozen=True, slots=True)
class FrameAnswer:
    """One answer of the frame. ``judge`` is the scorer's value or contribution, ``None`` where it failed; ``rating``
    the mean of the blind initial ratings, present exactly when rated; ``probability`` that of being sampled by any
    draw (above 0), ``None`` where the answer could not be sampled with a known probability."""

    key: Key
    judge: float | None
    rating: float | None = None
    state: ReviewState = ReviewState.NOT_SAMPLED
    probability: float | None = None
    stratum: str = ""
    group: Hashable = None
    category: str = ""

    def __post_init__(self) -> None:
        if (self.rating is not None) != (self.state is ReviewState.RATED):
            raise ValueError("an answer has a rating exactly when it is rated")
        if self.probability is not None and not 0.0 < self.probability <= 1.0:
            raise ValueError(f"not a probability of being sampled: {self.probability}")
        if any(value is not None and not math.isfinite(value) for value in (self.judge, self.rating)):
            raise ValueError("values are finite")

    @property
    def sampled(self) -> bool:
        """Whether a draw with known probabilities took the answer."""
        return self.probability is not None and self.state is not ReviewState.NOT_SAMPLED

    @property
    def labelled(self) -> bool:
        """Whether its rating may be used: rated, and sampled with a known probability."""
        return self.probability is not None and self.state is ReviewState.RATED


@dataclass(frozen=True, slots=True)
class Component:
    """One part of a score, over its frame.

    ``low`` and ``high`` bound its values. For per-answer profiles the values are the contributions, weight times
    value (0 where the part does not apply), over all answers and ``weight`` is 1; for run-mean profiles the values
    are the metric's own, over the answers it applies to, and ``weight`` is the profile's.
    """

    name: str
    answers: Sequence[FrameAnswer]
    low: float
    high: float
    weight: float = 1.0
    yes_no: bool = False

    def __post_init__(self) -> None:
        if not self.answers:
            raise ValueError("a component needs answers")
        if not self.low < self.high:
            raise ValueError("the upper bound lies above the lower")
        if len({answer.key for answer in self.answers}) != len(self.answers):
            raise ValueError("a frame holds every answer once")

    @property
    def width(self) -> float:
        """Upper bound minus lower bound."""
        return self.high - self.low

    @property
    def labels(self) -> int:
        """How many ratings may be used."""
        return sum(answer.labelled for answer in self.answers)
