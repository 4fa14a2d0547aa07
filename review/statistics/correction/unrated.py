"""Components of a score without ratings: their uncorrected mean, and the possible bias of the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from review.statistics.correction.frame import Component
from review.statistics.correction.outcome import Influence, Method, Target, target_interval


def uncorrected_mean(component: Component) -> Influence | None:
    """Uncorrected mean of the scorer's values; ``None`` without values.

    A judge's mean may be wrong by any amount within its bounds, so ``below`` and ``above`` reach these."""
    scored = np.flatnonzero(~np.isnan(component.frame.judge))
    if not len(scored):
        return None
    values = component.frame.judge[scored]
    population = np.zeros(len(component.frame))
    population[scored] = (values - values.mean()) / len(values)
    mean, below, above = float(values.mean()), 0.0, 0.0
    if component.judged:
        highest_mean = component.high if component.most is None else component.most
        below, above = mean - component.low, max(0.0, highest_mean - mean)
    return Influence(mean, np.zeros(len(population)), population, Method.UNCORRECTED, None, below, above)


def scale_width(component: Component) -> float:
    """Difference between the highest and the lowest mean that the component allows."""
    return (component.high if component.most is None else component.most) - component.low


def largest_bias(
    components: Sequence[Component], influences: Mapping[str, Influence], confidence: float
) -> float | None:
    """Largest limit of |judge's mean - corrected mean| over the judged and rated components, as a share of their
    scales.

    ``None`` if no component was rated."""
    bias_limits = []
    for component in components:
        influence, uncorrected = influences[component.name], uncorrected_mean(component)
        if (
            not component.judged
            or influence.method is Method.UNCORRECTED
            or uncorrected is None
            or not scale_width(component)
        ):
            continue
        bounds = (component.low, component.high)
        ends = target_interval(
            influence, component.frame.group, component.frame.labelled, Target.THIS_RUN, bounds, confidence
        )
        if ends is not None:
            bias_limits.append(
                max(abs(uncorrected.value - ends.low), abs(uncorrected.value - ends.high)) / scale_width(component)
            )
    return max(bias_limits, default=None)


def limit_bias(influence: Influence, bias_limit: float) -> Influence:
    """Limit the possible bias of an uncorrected component; others stay unchanged."""
    if influence.method is not Method.UNCORRECTED:
        return influence
    return replace(influence, below=min(influence.below, bias_limit), above=min(influence.above, bias_limit))
