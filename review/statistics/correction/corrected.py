"""The corrected figure of a metric, of its categories, and of the whole score."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from review.statistics.correction.assess import Obstacle
from review.statistics.correction.component import Fitted, as_it_came, fitted
from review.statistics.correction.frame import Component, Key
from review.statistics.correction.influence import Influence
from review.statistics.correction.interval import FEW_GROUPS, Ends, interval
from review.statistics.correction.outcome import Estimate, Method, Outcome, Target, Warn, Withheld, WithheldReason


def corrected(
    component: Component, target: Target = Target.THIS_RUN, confidence: float = 0.95, *, part: bool = False
) -> Outcome:
    """What these reviewers would have said, blind, of all answers of the component, in the component's own units
    (its ``weight`` is not applied). ``part``: its answers are a part of the drawn frame, such as a category."""
    found = fitted(component, confidence, part=part)
    size = len(component.answers)
    if isinstance(found, Obstacle):
        return Withheld(found.reason, target, size, component.labels, found.missing)
    groups = [answer.group for answer in component.answers]
    labelled = [answer.labelled for answer in component.answers]
    bounds = (component.low, component.high)
    ends = interval(found.influence, groups, labelled, target, bounds, confidence)
    if ends is None:
        return Withheld(WithheldReason.TOO_FEW_GROUPS, target, size, component.labels, {"groups": 1})
    return _estimate(found, ends, target, size, bounds)


def corrected_overall(
    components: Sequence[Component],
    target: Target = Target.THIS_RUN,
    confidence: float = 0.95,
    *,
    part: bool = False,
) -> Outcome:
    """The corrected whole score: the sum of weight times corrected component, with the variance of the influence
    summed per answer, so that components rated on different answers combine.

    ``labels`` and ``effective_labels`` count answers. A component nobody rated, or whose frame is small and not
    complete, enters as it came and is named. It is withheld while any component is, naming those; and where none was
    rated at all. ``part``: the answers are a part of the drawn frame, such as a category.
    """
    found = {one.name: _entering(one, confidence, part=part) for one in components}
    keys, groups, labelled = _frame(components)
    labels = sum(labelled)
    missing = {name: entry for name, entry in found.items() if isinstance(entry, Obstacle)}
    if missing:
        what = {name: {"reason": str(why.reason), **why.missing} for name, why in missing.items()}
        return Withheld(WithheldReason.COMPONENTS_WITHHELD, target, len(keys), labels, {"components": what})
    fits = {name: entry for name, entry in found.items() if isinstance(entry, Fitted)}
    if not any(fit.labels for fit in fits.values()):
        return Withheld(WithheldReason.TOO_FEW_LABELS, target, len(keys), labels, {"labels": 20})
    total = _summed(components, fits, keys, confidence)
    bounds = _bounds(components)
    ends = interval(total.influence, groups, labelled, target, bounds, confidence)
    if ends is None:
        return Withheld(WithheldReason.TOO_FEW_GROUPS, target, len(keys), labels, {"groups": 1})
    named = tuple(name for name, fit in fits.items() if fit.influence.method is Method.AS_IT_CAME)
    return replace(_estimate(replace(total, labels=labels), ends, target, len(keys), bounds), named=named)


def _entering(component: Component, confidence: float, *, part: bool) -> Fitted | Obstacle:
    """A component's estimate; uncorrected where nobody rated it or its frame is too small to be estimated."""
    found = fitted(component, confidence, part=part)
    if not isinstance(found, Obstacle):
        return found
    if component.labels and found.reason is not WithheldReason.SMALL_FRAME:
        return found
    influence = as_it_came(component)
    if influence is None:
        return Obstacle(WithheldReason.NO_VALUES)
    return Fitted(influence, 0, (), 0.0, None, None)


def _frame(components: Sequence[Component]) -> tuple[list[Key], list[Hashable], list[bool]]:
    """All answers of any component, with their group and whether any component has a label of them."""
    group: dict[Key, Hashable] = {}
    labelled: dict[Key, bool] = {}
    for component in components:
        for answer in component.answers:
            group[answer.key] = answer.group
            labelled[answer.key] = labelled.get(answer.key, False) or answer.labelled
    return list(group), list(group.values()), list(labelled.values())


