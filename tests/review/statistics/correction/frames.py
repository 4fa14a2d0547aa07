"""Sampling frames for hand-worked corrections."""

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
    """One answer of a frame; without a group it forms its own."""

    key: Hashable
    judge: float | None
    rating: float | None = None
    state: ReviewState = ReviewState.NOT_SAMPLED
    probability: float | None = None
    stratum: str = ""
    group: Hashable = None
    built: bool = False


def frame_of(answers: Sequence[FrameAnswer]) -> SamplingFrame:
    """Convert answers to the columns of a frame."""
    strata = sorted({answer.stratum for answer in answers})
    groups = [("alone", answer.key) if answer.group is None else answer.group for answer in answers]

    def column(values: Sequence[float | None]) -> np.ndarray:
        return np.array([math.nan if value is None else value for value in values], dtype=np.float64)

    return SamplingFrame(
        key=np.arange(len(answers)),
        names=[answer.key for answer in answers],
        judge=column([answer.judge for answer in answers]),
        rating=column([answer.rating for answer in answers]),
        state=np.array([answer.state for answer in answers], dtype=np.int64),
        probability=column([answer.probability for answer in answers]),
        stratum=np.array([strata.index(answer.stratum) for answer in answers], dtype=np.int64),
        strata=strata,
        group=factorize(groups),
        groups=list(dict.fromkeys(groups)),
        in_prompt=np.array([answer.built for answer in answers], dtype=np.bool_),
    )


def rated(
    key: int, judge: float | None, rating: float, probability: float = 0.5, stratum: str = "", group: Hashable = None
) -> FrameAnswer:
    """A sampled answer with a rating."""
    return FrameAnswer(key, judge, rating, ReviewState.RATED, probability, stratum, group)


def unsampled(
    key: int, judge: float | None, probability: float | None = 0.5, stratum: str = "", group: Hashable = None
) -> FrameAnswer:
    """An answer that was not sampled."""
    return FrameAnswer(key, judge, None, ReviewState.NOT_SAMPLED, probability, stratum, group)


def silent(key: int, judge: float | None, probability: float = 0.5, stratum: str = "") -> FrameAnswer:
    """A sampled answer that was skipped."""
    return FrameAnswer(key, judge, None, ReviewState.NO_RESPONSE, probability, stratum)


def waiting(key: int, judge: float | None, probability: float = 0.5, stratum: str = "") -> FrameAnswer:
    """A sampled answer that was not served yet."""
    return FrameAnswer(key, judge, None, ReviewState.NOT_REACHED, probability, stratum)


def yes_no(answers: Sequence[FrameAnswer]) -> Component:
    """A yes/no component over the answers."""
    return Component("correct", frame_of(answers), 0.0, 1.0, yes_no=True)


def wilson(value: float, variance: float, quantile: float, low: float = 0.0, high: float = 1.0) -> object:
    """Expected score interval.

    It spans value -+ quantile sd and the roots m of ``(value - m)^2 = r (high - m)(m - low)``, with
    ``r = quantile^2 variance / (high - value)(value - low)``."""
    r = quantile**2 * variance / ((high - value) * (value - low))
    roots = np.roots([1 + r, -2 * value - r * (low + high), value**2 + r * low * high])
    half_width = quantile * variance**0.5
    return pytest.approx((min(value - half_width, *roots), max(value + half_width, *roots)), rel=1e-5)


def half_labelled(rest_accepted: int = 14) -> list[FrameAnswer]:
    """40 answers, 20 of them rated after a uniform draw.

    Of 10 that the judge rejects the experts accept 2, of 10 it accepts they accept 8. Of the other 20 the judge accepts
    ``rest_accepted``."""
    labels = [rated(i, 0.0, float(i < 2)) for i in range(10)]
    labels += [rated(10 + i, 1.0, float(i < 8)) for i in range(10)]
    return labels + [unsampled(20 + i, float(i < rest_accepted)) for i in range(20)]
