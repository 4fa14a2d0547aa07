"""Holm's correction for several tests."""

from __future__ import annotations

from collections.abc import Mapping


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Adjusted p-values: compared with a level of 5%, they keep the chance of any false finding among all tests
    below 5%. The smallest is multiplied by the number of tests, the next by one less, and none is below an earlier
    one. Source: S. Holm (1979), Scand. J. Stat. 6."""
    adjusted: dict[str, float] = {}
    highest = 0.0
    for rank, name in enumerate(sorted(p_values, key=lambda name: (p_values[name], name))):
        highest = max(highest, min(1.0, p_values[name] * (len(p_values) - rank)))
        adjusted[name] = highest
    return {name: adjusted[name] for name in p_values}
