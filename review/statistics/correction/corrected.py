"""The corrected figure of a metric, a category and the whole score: what experts would have said, or why not."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from review.statistics.correction.frame import (
    LEAST_LABELS,
    LEAST_STRATUM_LABELS,
    Component,
    Frame,
    Stratum,
    United,
    collapsed,
    strata,
    united,
)
from review.statistics.correction.outcome import (
    FEW_GROUPS,
    Deviation,
    Ends,
    Estimate,
    Influence,
    Method,
    Outcome,
    Target,
    Warn,
    Withheld,
    WithheldReason,
    deviation_of,
    interval,
)
from review.statistics.correction.parts import (
    NotEstimable,
    Part,
    Piece,
    bounded_by_scale,
    complete,
    failed,
    predicted,
    uniform_labels,
)
from review.statistics.correction.unrated import as_it_came, largest_bias, reach_of, within

SMALL_FRAME = 20
MOST_NON_RESPONSE = 0.10


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why not, and what would help."""

    reason: WithheldReason
    missing: Mapping[str, Any] = field(default_factory=dict)


def usable_strata(component: Component, *, part: bool) -> list[Stratum]:
    """The strata to estimate over. Of a ``part`` of a frame (a category) in which a stratum is too thin, all strata
    are collapsed; of a whole frame never, because the draw was promised to fill them."""
    found = strata(component.frame)
    return collapsed(component.frame) if part and any(_thin(one) for one in found) else found


def obstacle(component: Component, found: Sequence[Stratum]) -> Obstacle | None:
    """The first rule that forbids a figure, or ``None``: ``docs/correction.md``, *When there is no corrected score*."""
    size, labels = len(component.frame), component.labels
    if labels == size:
        return None
    if size < SMALL_FRAME:
        return Obstacle(WithheldReason.SMALL_FRAME, {"labels": size - labels})
    reached = sum(one.reached for one in found)
    silent = sum(one.silent for one in found)
    if reached and silent / reached > MOST_NON_RESPONSE:
        return Obstacle(WithheldReason.NON_RESPONSE, {"non_response": silent / reached, "most": MOST_NON_RESPONSE})
    for_others = labels - int((component.frame.built & component.frame.labelled).sum())
    if for_others < LEAST_LABELS:
        return Obstacle(WithheldReason.TOO_FEW_LABELS, {"labels": LEAST_LABELS - for_others})
    unreachable = int(np.isnan(component.frame.probability).sum())
    if unreachable:
        return Obstacle(WithheldReason.NO_PROBABILITY, {"answers": unreachable})
    thin = {one.name: min(LEAST_STRATUM_LABELS, one.size) - one.labels for one in found if _thin(one)}
    return Obstacle(WithheldReason.STRATUM_TOO_FEW_LABELS, {"strata": thin}) if thin else None


def _thin(one: Stratum) -> bool:
    """A stratum that withholds the figure; one the judge failed on shows bounds instead."""
    return not one.failed and not one.census and one.labels < LEAST_STRATUM_LABELS


FEW_OFF_COMMONEST = 5
UNSEEN_SHARE = 0.12  # of the design variance; above, intervals without the unseen would miss too often


@dataclass(frozen=True, slots=True)
class Fitted:
    """A component's estimate before it becomes an interval: its influence, and what stands beside the figure."""

    influence: Influence
    labels: int
    warnings: tuple[Warn, ...]
    non_response: float
    response_bounds: tuple[float, float] | None
    effective_labels: float | None


def fitted(component: Component, confidence: float = 0.95, *, part: bool = False) -> Fitted | Obstacle:
    """Estimate a component by the regression estimator over its strata, or say what is missing.

    ``part``: the component's answers are a part of the drawn frame, such as a category.
    """
    found = usable_strata(component, part=part)
    if why := obstacle(component, found):
        return why
    try:
        parts = _parts(component, found, confidence)
    except NotEstimable:
        return Obstacle(WithheldReason.NOT_ESTIMABLE)
    pieces = [piece for one in parts for piece in one.pieces]
    influence = _influence(component, parts, pieces)
    bounds = _response_bounds(component, pieces, influence.value)
    return Fitted(
        influence=influence if bounds is None else _reaching(influence, bounds),
        labels=component.labels,
        warnings=_warnings(component, parts, influence),
        non_response=_silent_share(found),
        response_bounds=bounds,
        effective_labels=_effective_labels(component, pieces, influence, confidence),
    )


