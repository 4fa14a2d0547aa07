"""Corrected score of a metric, a category or the whole profile, or the reason for withholding it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from review.statistics.correction.frame import (
    MIN_LABELS,
    MIN_STRATUM_LABELS,
    Component,
    SamplingFrame,
    Stratum,
    UnitedFrame,
    collapsed_strata,
    frame_strata,
    unite_frames,
)
from review.statistics.correction.outcome import (
    FEW_GROUPS,
    CorrectionOutcome,
    Deviation,
    Estimate,
    EstimateWarning,
    Influence,
    IntervalEnds,
    Method,
    RoundShare,
    Target,
    Withheld,
    WithheldReason,
    group_deviation,
    target_interval,
)
from review.statistics.correction.rounds import (
    RoundSize,
    combine_influences,
    round_sizes,
    round_weights,
    rounds_of,
)
from review.statistics.correction.strata_estimates import (
    EstimatePart,
    NotEstimable,
    StratumContribution,
    census_part,
    failed_parts,
    is_bounded_by_scale,
    regression_part,
    uniform_labels,
)
from review.statistics.correction.unrated import largest_bias, limit_bias, scale_width, uncorrected_mean

MIN_FRAME_SIZE = 20
MAX_NON_RESPONSE = 0.10


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Reason against a corrected score, and the data that would remove it."""

    reason: WithheldReason
    missing: Mapping[str, Any] = field(default_factory=dict)


def usable_strata(component: Component, *, is_subset: bool) -> list[Stratum]:
    """Strata for the estimate.

    If a subset of a frame, such as a category, has a stratum with too few labels, its strata are collapsed. Strata of a
    whole frame stay, because the draw fills them."""
    design_strata = frame_strata(component.frame)
    return (
        collapsed_strata(component.frame)
        if is_subset and any(_is_thin(stratum) for stratum in design_strata)
        else design_strata
    )


def obstacle(component: Component, usable: Sequence[Stratum]) -> Obstacle | None:
    """First rule that forbids a figure, or ``None``: ``docs/correction.md``, *When there is no corrected score*."""
    size, labels = len(component.frame), component.labels
    if labels == size:
        return None
    if size < MIN_FRAME_SIZE:
        return Obstacle(WithheldReason.SMALL_FRAME, {"labels": size - labels})
    reached = sum(stratum.reached for stratum in usable)
    unanswered = sum(stratum.unanswered for stratum in usable)
    if reached and unanswered / reached > MAX_NON_RESPONSE:
        return Obstacle(WithheldReason.NON_RESPONSE, {"non_response": unanswered / reached, "most": MAX_NON_RESPONSE})
    representative_labels = labels - int((component.frame.in_prompt & component.frame.labelled).sum())
    if representative_labels < MIN_LABELS:
        return Obstacle(WithheldReason.TOO_FEW_LABELS, {"labels": MIN_LABELS - representative_labels})
    unreachable = int(np.isnan(component.frame.probability).sum())
    if unreachable:
        return Obstacle(WithheldReason.NO_PROBABILITY, {"answers": unreachable})
    thin = {
        stratum.name: min(MIN_STRATUM_LABELS, stratum.size) - stratum.labels for stratum in usable if _is_thin(stratum)
    }
    return Obstacle(WithheldReason.STRATUM_TOO_FEW_LABELS, {"strata": thin}) if thin else None


def _is_thin(stratum: Stratum) -> bool:
    """Return whether a stratum has too few labels for a figure. A stratum on which the judge failed shows bounds
    instead."""
    return not stratum.judge_failed and not stratum.census and stratum.labels < MIN_STRATUM_LABELS


MIN_OFF_COMMONEST = 5
# Share of the design variance; above it, intervals without the unseen variance would miss too often.
MAX_UNSEEN_SHARE = 0.12


@dataclass(frozen=True, slots=True)
class ComponentFit:
    """Estimate of a component before its interval: its influence and the accompanying figures."""

    influence: Influence
    labels: int
    warnings: tuple[EstimateWarning, ...]
    non_response: float
    response_bounds: tuple[float, float] | None
    effective_labels: float | None
    rounds: tuple[RoundShare, ...] = ()


