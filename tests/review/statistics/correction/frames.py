"""Frames for hand-worked corrections."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from review.statistics.agreement.statistic import factorize
from review.statistics.correction.frame import Component, ReviewState, SamplingFrame


@dataclass(frozen=True)
class FrameAnswer:
    """One answer of a frame, as its columns have it; without a group it is its own."""

    key: Hashable
    judge: float | None
    rating: float | None = None
    state: ReviewState = ReviewState.NOT_SAMPLED
    probability: float | None = None
    stratum: str = ""
    group: Hashable = None
    built: bool = False


def frame_of(answers: Sequence[FrameAnswer]) -> SamplingFrame:
    """The answers as columns."""
    strata = sorted({one.stratum for one in answers})
    groups = [("alone", one.key) if one.group is None else one.group for one in answers]

    def column(values: Sequence[float | None]) -> np.ndarray:
        return np.array([math.nan if value is None else value for value in values], dtype=np.float64)

    return SamplingFrame(
        key=np.arange(len(answers)),
        names=[one.key for one in answers],
        judge=column([one.judge for one in answers]),
        rating=column([one.rating for one in answers]),
        state=np.array([one.state for one in answers], dtype=np.int64),
        probability=column([one.probability for one in answers]),
        stratum=np.array([strata.index(one.stratum) for one in answers], dtype=np.int64),
        strata=strata,
        group=factorize(groups),
        groups=list(dict.fromkeys(groups)),
        in_prompt=np.array([one.built for one in answers], dtype=np.bool_),
    )


def rated(
    key: int, judge: float | None, rating: float, probability: float = 0.5, stratum: str = "", group: Hashable = None
) -> FrameAnswer:
    """A sampled answer with a rating."""
    return FrameAnswer(key, judge, rating, ReviewState.RATED, probability, stratum, group)


def unsampled(
    key: int, judge: float | None, probability: float | None = 0.5, stratum: str = "", group: Hashable = None
) -> FrameAnswer:
    """An answer of the frame that the draw did not take."""
    return FrameAnswer(key, judge, None, ReviewState.NOT_SAMPLED, probability, stratum, group)


def silent(key: int, judge: float | None, probability: float = 0.5, stratum: str = "") -> FrameAnswer:
    """A sampled answer that was reached and got no rating."""
    return FrameAnswer(key, judge, None, ReviewState.NO_RESPONSE, probability, stratum)


def waiting(key: int, judge: float | None, probability: float = 0.5, stratum: str = "") -> FrameAnswer:
    """A sampled answer that was not reached yet."""
    return FrameAnswer(key, judge, None, ReviewState.NOT_REACHED, probability, stratum)


def yes_no(answers: Sequence[FrameAnswer]) -> Component:
    """A yes/no component of the answers."""
    return Component("correct", frame_of(answers), 0.0, 1.0, yes_no=True)


def wilson(value: float, variance: float, quantile: float, low: float = 0.0, high: float = 1.0) -> object:
    """From the smaller to the larger of value -+ quantile sd and of the roots m of ``(value - m)^2 = r (high - m)(m -
    low)``, ``r = quantile^2 variance / (high - value)(value - low)``."""
    r = quantile**2 * variance / ((high - value) * (value - low))
    roots = np.roots([1 + r, -2 * value - r * (low + high), value**2 + r * low * high])
    half = quantile * variance**0.5
    return pytest.approx((min(value - half, *roots), max(value + half, *roots)), rel=1e-5)


def half_labelled(rest_accepted: int = 14) -> list[FrameAnswer]:
    """40 answers, 20 of them rated by a uniform draw: of 10 the judge rejects the experts accept 2, of 10 he accepts
    8. Of the 20 others the judge accepts ``rest_accepted``."""
    labels = [rated(at, 0.0, float(at < 2)) for at in range(10)]
    labels += [rated(10 + at, 1.0, float(at < 8)) for at in range(10)]
    return labels + [unsampled(20 + at, float(at < rest_accepted)) for at in range(20)]
