"""Parts of a score that nobody rated: how they enter, and how far the judge may be off there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from review.statistics.correction.frame import Component
from review.statistics.correction.outcome import Influence, Method, Target, interval


def as_it_came(component: Component) -> Influence | None:
    """The mean of the scorer's values, uncorrected; ``None`` where it has none. A judge's may be anything within its
    bounds: ``below`` and ``above`` reach there."""
    known = np.flatnonzero(~np.isnan(component.frame.judge))
    if not len(known):
        return None
    values = component.frame.judge[known]
    population = np.zeros(len(component.frame))
    population[known] = (values - values.mean()) / len(values)
    mean, below, above = float(values.mean()), 0.0, 0.0
    if component.judged:
        most = component.high if component.most is None else component.most
        below, above = mean - component.low, max(0.0, most - mean)
    return Influence(mean, np.zeros(len(population)), population, Method.AS_IT_CAME, None, below, above)


def reach_of(component: Component) -> float:
    """From the lowest to the highest mean that its scale allows."""
    return (component.high if component.most is None else component.most) - component.low


def largest_bias(
    components: Sequence[Component], influences: Mapping[str, Influence], confidence: float
) -> float | None:
    """The largest limit of |judge's mean - corrected mean| over the judged parts that were rated, in shares of their
    scales; ``None`` where none was."""
    found = []
    for one in components:
        influence, came = influences[one.name], as_it_came(one)
        if not one.judged or influence.method is Method.AS_IT_CAME or came is None or not reach_of(one):
            continue
        bounds = (one.low, one.high)
        ends = interval(influence, one.frame.group, one.frame.labelled, Target.THIS_RUN, bounds, confidence)
        if ends is not None:
            found.append(max(abs(came.value - ends.low), abs(came.value - ends.high)) / reach_of(one))
    return max(found, default=None)


def within(influence: Influence, reach: float) -> Influence:
    """A part that came as it is, off by at most ``reach``; others as they are."""
    if influence.method is not Method.AS_IT_CAME:
        return influence
    return replace(influence, below=min(influence.below, reach), above=min(influence.above, reach))