@dataclass(frozen=True, slots=True)
class _RoundFit:
    """Estimate of one round of a component. ``influence`` is without the widening by non-response."""

    component: Component
    usable: Sequence[Stratum]
    parts: Sequence[EstimatePart]
    pieces: Sequence[StratumContribution]
    influence: Influence


def fit_component(
    component: Component, confidence: float = 0.95, *, is_subset: bool = False
) -> ComponentFit | Obstacle:
    """Estimate a component by regression over its strata, or return the obstacle.

    Several rounds are combined by :func:`~review.statistics.correction.rounds.round_weights`. A round that cannot be
    estimated is left out; the obstacle is that of the last round if none can.

    ``is_subset``: the answers of the component are part of the drawn frame, such as a category."""
    fits = [
        _fit_round(replace(component, frame=review_round.frame, earlier=()), confidence, is_subset=is_subset)
        for review_round in rounds_of(component)
    ]
    if isinstance(fits[-1], Obstacle) and all(isinstance(fit, Obstacle) for fit in fits):
        return fits[-1]
    sizes = round_sizes(component)
    open_answers = int((~component.frame.standing).sum())
    weights = round_weights(open_answers, sizes, [isinstance(fit, _RoundFit) for fit in fits])
    used = [(fit, weight) for fit, weight in zip(fits, weights, strict=True) if isinstance(fit, _RoundFit) and weight]
    shares = tuple(map(_round_share, fits, sizes, weights, _new_labels(component)))
    return _combined_fit(used, confidence, shares if len(fits) > 1 else ())


def _fit_round(component: Component, confidence: float, *, is_subset: bool) -> _RoundFit | Obstacle:
    usable = usable_strata(component, is_subset=is_subset)
    if barrier := obstacle(component, usable):
        return barrier
    try:
        parts = _estimate_parts(component, usable, confidence)
    except NotEstimable:
        return Obstacle(WithheldReason.NOT_ESTIMABLE)
    pieces = [piece for estimate_part in parts for piece in estimate_part.pieces]
    return _RoundFit(component, usable, parts, pieces, _influence(component, parts, pieces))


def _combined_fit(
    used: Sequence[tuple[_RoundFit, float]], confidence: float, shares: tuple[RoundShare, ...]
) -> ComponentFit:
    """Combine the rounds with their weights. The last one has all labels and represents the frame."""
    last, _ = used[-1]
    influence = last.influence
    if len(used) > 1:
        influence = combine_influences([fit.influence for fit, _ in used], [weight for _, weight in used])
    bounds = _response_bounds(used, influence.value)
    return ComponentFit(
        influence=influence if bounds is None else _widened_by_bounds(influence, bounds),
        labels=last.component.labels,
        warnings=_warnings(last.component, [part for fit, _ in used for part in fit.parts], influence),
        non_response=_non_response_rate(last.usable),
        response_bounds=bounds,
        effective_labels=_effective_labels(last.component, last.pieces, influence, confidence),
        rounds=shares,
    )


def _round_share(fit: _RoundFit | Obstacle, size: RoundSize, weight: float, labels: int) -> RoundShare:
    return RoundShare(labels, weight, size.planned, str(fit.reason) if isinstance(fit, Obstacle) else "")


def _new_labels(component: Component) -> list[int]:
    """Number of ratings of answers that each round drew first."""
    counts, sampled_before = [], component.frame.standing.copy()
    for review_round in rounds_of(component):
        counts.append(int((review_round.frame.labelled & ~sampled_before).sum()))
        sampled_before |= review_round.frame.sampled
    return counts


def _estimate_parts(component: Component, usable: Sequence[Stratum], confidence: float) -> list[EstimatePart]:
    parts = [census_part([stratum for stratum in usable if stratum.census])]
    if judged_strata := [stratum for stratum in usable if not stratum.census and not stratum.judge_failed]:
        parts.append(regression_part(judged_strata, component, confidence))
    pieces = [piece for part in parts for piece in part.pieces]
    expected_values = np.concatenate([piece.expected for piece in pieces]) if pieces else np.zeros(0)
    fallback_mean = float(expected_values.mean()) if len(expected_values) else (component.low + component.high) / 2
    return parts + failed_parts(
        [stratum for stratum in usable if not stratum.census and stratum.judge_failed],
        component,
        fallback_mean,
        confidence,
    )