def _parts(component: Component, found: Sequence[Stratum], confidence: float) -> list[Part]:
    parts = [complete([one for one in found if one.census])]
    if with_judge := [one for one in found if not one.census and not one.failed]:
        parts.append(predicted(with_judge, component, confidence))
    pieces = [piece for one in parts for piece in one.pieces]
    others = np.concatenate([piece.expected for piece in pieces]) if pieces else np.zeros(0)
    stand_in = float(others.mean()) if len(others) else (component.low + component.high) / 2
    return parts + failed([one for one in found if not one.census and one.failed], component, stand_in, confidence)


def _influence(component: Component, parts: Sequence[Part], pieces: Sequence[Piece]) -> Influence:
    frame = len(component.frame)
    expected, design, sampling = np.zeros(frame), np.zeros(frame), np.zeros(frame)
    for piece in pieces:
        expected[piece.stratum.members] = piece.expected
        design[piece.stratum.labelled] = piece.design
        sampling[piece.stratum.labelled] = piece.sampling
    value = float(expected.mean())
    main = next((one for one in parts if one.slope is not None), None)
    estimated = [one for one in parts if one.pieces and one.method is not Method.CENSUS]
    return Influence(
        value=value,
        design=design,
        population=(expected - value) / frame + sampling,
        method=(main or estimated[0]).method if estimated else Method.CENSUS,
        freedom=sum(one.freedom for one in parts) or None,
        below=sum(one.below for one in parts),
        above=sum(one.above for one in parts),
        slope=main.slope if main else None,
        unseen=sum(one.unseen for one in parts),
    )


def _warnings(component: Component, parts: Sequence[Part], influence: Influence) -> tuple[Warn, ...]:
    _, count = np.unique(component.frame.rating[component.frame.labelled], return_counts=True)
    few = influence.method is not Method.CENSUS and count.sum() - count.max() < FEW_OFF_COMMONEST
    warnings = [Warn.FEW_OFF_COMMONEST] if few else []
    warnings += [Warn.UNSEEN_ANSWERS] if influence.unseen > UNSEEN_SHARE * influence.design_variance else []
    return tuple(dict.fromkeys([*warnings, *(warning for one in parts for warning in one.warnings)]))


def _silent_share(found: Sequence[Stratum]) -> float:
    reached = sum(one.reached for one in found)
    return sum(one.silent for one in found) / reached if reached else 0.0


def _response_bounds(component: Component, pieces: Sequence[Piece], value: float) -> tuple[float, float] | None:
    """The value had every item without a rating been worst, and best; ``None`` where all responded. A stratum whose
    interval reaches to the ends of the scale anyway adds nothing."""
    below = above = 0.0
    for piece in pieces:
        one = piece.stratum
        if one.silent and not bounded_by_scale(one):
            weight = one.size / len(component.frame) * one.silent_share
            mean = float(piece.expected.mean())
            below += weight * (mean - component.low)
            above += weight * (component.high - mean)
    return (value - below, value + above) if below or above else None


def _reaching(influence: Influence, bounds: tuple[float, float]) -> Influence:
    """The influence with an interval from the worst bound less the half-width to the best bound plus the half-width."""
    below, above = influence.value - bounds[0], bounds[1] - influence.value
    return replace(influence, below=influence.below + below, above=influence.above + above)


def _effective_labels(
    component: Component, pieces: Sequence[Piece], influence: Influence, confidence: float
) -> float | None:
    """The labels of a uniform draw without the judge whose interval is as wide, with the same allowances for few
    labels; ``None`` for constant ratings, and for too few unequal ones (:func:`_few_unequal`)."""
    frame = len(component.frame)
    if influence.method is Method.CENSUS:
        return float(frame)
    if _few_unequal(component.frame):
        return None
    rated = [piece.stratum for piece in pieces if piece.stratum.labels]
    weight = np.concatenate([one.size * one.share for one in rated])
    rating = np.concatenate([one.rating for one in rated])
    mean = float(weight @ rating) / float(weight.sum())
    variance = float(weight @ np.square(rating - mean)) / float(weight.sum()) * len(rating) / (len(rating) - 1)
    if variance <= 0:
        return None
    return _uniform_labels(influence, variance, (component.low, component.high), frame, confidence)


LEAST_UNEQUAL = 50


