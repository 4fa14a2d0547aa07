"""One component, corrected: what the experts would have said of its whole frame."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.correction.assess import Obstacle, obstacle, usable_strata
from review.statistics.correction.degenerate import NotEstimable
from review.statistics.correction.frame import Component
from review.statistics.correction.influence import Influence
from review.statistics.correction.outcome import Method, Warn, WithheldReason
from review.statistics.correction.parts import Part, Piece, complete, failed, predicted
from review.statistics.correction.strata import Stratum

FEW_OFF_COMMONEST = 5


@dataclass(frozen=True, slots=True)
class Fitted:
    """A component's estimate before it becomes an interval: its influence, and what stands beside the figure."""

    influence: Influence
    labels: int
    warnings: tuple[Warn, ...]
    non_response: float
    response_bounds: tuple[float, float] | None
    effective_labels: float | None


def fitted(component: Component, confidence: float = 0.95, *, part: bool = False) -> Fitted | Obstacle:
    """Estimate a component by the regression estimator over its strata, or say what is missing.

    ``part``: the component's answers are a part of the drawn frame, such as a category.
    """
    found = usable_strata(component, part=part)
    if why := obstacle(component, found):
        return why
    try:
        parts = _parts(component, found, confidence)
    except NotEstimable:
        return Obstacle(WithheldReason.NOT_ESTIMABLE)
    pieces = [piece for one in parts for piece in one.pieces]
    influence = _influence(component, parts, pieces)
    return Fitted(
        influence=influence,
        labels=component.labels,
        warnings=_warnings(component, parts, influence),
        non_response=_silent_share(found),
        response_bounds=_response_bounds(component, pieces, influence.value),
        effective_labels=_effective_labels(component, pieces, influence, confidence),
    )


def as_it_came(component: Component) -> Influence | None:
    """The mean of the scorer's values, uncorrected; ``None`` where it has none."""
    known = [at for at, answer in enumerate(component.answers) if answer.judge is not None]
    if not known:
        return None
    values = np.array([component.answers[at].judge for at in known], dtype=np.float64)
    population = np.zeros(len(component.answers))
    population[known] = (values - values.mean()) / len(values)
    return Influence(float(values.mean()), np.zeros(len(population)), population, Method.AS_IT_CAME, None)


def _parts(component: Component, found: Sequence[Stratum], confidence: float) -> list[Part]:
    parts = [complete([one for one in found if one.census])]
    if with_judge := [one for one in found if not one.census and not one.failed]:
        parts.append(predicted(with_judge, component, confidence))
    pieces = [piece for one in parts for piece in one.pieces]
    others = np.concatenate([piece.expected for piece in pieces]) if pieces else np.zeros(0)
    stand_in = float(others.mean()) if len(others) else (component.low + component.high) / 2
    return parts + failed([one for one in found if not one.census and one.failed], component, stand_in, confidence)


def _influence(component: Component, parts: Sequence[Part], pieces: Sequence[Piece]) -> Influence:
    frame = len(component.answers)
    expected, design, sampling = np.zeros(frame), np.zeros(frame), np.zeros(frame)
    for piece in pieces:
        expected[piece.stratum.members] = piece.expected
        design[piece.stratum.labelled] = piece.design
        sampling[piece.stratum.labelled] = piece.sampling
    value = float(expected.mean())
    main = next((one for one in parts if one.slope is not None), None)
    estimated = [one for one in parts if one.pieces and one.method is not Method.CENSUS]
    return Influence(
        value=value,
        design=design,
        population=(expected - value) / frame + sampling,
        method=(main or estimated[0]).method if estimated else Method.CENSUS,
        freedom=sum(one.freedom for one in parts) or None,
        below=sum(one.below for one in parts),
        above=sum(one.above for one in parts),
        slope=main.slope if main else None,
    )


def _warnings(component: Component, parts: Sequence[Part], influence: Influence) -> tuple[Warn, ...]:
    ratings = Counter(answer.rating for answer in component.answers if answer.labelled)
    few = influence.method is not Method.CENSUS and ratings.total() - max(ratings.values()) < FEW_OFF_COMMONEST
    warnings = [Warn.FEW_OFF_COMMONEST] if few else []
    return tuple(dict.fromkeys([*warnings, *(warning for one in parts for warning in one.warnings)]))


def _silent_share(found: Sequence[Stratum]) -> float:
    reached = sum(one.reached for one in found)
    return sum(one.silent for one in found) / reached if reached else 0.0


def _response_bounds(component: Component, pieces: Sequence[Piece], value: float) -> tuple[float, float] | None:
    """The value had every item without a rating been worst, and best; ``None`` where all responded."""
    below = above = 0.0
    for piece in pieces:
        one = piece.stratum
        if one.silent:
            weight = one.size / len(component.answers) * one.silent / one.reached
            mean = float(piece.expected.mean())
            below += weight * (mean - component.low)
            above += weight * (component.high - mean)
    return (value - below, value + above) if below or above else None


def _effective_labels(
    component: Component, pieces: Sequence[Piece], influence: Influence, confidence: float
) -> float | None:
    """The n for which the mean of a uniform draw's labels has as wide an interval: ``1 / (V / s^2 + 1 / N)`` with s
    the standard deviation of the ratings over the frame and V that of the interval; ``None`` for constant ratings."""
    frame = len(component.answers)
    if influence.method is Method.CENSUS:
        return float(frame)
    rated = [piece.stratum for piece in pieces if piece.stratum.labels]
    weight = np.concatenate([one.size * one.share for one in rated])
    rating = np.concatenate([one.rating for one in rated])
    mean = float(weight @ rating) / float(weight.sum())
    variance = float(weight @ np.square(rating - mean)) / float(weight.sum()) * len(rating) / (len(rating) - 1)
    if variance <= 0:
        return None
    return 1.0 / (influence.equivalent_variance(confidence) / variance + 1.0 / frame)
