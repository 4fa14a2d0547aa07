"""The exact interval of a proportion."""

from __future__ import annotations


def clopper_pearson(share: float, size: float, confidence: float = 0.95) -> tuple[float, float]:
    """The interval of a share (0 to 1) seen in ``size`` independent answers, which need not be whole (an effective
    size). With a share of 1 the lower end is ``((1 - confidence) / 2) ** (1 / size)``.

    Source: C. J. Clopper and E. S. Pearson (1934), Biometrika 26. :raises ValueError: outside these ranges.
    """
    from scipy.special import betaincinv  # costs 0.2 s at import

    if not 0.0 <= share <= 1.0 or size <= 0 or not 0.0 < confidence < 1.0:
        raise ValueError("a proportion needs a share of 0 to 1 and a positive size")
    tail = (1.0 - confidence) / 2.0
    hits = share * size
    low = float(betaincinv(hits, size - hits + 1.0, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1.0, size - hits, 1.0 - tail)) if hits < size else 1.0
    return low, high