def _bounds(components: Sequence[Component]) -> tuple[float, float]:
    ends = [sorted((one.weight * one.low, one.weight * one.high)) for one in components]
    return sum(low for low, _ in ends), sum(high for _, high in ends)


def _summed(
    components: Sequence[Component], fits: Mapping[str, Fitted], keys: Sequence[Key], confidence: float
) -> Fitted:
    """The weighted sum of components as one fit over the united frame."""
    place = {key: at for at, key in enumerate(keys)}
    design, population = np.zeros(len(keys)), np.zeros(len(keys))
    value = below = above = 0.0
    freedoms: list[int] = []
    for component in components:
        influence, weight = fits[component.name].influence, component.weight
        at = [place[answer.key] for answer in component.answers]
        design[at] += weight * influence.design
        population[at] += weight * influence.population
        value += weight * influence.value
        ends = (influence.below, influence.above) if weight >= 0 else (influence.above, influence.below)
        below, above = below + abs(weight) * ends[0], above + abs(weight) * ends[1]
        freedoms += [influence.freedom] if influence.freedom is not None else []
    bounds = _summed_response_bounds(components, fits)
    influence = Influence(value, design, population, Method.SUM, min(freedoms, default=None), below, above)
    return Fitted(
        influence=influence,
        labels=0,
        warnings=tuple(dict.fromkeys(warning for fit in fits.values() for warning in fit.warnings)),
        non_response=max(fit.non_response for fit in fits.values()),
        response_bounds=bounds if bounds[0] < bounds[1] else None,
        effective_labels=_effective_labels(components, fits, influence.equivalent_variance(confidence)),
    )


def _summed_response_bounds(components: Sequence[Component], fits: Mapping[str, Fitted]) -> tuple[float, float]:
    low = high = 0.0
    for component in components:
        fit = fits[component.name]
        ends = fit.response_bounds or (fit.influence.value, fit.influence.value)
        least, most = sorted((component.weight * ends[0], component.weight * ends[1]))
        low, high = low + least, high + most
    return low, high


def _effective_labels(components: Sequence[Component], fits: Mapping[str, Fitted], variance: float) -> float | None:
    """As for a component, in answers: with the variance of the rated parts' share of the whole score among the answers
    that have all their labels. A part over ``N_j`` of N answers adds ``w_j N / N_j`` times its value to each of them.
    ``None`` without two such answers, or where they are all alike."""
    rated = [one for one in components if fits[one.name].influence.method is not Method.AS_IT_CAME]
    keys = list(dict.fromkeys(answer.key for one in rated for answer in one.answers))
    share = dict.fromkeys(keys, 0.0)
    chance = dict.fromkeys(keys, 1.0)
    missing = set()
    for one in rated:
        scale = one.weight * len(keys) / len(one.answers)
        for answer in one.answers:
            if answer.labelled and answer.rating is not None and answer.probability is not None:
                share[answer.key] += scale * answer.rating
                chance[answer.key] = min(chance[answer.key], answer.probability)
            else:
                missing.add(answer.key)
    full = [key for key in keys if key not in missing]
    if len(full) < 2:
        return None
    score = np.array([share[key] for key in full])
    weight = np.array([1.0 / chance[key] for key in full])
    mean = float(weight @ score) / float(weight.sum())
    spread = float(weight @ np.square(score - mean)) / float(weight.sum()) * len(full) / (len(full) - 1)
    return 1.0 / (variance / spread + 1.0 / len(keys)) if spread > 0 else None


def _estimate(found: Fitted, ends: Ends, target: Target, size: int, bounds: tuple[float, float]) -> Estimate:
    value = min(max(found.influence.value, bounds[0]), bounds[1])
    clipped = ends.clipped or value != found.influence.value
    warnings = list(found.warnings)
    warnings += [Warn.CLIPPED] if clipped else []
    warnings += [Warn.FEW_GROUPS] if 0 < ends.groups < FEW_GROUPS else []
    return Estimate(
        value=value,
        low=min(ends.low, value),
        high=max(ends.high, value),
        target=target,
        method=found.influence.method,
        n=size,
        labels=found.labels,
        effective_labels=found.effective_labels,
        slope=found.influence.slope,
        warnings=tuple(warnings),
        non_response=found.non_response,
        response_bounds=found.response_bounds,
    )