def _influence(component: Component, parts: Sequence[EstimatePart], pieces: Sequence[StratumContribution]) -> Influence:
    frame = len(component.frame)
    expected, design, sampling = np.zeros(frame), np.zeros(frame), np.zeros(frame)
    for piece in pieces:
        expected[piece.stratum.members] = piece.expected
        design[piece.stratum.labelled] = piece.design
        sampling[piece.stratum.labelled] = piece.sampling
    value = float(expected.mean())
    main_part = next((part for part in parts if part.slope is not None), None)
    estimated_parts = [part for part in parts if part.pieces and part.method is not Method.CENSUS]
    return Influence(
        value=value,
        design=design,
        population=(expected - value) / frame + sampling,
        method=(main_part or estimated_parts[0]).method if estimated_parts else Method.CENSUS,
        freedom=sum(part.freedom for part in parts) or None,
        below=sum(part.below for part in parts),
        above=sum(part.above for part in parts),
        slope=main_part.slope if main_part else None,
        unseen=sum(part.unseen for part in parts),
    )


def _warnings(component: Component, parts: Sequence[EstimatePart], influence: Influence) -> tuple[EstimateWarning, ...]:
    _, label_counts = np.unique(component.frame.rating[component.frame.labelled], return_counts=True)
    has_few_off_commonest = (
        influence.method is not Method.CENSUS and label_counts.sum() - label_counts.max() < MIN_OFF_COMMONEST
    )
    warnings = [EstimateWarning.FEW_OFF_COMMONEST] if has_few_off_commonest else []
    warnings += (
        [EstimateWarning.UNSEEN_ANSWERS] if influence.unseen > MAX_UNSEEN_SHARE * influence.design_variance else []
    )
    return tuple(dict.fromkeys([*warnings, *(warning for part in parts for warning in part.warnings)]))


def _non_response_rate(usable: Sequence[Stratum]) -> float:
    reached = sum(stratum.reached for stratum in usable)
    return sum(stratum.unanswered for stratum in usable) / reached if reached else 0.0


def _response_bounds(rounds: Sequence[tuple[_RoundFit, float]], value: float) -> tuple[float, float] | None:
    """Value if every item without a rating had the worst and the best rating; ``None`` if all responded.

    A stratum whose interval already reaches the ends of the scale adds nothing."""
    below = above = 0.0
    for fit, round_weight in rounds:
        component = fit.component
        for piece in fit.pieces:
            stratum = piece.stratum
            if stratum.unanswered and not is_bounded_by_scale(stratum):
                weight = round_weight * stratum.size / len(component.frame) * stratum.unanswered_share
                mean = float(piece.expected.mean())
                below += weight * (mean - component.low)
                above += weight * (component.high - mean)
    return (value - below, value + above) if below or above else None


def _widened_by_bounds(influence: Influence, bounds: tuple[float, float]) -> Influence:
    """Widen the interval: from the worst bound minus the half-width to the best bound plus the half-width."""
    below, above = influence.value - bounds[0], bounds[1] - influence.value
    return replace(influence, below=influence.below + below, above=influence.above + above)


def _effective_labels(
    component: Component, pieces: Sequence[StratumContribution], influence: Influence, confidence: float
) -> float | None:
    """Number of labels of a uniform draw that gives an equally wide interval without the judge.

    It has the same allowances for few labels. ``None`` for constant ratings, and for too few unequal labels
    (:func:`_has_few_unequal_labels`)."""
    frame = len(component.frame)
    if influence.method is Method.CENSUS:
        return float(frame)
    if _has_few_unequal_labels(component.frame):
        return None
    rated_strata = [piece.stratum for piece in pieces if piece.stratum.labels]
    weight = np.concatenate([stratum.size * stratum.share for stratum in rated_strata])
    rating = np.concatenate([stratum.rating for stratum in rated_strata])
    mean = float(weight @ rating) / float(weight.sum())
    variance = float(weight @ np.square(rating - mean)) / float(weight.sum()) * len(rating) / (len(rating) - 1)
    if variance <= 0:
        return None
    return _uniform_labels(influence, variance, (component.low, component.high), frame, confidence)