def _few_unequal(frame: Frame) -> bool:
    """Whether answers of a stratum were drawn with different probabilities and weigh as fewer than 50 labels (Kish's
    effective number, summed over strata): a few that weigh much decide the width, which is small too often by chance.
    """
    labelled = frame.labelled
    weight, stratum = 1.0 / frame.probability[labelled], frame.stratum[labelled]
    square = np.bincount(stratum, np.square(weight))
    size = float((np.bincount(stratum, weight)[square > 0] ** 2 / square[square > 0]).sum())
    return size < min(LEAST_UNEQUAL, 0.99 * len(weight))


def _uniform_labels(
    influence: Influence, spread: float, bounds: tuple[float, float], size: int, confidence: float
) -> float:
    low, high = bounds
    inside = min(max(influence.value, low), high)
    ends = (high - inside) ** 2 + (inside - low) ** 2
    return uniform_labels(influence.half_width(confidence), spread, ends, size, confidence)


def corrected(
    component: Component, target: Target = Target.THIS_RUN, confidence: float = 0.95, *, part: bool = False
) -> Outcome:
    """What these reviewers would have said, blind, of all answers of the component, in the component's own units
    (its ``weight`` is not applied). ``part``: its answers are a part of the drawn frame, such as a category."""
    found = fitted(component, confidence, part=part)
    frame = component.frame
    size = len(frame)
    if isinstance(found, Obstacle):
        return Withheld(found.reason, target, size, component.labels, found.missing)
    bounds = (component.low, component.high)
    ends = interval(found.influence, frame.group, frame.labelled, target, bounds, confidence)
    if ends is None:
        return Withheld(WithheldReason.TOO_FEW_GROUPS, target, size, component.labels, {"groups": 1})
    return _estimate(found, ends, target, size, bounds)


def corrected_overall(
    components: Sequence[Component],
    target: Target = Target.THIS_RUN,
    confidence: float = 0.95,
    *,
    part: bool = False,
    unrated_like_rated: bool = False,
) -> Outcome:
    """The corrected whole score: the sum of weight times corrected component, with the variance of the influence
    summed per answer, so that components rated on different answers combine.

    ``labels`` and ``effective_labels`` count answers. A component nobody rated, or whose frame is small and not
    complete, enters as it came and is named: exact ones in ``named``, a judge's in ``unrated`` with its weight in the
    score (what it adds at its best). The latter widens the interval by what it could be, and the score is only *partly
    corrected*. It is withheld while any component is, naming those; and where none was rated at all. ``part``: the
    answers are a part of the drawn frame, such as a category. ``unrated_like_rated`` takes it that the judge's mean is
    off in the unrated parts by at most the largest limit of its bias among the rated ones, in shares of their scales
    (``assumed``), instead of anything that their scales allow.
    """
    found = {one.name: _entering(one, confidence, part=part) for one in components}
    frame = united([one.frame for one in components])
    size, labels = len(frame.labelled), int(frame.labelled.sum())
    missing = {name: entry for name, entry in found.items() if isinstance(entry, Obstacle)}
    if missing:
        what = {name: {"reason": str(why.reason), **why.missing} for name, why in missing.items()}
        return Withheld(WithheldReason.COMPONENTS_WITHHELD, target, size, labels, {"components": what})
    fits = {name: entry for name, entry in found.items() if isinstance(entry, Fitted)}
    if not any(fit.labels for fit in fits.values()):
        return Withheld(WithheldReason.TOO_FEW_LABELS, target, size, labels, {"labels": 20})
    influences = {name: fit.influence for name, fit in fits.items()}
    most = largest_bias(components, influences, confidence) if unrated_like_rated else None
    if most is not None:
        allowed = {one.name: most * reach_of(one) for one in components if one.judged}
        fits |= {name: replace(fits[name], influence=within(influences[name], far)) for name, far in allowed.items()}
    total = _summed(components, fits, frame, confidence)
    bounds = _bounds(components)
    ends = interval(total.influence, frame.group, frame.labelled, target, bounds, confidence)
    if ends is None:
        return Withheld(WithheldReason.TOO_FEW_GROUPS, target, size, labels, {"groups": 1})
    came = [one for one in components if fits[one.name].influence.method is Method.AS_IT_CAME]
    return replace(
        _estimate(replace(total, labels=labels), ends, target, size, bounds),
        named=tuple(one.name for one in came if not one.judged),
        unrated=(unrated := {one.name: abs(one.weight) * one.high for one in came if one.judged}),
        assumed=most if unrated else None,
    )


