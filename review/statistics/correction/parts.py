"""The three kinds of strata an estimate is put together from: complete, predicted by the judge, failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from review.statistics.agreement.statistic import Array
from review.statistics.correction.assess import LEAST_STRATUM_LABELS
from review.statistics.correction.degenerate import equal_everywhere, margin, unseen_rate, vary
from review.statistics.correction.frame import Component
from review.statistics.correction.outcome import Method, Warn
from review.statistics.correction.regression import StratumFit, deviations, fit, fit_without_judge, inflation
from review.statistics.correction.strata import Stratum


@dataclass(frozen=True, slots=True)
class Piece:
    """One stratum's contribution. ``expected``: the value believed of each member, whose mean is the stratum's
    estimate; ``design`` and ``sampling``: what each label adds to the deviation of the whole estimate, with and
    without finite-population correction."""

    stratum: Stratum
    expected: Array
    design: Array
    sampling: Array


@dataclass(frozen=True, slots=True)
class Part:
    """Strata of one kind. ``below`` and ``above`` widen the interval, in units of the whole estimate."""

    pieces: tuple[Piece, ...]
    method: Method
    freedom: int = 0
    slope: float | None = None
    below: float = 0.0
    above: float = 0.0
    warnings: tuple[Warn, ...] = ()


def complete(found: Sequence[Stratum]) -> Part:
    """Strata rated completely: every value is known."""
    pieces = []
    for one in found:
        known = dict(zip(one.labelled.tolist(), one.rating.tolist(), strict=True))
        expected = np.array([known[at] for at in one.members.tolist()])
        pieces.append(Piece(one, expected, np.zeros(one.labels), np.zeros(one.labels)))
    return Part(tuple(pieces), Method.CENSUS)


def predicted(found: Sequence[Stratum], component: Component, confidence: float) -> Part:
    """Strata with the judge's values: by regression, or by a bound where the residuals do not vary.

    :raises NotEstimable: where neither says anything.
    """
    frame = len(component.answers)
    fits, slopes = fit(found, component.width, frame)
    size = sum(one.size for one in found)
    if equal_everywhere(fits, component.width):
        # The judge's own mean, which is the regression with a slope of 1 also where his labels are all alike.
        fits = [replace(one, slope=1.0, level=0.0, residual=np.zeros(one.stratum.labels)) for one in fits]
    elif vary(fits, component.width):
        return Part(
            tuple(_piece(one, frame, inflation(fits, slopes.estimated)) for one in fits),
            Method.REGRESSION if slopes.estimated else Method.MEAN_OF_LABELS,
            freedom=sum(one.labels for one in found) - len(found) - slopes.estimated,
            slope=sum(one.size * b for one, b in zip(found, slopes.values, strict=True)) / size,
        )
    reach = margin(fits, component.low, component.high, yes_no=component.yes_no, confidence=confidence)
    return Part(
        tuple(_piece(one, frame, 1.0) for one in fits),
        reach.method,
        slope=sum(one.stratum.size * one.slope for one in fits) / size,
        below=size / frame * reach.below,
        above=size / frame * reach.above,
    )


def failed(found: Sequence[Stratum], component: Component, stand_in: float, confidence: float) -> list[Part]:
    """Strata the judge failed on: from their labels alone, or by the scale's ends where there are fewer than 2.

    ``stand_in`` is the mean of the other strata, taken for the value of unknown answers; the interval reaches to
    what they could be at worst and best.
    """
    frame = len(component.answers)
    return [
        _labels_alone(one, component, frame, confidence)
        if one.labels >= LEAST_STRATUM_LABELS
        else _scale_ends(one, component, frame, stand_in)
        for one in found
    ]


def _labels_alone(one: Stratum, component: Component, frame: int, confidence: float) -> Part:
    found = fit_without_judge(one)
    piece = _piece(found, frame, 1.0)
    if vary([found], component.width):
        return Part((piece,), Method.MEAN_OF_LABELS, freedom=one.labels - 1)
    reach = one.size / frame * unseen_rate(one.labels, confidence) * component.width
    return Part((piece,), Method.BOUND, below=reach, above=reach)


def _scale_ends(one: Stratum, component: Component, frame: int, stand_in: float) -> Part:
    expected = np.full(one.size, stand_in)
    expected[np.isin(one.members, one.labelled)] = one.rating
    unknown = (one.size - one.labels) / frame
    return Part(
        (Piece(one, expected, np.zeros(one.labels), np.zeros(one.labels)),),
        Method.BOUND,
        below=unknown * (stand_in - component.low),
        above=unknown * (component.high - stand_in),
        warnings=(Warn.FAILED_STRATUM_BOUNDS,),
    )


def _piece(one: StratumFit, frame: int, inflated: float) -> Piece:
    design, sampling = deviations(one, frame, inflated)
    return Piece(one.stratum, one.level + one.slope * one.stratum.judge, design, sampling)