MIN_EFFECTIVE_LABELS = 50


def _has_few_unequal_labels(frame: SamplingFrame) -> bool:
    """Return whether answers of a stratum have unequal probabilities and weigh as fewer than 50 labels.

    The number is Kish's effective number, summed over strata. With so few, a handful of heavy labels decides the width,
    which is too often small by chance."""
    labelled = frame.labelled
    weight, stratum = 1.0 / frame.probability[labelled], frame.stratum[labelled]
    squared_weights = np.bincount(stratum, np.square(weight))
    effective_labels = float(
        (np.bincount(stratum, weight)[squared_weights > 0] ** 2 / squared_weights[squared_weights > 0]).sum()
    )
    return effective_labels < min(MIN_EFFECTIVE_LABELS, 0.99 * len(weight))


def _uniform_labels(
    influence: Influence, spread: float, bounds: tuple[float, float], size: int, confidence: float
) -> float:
    low, high = bounds
    clipped_value = min(max(influence.value, low), high)
    squared_distances = (high - clipped_value) ** 2 + (clipped_value - low) ** 2
    return uniform_labels(influence.half_width(confidence), spread, squared_distances, size, confidence)


def corrected_component(
    component: Component, target: Target = Target.THIS_RUN, confidence: float = 0.95, *, is_subset: bool = False
) -> CorrectionOutcome:
    """Corrected score of a component: the mean that these reviewers, rating blind, would give to all its answers.

    It is in the component's own units, without its ``weight``. ``is_subset``: the answers are part of the drawn frame,
    such as a category."""
    fit = fit_component(component, confidence, is_subset=is_subset)
    frame = component.frame
    size = len(frame)
    if isinstance(fit, Obstacle):
        return Withheld(fit.reason, target, size, component.labels, fit.missing)
    bounds = (component.low, component.high)
    ends = target_interval(fit.influence, frame.group, frame.labelled, target, bounds, confidence)
    if ends is None:
        return Withheld(WithheldReason.TOO_FEW_GROUPS, target, size, component.labels, {"groups": 1})
    return replace(_estimate(fit, ends, target, size, bounds), looks=component.looks, planned=_is_planned([component]))


def corrected_overall(
    components: Sequence[Component],
    target: Target = Target.THIS_RUN,
    confidence: float = 0.95,
    *,
    is_subset: bool = False,
    unrated_like_rated: bool = False,
) -> CorrectionOutcome:
    """Corrected overall score: the sum of weight times corrected component.

    Influences are summed per answer before the variance, so that components rated on different answers combine.
    ``labels`` and ``effective_labels`` count answers. The score is withheld while any component is withheld, and names
    those; it is also withheld if no component was rated.

    A component without ratings, or with a small incomplete frame, enters uncorrected. Exact ones are listed in
    ``named``, those of a judge in ``unrated`` with their weight (their largest contribution). The latter widen the
    interval by their possible values, and the score is only *partly corrected*.

    ``is_subset``: the answers are part of the drawn frame, such as a category. ``unrated_like_rated`` assumes a limit
    on the judge's bias in the unrated components (``assumed``): the largest limit among the rated ones, as a share of
    the scale. Without it, any value of the scale is possible."""
    entries = {component.name: _component_entry(component, confidence, is_subset=is_subset) for component in components}
    frame = unite_frames([component.frame for component in components])
    size, labels = len(frame.labelled), int(frame.labelled.sum())
    missing = {name: entry for name, entry in entries.items() if isinstance(entry, Obstacle)}
    if missing:
        barriers = {name: {"reason": str(barrier.reason), **barrier.missing} for name, barrier in missing.items()}
        return Withheld(WithheldReason.COMPONENTS_WITHHELD, target, size, labels, {"components": barriers})
    fits = {name: entry for name, entry in entries.items() if isinstance(entry, ComponentFit)}
    if not any(fit.labels for fit in fits.values()):
        return Withheld(WithheldReason.TOO_FEW_LABELS, target, size, labels, {"labels": 20})
    influences = {name: fit.influence for name, fit in fits.items()}
    bias_limit = largest_bias(components, influences, confidence) if unrated_like_rated else None
    if bias_limit is not None:
        limits = {component.name: bias_limit * scale_width(component) for component in components if component.judged}
        fits |= {
            name: replace(fits[name], influence=limit_bias(influences[name], limit)) for name, limit in limits.items()
        }
    total = _summed_fit(components, fits, frame, confidence)
    bounds = _score_bounds(components)
    ends = target_interval(total.influence, frame.group, frame.labelled, target, bounds, confidence)
    if ends is None:
        return Withheld(WithheldReason.TOO_FEW_GROUPS, target, size, labels, {"groups": 1})
    uncorrected = [component for component in components if fits[component.name].influence.method is Method.UNCORRECTED]
    return replace(
        _estimate(replace(total, labels=labels), ends, target, size, bounds),
        named=tuple(component.name for component in uncorrected if not component.judged),
        unrated=(
            unrated := {
                component.name: abs(component.weight) * component.high for component in uncorrected if component.judged
            }
        ),
        assumed=bias_limit if unrated else None,
        looks=max(component.looks for component in components),
        planned=_is_planned(components),
    )


