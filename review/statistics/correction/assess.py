"""Whether a component can be corrected at all, and if not, what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from review.statistics.correction.frame import Component
from review.statistics.correction.outcome import WithheldReason
from review.statistics.correction.strata import Stratum, collapsed, strata

LEAST_LABELS = 20
LEAST_STRATUM_LABELS = 2
SMALL_FRAME = 20
MOST_NON_RESPONSE = 0.10


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why not, and what would help."""

    reason: WithheldReason
    missing: Mapping[str, Any] = field(default_factory=dict)


def usable_strata(component: Component, *, part: bool) -> list[Stratum]:
    """The strata to estimate over. Of a ``part`` of a frame (a category) in which a stratum is too thin, all strata
    are collapsed; of a whole frame never, because the draw was promised to fill them."""
    found = strata(component.answers)
    return collapsed(component.answers) if part and any(_thin(one) for one in found) else found


def obstacle(component: Component, found: Sequence[Stratum]) -> Obstacle | None:
    """The first rule that forbids a figure, or ``None``: ``docs/correction.md``, *When there is no corrected score*."""
    size, labels = len(component.answers), component.labels
    if labels == size:
        return None
    if size < SMALL_FRAME:
        return Obstacle(WithheldReason.SMALL_FRAME, {"labels": size - labels})
    reached = sum(one.reached for one in found)
    silent = sum(one.silent for one in found)
    if reached and silent / reached > MOST_NON_RESPONSE:
        return Obstacle(WithheldReason.NON_RESPONSE, {"non_response": silent / reached, "most": MOST_NON_RESPONSE})
    if labels < LEAST_LABELS:
        return Obstacle(WithheldReason.TOO_FEW_LABELS, {"labels": LEAST_LABELS - labels})
    unreachable = sum(answer.probability is None for answer in component.answers)
    if unreachable:
        return Obstacle(WithheldReason.NO_PROBABILITY, {"answers": unreachable})
    thin = {one.name: min(LEAST_STRATUM_LABELS, one.size) - one.labels for one in found if _thin(one)}
    return Obstacle(WithheldReason.STRATUM_TOO_FEW_LABELS, {"strata": thin}) if thin else None


def _thin(one: Stratum) -> bool:
    """A stratum that withholds the figure; one the judge failed on shows bounds instead."""
    return not one.failed and not one.census and one.labels < LEAST_STRATUM_LABELS
