"""How many questions show a difference between two runs, and what difference a number of questions shows."""

from __future__ import annotations

import math

POWER = 0.8


def questions_for_difference(
    difference: float, deviation: float, confidence: float = 0.95, power: float = POWER
) -> int:
    """The questions (independent groups) needed to find a true paired ``difference`` with probability ``power``,
    ``deviation`` being the standard deviation of the differences: ``((z_a + z_p) s / d)^2``, then enlarged to what
    Student's t needs.

    :raises ValueError: for a difference of 0 or a negative deviation.
    """
    if difference == 0 or deviation < 0:
        raise ValueError("a difference other than 0 and a deviation that is not negative are needed")
    size = 2
    while detectable_difference(size, deviation, confidence, power) > abs(difference):
        factor = (detectable_difference(size, deviation, confidence, power) / abs(difference)) ** 2
        size = max(size + 1, int(size * min(factor, 4.0) * 0.9))
    while size > 2 and detectable_difference(size - 1, deviation, confidence, power) <= abs(difference):
        size -= 1
    return size


def detectable_difference(questions: int, deviation: float, confidence: float = 0.95, power: float = POWER) -> float:
    """The smallest true paired difference found with probability ``power``: ``(t_a + t_p) s / sqrt(n)`` with n - 1
    degrees of freedom. Needs two questions."""
    return (_t(0.5 + confidence / 2.0, questions - 1) + _t(power, questions - 1)) * deviation / math.sqrt(questions)


def _t(probability: float, freedom: int) -> float:
    from scipy.special import stdtrit  # costs 0.2 s at import

    return float(stdtrit(freedom, probability))