def _is_planned(components: Sequence[Component]) -> bool:
    return all(review_round.planned for component in components for review_round in rounds_of(component))


def overall_deviation(components: Sequence[Component], confidence: float = 0.95) -> Deviation | None:
    """Deviation of the corrected overall score by group, for questions like these; ``None`` if withheld or without
    variation."""
    entries = {component.name: _component_entry(component, confidence, is_subset=False) for component in components}
    fits = {name: entry for name, entry in entries.items() if isinstance(entry, ComponentFit)}
    if len(fits) < len(entries) or not any(fit.labels for fit in fits.values()):
        return None
    frame = unite_frames([component.frame for component in components])
    influence = _summed_fit(components, fits, frame, confidence).influence
    return group_deviation(influence, frame.group, frame.groups, frame.labelled)


def _component_entry(component: Component, confidence: float, *, is_subset: bool) -> ComponentFit | Obstacle:
    """Estimate of a component; uncorrected if nobody rated it or its frame is too small."""
    fit = fit_component(component, confidence, is_subset=is_subset)
    if not isinstance(fit, Obstacle):
        return fit
    if component.labels and fit.reason is not WithheldReason.SMALL_FRAME:
        return fit
    influence = uncorrected_mean(component)
    if influence is None:
        return Obstacle(WithheldReason.NO_VALUES)
    return ComponentFit(influence, 0, (), 0.0, None, None)


def _score_bounds(components: Sequence[Component]) -> tuple[float, float]:
    ends = [sorted((component.weight * component.low, component.weight * component.high)) for component in components]
    return sum(low for low, _ in ends), sum(high for _, high in ends)


def _summed_fit(
    components: Sequence[Component], fits: Mapping[str, ComponentFit], frame: UnitedFrame, confidence: float
) -> ComponentFit:
    """Weighted sum of components as one fit over the united frame."""
    design, population = np.zeros(len(frame.group)), np.zeros(len(frame.group))
    value = below = above = unseen = 0.0
    freedoms: list[float] = []
    label_freedoms: list[float] = []
    for component, positions in zip(components, frame.places, strict=True):
        influence, weight = fits[component.name].influence, component.weight
        design[positions] += weight * influence.design
        population[positions] += weight * influence.population
        value += weight * influence.value
        # Standard deviations add up, because the same unseen answer may deviate in every component.
        unseen += abs(weight) * math.sqrt(influence.unseen)
        ends = (influence.below, influence.above) if weight >= 0 else (influence.above, influence.below)
        below, above = below + abs(weight) * ends[0], above + abs(weight) * ends[1]
        if influence.freedom is not None:
            freedoms.append(influence.freedom)
            label_freedoms.append(influence.label_freedom or influence.freedom)
    bounds = _summed_response_bounds(components, fits)
    influence = Influence(
        value,
        design,
        population,
        Method.SUM,
        freedom=min(freedoms, default=None),
        below=below,
        above=above,
        unseen=unseen**2,
        label_freedom=min(label_freedoms, default=None),
    )
    return ComponentFit(
        influence=influence,
        labels=0,
        warnings=tuple(dict.fromkeys(warning for fit in fits.values() for warning in fit.warnings)),
        non_response=max(fit.non_response for fit in fits.values()),
        response_bounds=bounds if bounds[0] < bounds[1] else None,
        effective_labels=_overall_effective_labels(components, fits, frame, influence, confidence),
        rounds=_summed_rounds(components, fits),
    )


