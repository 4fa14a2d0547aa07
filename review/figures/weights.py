"""The weights with which ratings stand for the answers nobody rated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from review.figures.sampling import NOWHERE, Place

EQUAL_WITHIN = 1e-12


@dataclass(frozen=True, slots=True)
class Weighting:
    """Which rated answers are used together, and with which weights: ``None`` where all count the same.

    ``sampling`` is ``weighted``, ``equal`` (a sample with one probability for all) or ``unknown``; ``left_out`` counts
    rated answers of unknown sampling beside a sample with probabilities: the two are never mixed.
    """

    answers: tuple[int, ...]
    weights: tuple[float, ...] | None
    strata: tuple[str, ...]
    sampling: str
    left_out: int


def weigh(rated: Collection[int], places: Mapping[int, Place]) -> Weighting:
    """Weights 1 / (probability x response rate of the stratum). The response rate is rated / sampled, so that it
    covers both non-response and items not reached yet, whose order is random."""
    known = [answer for answer in rated if _usable(places.get(answer, NOWHERE))]
    if not known:
        answers = tuple(rated)
        return Weighting(answers, None, ("",) * len(answers), "unknown", 0)
    drawn = Counter(place.stratum for place in places.values() if _usable(place))
    response = Counter(places[answer].stratum for answer in known)
    strata = tuple(places[answer].stratum for answer in known)
    weights = tuple(
        drawn[stratum] / ((places[answer].probability or 1.0) * response[stratum])
        for answer, stratum in zip(known, strata, strict=True)
    )
    equal = max(weights) - min(weights) <= EQUAL_WITHIN * max(weights)
    return Weighting(
        tuple(known), None if equal else weights, strata, "equal" if equal else "weighted", len(rated) - len(known)
    )


def _usable(place: Place) -> bool:
    return place.sampled and place.probability is not None