def overall_deviation(components: Sequence[Component], confidence: float = 0.95) -> Deviation | None:
    """How the corrected whole score deviates by group, for questions like these; ``None`` where it is
    withheld, or nothing varies."""
    found = {one.name: _entering(one, confidence, part=False) for one in components}
    fits = {name: entry for name, entry in found.items() if isinstance(entry, Fitted)}
    if len(fits) < len(found) or not any(fit.labels for fit in fits.values()):
        return None
    frame = united([one.frame for one in components])
    influence = _summed(components, fits, frame, confidence).influence
    return deviation_of(influence, frame.group, frame.groups, frame.labelled)


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


def _bounds(components: Sequence[Component]) -> tuple[float, float]:
    ends = [sorted((one.weight * one.low, one.weight * one.high)) for one in components]
    return sum(low for low, _ in ends), sum(high for _, high in ends)


def _summed(components: Sequence[Component], fits: Mapping[str, Fitted], frame: United, confidence: float) -> Fitted:
    """The weighted sum of components as one fit over the united frame."""
    design, population = np.zeros(len(frame.group)), np.zeros(len(frame.group))
    value = below = above = unseen = 0.0
    freedoms: list[int] = []
    for component, at in zip(components, frame.places, strict=True):
        influence, weight = fits[component.name].influence, component.weight
        design[at] += weight * influence.design
        population[at] += weight * influence.population
        value += weight * influence.value
        unseen += abs(weight) * math.sqrt(influence.unseen)  # the same unseen answer may be unlike in every part
        ends = (influence.below, influence.above) if weight >= 0 else (influence.above, influence.below)
        below, above = below + abs(weight) * ends[0], above + abs(weight) * ends[1]
        freedoms += [influence.freedom] if influence.freedom is not None else []
    bounds = _summed_response_bounds(components, fits)
    influence = Influence(
        value, design, population, Method.SUM, min(freedoms, default=None), below, above, None, unseen**2
    )
    return Fitted(
        influence=influence,
        labels=0,
        warnings=tuple(dict.fromkeys(warning for fit in fits.values() for warning in fit.warnings)),
        non_response=max(fit.non_response for fit in fits.values()),
        response_bounds=bounds if bounds[0] < bounds[1] else None,
        effective_labels=_all_effective_labels(components, fits, frame, influence, confidence),
    )


def _summed_response_bounds(components: Sequence[Component], fits: Mapping[str, Fitted]) -> tuple[float, float]:
    low = high = 0.0
    for component in components:
        fit = fits[component.name]
        ends = fit.response_bounds or (fit.influence.value, fit.influence.value)
        least, most = sorted((component.weight * ends[0], component.weight * ends[1]))
        low, high = low + least, high + most
    return low, high


def _all_effective_labels(
    components: Sequence[Component],
    fits: Mapping[str, Fitted],
    every: United,
    influence: Influence,
    confidence: float,
) -> float | None:
    """As for a component, in answers: with the variance of the rated parts' share of the whole score among the answers
    that have all their labels. A part over ``N_j`` of N answers adds ``w_j N / N_j`` times its value to each of them.
    ``None`` without two such answers, where they are all alike, and where a part has too few unequal labels."""
    rated = [one for one in components if fits[one.name].influence.method is not Method.AS_IT_CAME]
    if any(_few_unequal(one.frame) for one in rated):
        return None
    whole = every if len(rated) == len(components) else united([one.frame for one in rated])
    size = len(whole.group)
    score, chance, full = np.zeros(size), np.ones(size), np.ones(size, dtype=np.bool_)
    for one, at in zip(rated, whole.places, strict=True):
        frame = one.frame
        rating, probability = frame.rating[frame.labelled], frame.probability[frame.labelled]
        score[at[frame.labelled]] += one.weight * size / len(frame) * rating
        chance[at[frame.labelled]] = np.minimum(chance[at[frame.labelled]], probability)
        full[at[~frame.labelled]] = False
    score, weight = score[full], 1.0 / chance[full]
    if len(score) < 2:
        return None
    mean = float(weight @ score) / float(weight.sum())
    spread = float(weight @ np.square(score - mean)) / float(weight.sum()) * len(score) / (len(score) - 1)
    if spread <= 0:
        return None
    return _uniform_labels(influence, spread, _bounds(rated), size, confidence)


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