def _summed_rounds(components: Sequence[Component], fits: Mapping[str, ComponentFit]) -> tuple[RoundShare, ...]:
    """Rounds of the overall score: their weights are means over the components that have several rounds."""
    rounds = [(abs(component.weight), fits[component.name].rounds) for component in components]
    summed = []
    for position in range(max(len(shares) for _, shares in rounds)):
        entries = [(weight, shares[position]) for weight, shares in rounds if position < len(shares)]
        total = sum(weight for weight, _ in entries) or 1.0
        summed.append(
            RoundShare(
                labels=max(share.labels for _, share in entries),
                weight=sum(weight * share.weight for weight, share in entries) / total,
                planned=all(share.planned for _, share in entries),
                left_out=next((share.left_out for _, share in entries if share.left_out), ""),
            )
        )
    return tuple(summed)


def _summed_response_bounds(components: Sequence[Component], fits: Mapping[str, ComponentFit]) -> tuple[float, float]:
    low = high = 0.0
    for component in components:
        fit = fits[component.name]
        ends = fit.response_bounds or (fit.influence.value, fit.influence.value)
        least, most = sorted((component.weight * ends[0], component.weight * ends[1]))
        low, high = low + least, high + most
    return low, high


def _overall_effective_labels(
    components: Sequence[Component],
    fits: Mapping[str, ComponentFit],
    all_answers: UnitedFrame,
    influence: Influence,
    confidence: float,
) -> float | None:
    """Effective labels of the overall score, in answers.

    The variance is that of the rated components' share of the overall score, among answers with all their labels. A
    component over ``N_j`` of N answers adds ``w_j N / N_j`` times its value to each of them. ``None`` without two such
    answers, if all are equal, or if a component has too few unequal labels."""
    rated = [component for component in components if fits[component.name].influence.method is not Method.UNCORRECTED]
    if any(_has_few_unequal_labels(component.frame) for component in rated):
        return None
    united_frame = (
        all_answers if len(rated) == len(components) else unite_frames([component.frame for component in rated])
    )
    size = len(united_frame.group)
    score, inclusion, fully_labelled = np.zeros(size), np.ones(size), np.ones(size, dtype=np.bool_)
    for component, positions in zip(rated, united_frame.places, strict=True):
        frame = component.frame
        rating, probability = frame.rating[frame.labelled], frame.probability[frame.labelled]
        score[positions[frame.labelled]] += component.weight * size / len(frame) * rating
        inclusion[positions[frame.labelled]] = np.minimum(inclusion[positions[frame.labelled]], probability)
        fully_labelled[positions[~frame.labelled]] = False
    score, weight = score[fully_labelled], 1.0 / inclusion[fully_labelled]
    if len(score) < 2:
        return None
    mean = float(weight @ score) / float(weight.sum())
    spread = float(weight @ np.square(score - mean)) / float(weight.sum()) * len(score) / (len(score) - 1)
    if spread <= 0:
        return None
    return _uniform_labels(influence, spread, _score_bounds(rated), size, confidence)


def _estimate(
    fit: ComponentFit, ends: IntervalEnds, target: Target, size: int, bounds: tuple[float, float]
) -> Estimate:
    value = min(max(fit.influence.value, bounds[0]), bounds[1])
    clipped = ends.clipped or value != fit.influence.value
    warnings = list(fit.warnings)
    warnings += [EstimateWarning.CLIPPED] if clipped else []
    warnings += [EstimateWarning.FEW_GROUPS] if 0 < ends.groups < FEW_GROUPS else []
    return Estimate(
        value=value,
        low=min(ends.low, value),
        high=max(ends.high, value),
        target=target,
        method=fit.influence.method,
        n=size,
        labels=fit.labels,
        effective_labels=fit.effective_labels,
        slope=fit.influence.slope,
        warnings=tuple(warnings),
        non_response=fit.non_response,
        response_bounds=fit.response_bounds,
        rounds=fit.rounds,
    )
