"""Intervals where residuals do not vary: the labels seen say nothing about those not seen, beyond how many they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.clopper_pearson import clopper_pearson
from review.statistics.correction.outcome import Method
from review.statistics.correction.regression import StratumFit

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Margin:
    """How far below and above the estimate the interval reaches, in units of the estimated strata's mean."""

    below: float
    above: float
    method: Method


class NotEstimable(Exception):
    """Constant ratings off a yes/no scale say nothing about how far the others may lie."""


def vary(fits: Sequence[StratumFit], width: float) -> bool:
    """Whether residuals vary, so that the variance can be used."""
    return any(np.abs(one.residual).max() > ROUNDING * width for one in fits)


def equal_everywhere(fits: Sequence[StratumFit], width: float) -> bool:
    """Whether judge and experts gave the same value on every label."""
    return all(np.abs(one.stratum.rating - one.stratum.judged).max() <= ROUNDING * width for one in fits)


def margin(fits: Sequence[StratumFit], low: float, high: float, *, yes_no: bool, confidence: float) -> Margin:
    """The margin for strata whose residuals are all zero, for values between ``low`` and ``high``.

    - Judge = expert on every label, or the experts follow the judge exactly along a line: plus and minus u x width,
      ``u = 1 - (1 - confidence) ** (1 / n_eff)``: with a larger rate of differing answers, seeing none among n_eff
      would have been rarer than 1 - confidence.
    - Constant ratings that differ from the judge: Clopper-Pearson for yes/no.

    :raises NotEstimable: for constant ratings on another scale, or between yes and no.
    """
    width = high - low
    rating = np.concatenate([one.stratum.rating for one in fits])
    constant = float(np.ptp(rating)) <= ROUNDING * width
    size = effective_size(fits)
    if equal_everywhere(fits, width) or not constant:
        reach = unseen_rate(size, confidence) * width
        return Margin(reach, reach, Method.BOUND)
    share = (float(rating[0]) - low) / width
    if not yes_no or share not in {0.0, 1.0}:
        raise NotEstimable
    least, most = clopper_pearson(share, size, confidence)
    return Margin((share - least) * width, (most - share) * width, Method.CLOPPER_PEARSON)


def unseen_rate(size: float, confidence: float) -> float:
    """The largest rate of which none is seen among ``size`` answers with probability 1 - confidence; size 60 and
    0.95 give 0.049."""
    return float(1.0 - (1.0 - confidence) ** (1.0 / size))


def effective_size(fits: Sequence[StratumFit]) -> float:
    """Kish's effective number of labels over the strata: ``(sum w)^2 / sum w^2``."""
    weight = np.concatenate([1.0 / one.stratum.inclusion for one in fits])
    return float(weight.sum() ** 2 / np.square(weight).sum())
