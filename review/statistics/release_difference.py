"""Release difference: mean change of a score from one release to the next, from ratings of changed questions only.

A question is *changed* unless both releases answered it with equal texts and passages (several samples: equal
multisets). Equal answers have equal values, so an unchanged question has a difference of exactly 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from review.statistics.agreement.statistic import Indices
from review.statistics.correction.corrected import (
    ComponentFit,
    Obstacle,
    fit_component,
    obstacle,
    usable_strata,
)
from review.statistics.correction.frame import MIN_LABELS, Component, Stratum, unite_frames
from review.statistics.correction.outcome import (
    CorrectionOutcome,
    Estimate,
    EstimateWarning,
    Influence,
    Method,
    Target,
    Withheld,
    WithheldReason,
    target_interval,
)
from review.statistics.correction.strata_estimates import EQUAL_TOLERANCE, unseen_rate
from review.statistics.correction.unrated import uncorrected_mean


@dataclass(frozen=True, slots=True)
class PairedPart:
    """Part of a score over its changed questions.

    ``component`` holds differences, new minus old, in the units of its scale: its frame has one entry a changed
    question, ``judge`` is the difference of the judge's values (NaN if it failed on an answer), ``rating`` that of
    ratings by the same reviewers. ``low`` and ``high`` are minus and plus the width of the scale. Questions with both
    answers rated before the draw have the probability 1 and a stratum of their own. ``questions`` counts all questions
    to which the part applies, unchanged ones included."""

    component: Component
    questions: int

    @property
    def weight(self) -> float:
        """Weight of the mean over changed questions in the difference of the score."""
        return self.component.weight * len(self.component.frame) / self.questions


def release_difference(parts: Sequence[PairedPart], questions: int, confidence: float = 0.95) -> CorrectionOutcome:
    """Mean difference of a score, new release minus old one, over exactly these ``questions`` (``this_run``).

    ``D = sum_j w_j / N_j sum_i (new_ij - old_ij)`` over parts j and changed questions i, in the units of the score.
    Each part is estimated by regression on the difference of judge values, with finite-population correction
    (:func:`review.statistics.correction.corrected.fit_component`), whatever made the answers change: only the draw
    among changed questions is random. Influences are summed by question before the variance.

    If all drawn differences of a part are equal, its interval is plus and minus ``(unrated changed / N) u`` times twice
    the width of the scale, ``u = 1 - (1 - confidence) ** (1 / n_eff)`` (method ``bound``). Without changed questions
    the difference is 0, without an interval to estimate (``census``).

    A part without ratings enters with its judge or rule values; a judged one may differ by up to the width of its
    scale, and the difference is then *partly corrected* (``unrated``). Withheld if a rated part has too few labels, or
    no part was rated. ``labels`` counts changed questions with a rated difference, ``n`` all questions.

    Source: A. Angelopoulos, J. Duchi, T. Zrnic (2023), arXiv 2311.01453, on paired differences.

    :raises ValueError: if a part has no questions, or fewer than its changed ones."""
    if any(part.questions < len(part.component.frame) for part in parts):
        raise ValueError("changed questions are questions")
    if not parts:
        return Estimate(0.0, 0.0, 0.0, Target.THIS_RUN, Method.CENSUS, questions, 0)
    fits = [_fit_part(part.component, confidence) for part in parts]
    frame = unite_frames([part.component.frame for part in parts])
    labels = int(frame.labelled.sum())
    if withheld := _withheld(parts, fits, questions, labels):
        return withheld
    estimated = [fit for fit in fits if isinstance(fit, ComponentFit)]
    influence = _summed_influence(parts, estimated, frame.places, len(frame.group))
    reach = sum(abs(part.weight) * part.component.high for part in parts)
    ends = target_interval(influence, frame.group, frame.labelled, Target.THIS_RUN, (-reach, reach), confidence)
    if ends is None:
        raise AssertionError("an interval for these questions needs no groups")
    value = min(max(influence.value, -reach), reach)
    warnings = [warning for fit in estimated for warning in fit.warnings]
    return Estimate(
        value=value,
        low=min(ends.low, value),
        high=max(ends.high, value),
        target=Target.THIS_RUN,
        method=influence.method,
        n=questions,
        labels=labels,
        slope=influence.slope,
        warnings=tuple(dict.fromkeys([*warnings, *([EstimateWarning.CLIPPED] if ends.clipped else [])])),
        non_response=max(fit.non_response for fit in estimated),
        named=tuple(part.component.name for part in _unrated(parts, estimated) if not part.component.judged),
        unrated={
            part.component.name: abs(part.component.weight) * part.component.high
            for part in _unrated(parts, estimated)
            if part.component.judged
        },
    )


def _withheld(
    parts: Sequence[PairedPart], fits: Sequence[ComponentFit | Obstacle], questions: int, labels: int
) -> Withheld | None:
    """Why there is no difference; ``None`` if there is one."""
    barriers = {
        part.component.name: {"reason": str(fit.reason), **fit.missing}
        for part, fit in zip(parts, fits, strict=True)
        if isinstance(fit, Obstacle)
    }
    if barriers:
        return Withheld(
            WithheldReason.COMPONENTS_WITHHELD, Target.THIS_RUN, questions, labels, {"components": barriers}
        )
    if not labels and any(part.component.judged for part in parts):
        return Withheld(
            WithheldReason.TOO_FEW_LABELS, Target.THIS_RUN, questions, 0, {"labels": _labels_missing(parts)}
        )
    return None


def _fit_part(component: Component, confidence: float) -> ComponentFit | Obstacle:
    """Fit the differences of a part; without ratings, take the judge's or the rule's."""
    if not component.labels and (uncorrected := uncorrected_mean(component)):
        return ComponentFit(uncorrected, 0, (), 0.0, None, None)
    usable = usable_strata(component, is_subset=False)
    barrier = obstacle(component, usable)
    drawn = [stratum for stratum in usable if not stratum.census]
    if barrier or not drawn:
        return barrier or fit_component(component, confidence)
    ratings = np.concatenate([stratum.rating for stratum in drawn])
    if len(ratings) and float(np.ptp(ratings)) <= EQUAL_TOLERANCE * component.width:
        return _fit_equal_differences(component, usable, float(ratings[0]), confidence)
    return fit_component(component, confidence)


def _fit_equal_differences(
    component: Component, usable: Sequence[Stratum], difference: float, confidence: float
) -> ComponentFit:
    """Bound the unrated differences where all drawn ones are equal."""
    size = len(component.frame)
    drawn = [stratum for stratum in usable if not stratum.census]
    certain = [stratum for stratum in usable if stratum.census]
    weights = np.concatenate([1.0 / stratum.inclusion for stratum in drawn])
    effective = float(weights.sum() ** 2 / np.square(weights).sum())
    open_count = sum(stratum.size for stratum in drawn)
    unrated = open_count - len(weights)
    half = unrated / size * unseen_rate(effective, confidence) * component.width
    unanswered = sum(stratum.size * stratum.unanswered_share for stratum in drawn) / size
    value = (math.fsum(float(stratum.rating.sum()) for stratum in certain) + open_count * difference) / size
    zeros = np.zeros(size)
    influence = Influence(
        value,
        zeros,
        zeros,
        Method.BOUND,
        None,
        below=half + unanswered * (difference - component.low),
        above=half + unanswered * (component.high - difference),
    )
    reached = sum(stratum.reached for stratum in usable)
    silent = sum(stratum.unanswered for stratum in usable)
    return ComponentFit(influence, component.labels, (), silent / reached if reached else 0.0, None, None)


def _summed_influence(
    parts: Sequence[PairedPart], fits: Sequence[ComponentFit], places: Sequence[Indices], size: int
) -> Influence:
    design, value, below, above, unseen = np.zeros(size), 0.0, 0.0, 0.0, 0.0
    for part, fit, positions in zip(parts, fits, places, strict=True):
        influence, weight = fit.influence, part.weight
        design[positions] += weight * influence.design
        value += weight * influence.value
        # Standard deviations add up, because the same unseen answer may deviate in every part.
        unseen += abs(weight) * math.sqrt(influence.unseen)
        ends = (influence.below, influence.above) if weight >= 0 else (influence.above, influence.below)
        below, above = below + abs(weight) * ends[0], above + abs(weight) * ends[1]
    rated = [fit.influence for fit in fits if fit.influence.method is not Method.UNCORRECTED]
    freedoms = [influence.freedom for influence in rated if influence.freedom is not None]
    return Influence(
        value,
        design,
        np.zeros(size),
        rated[0].method if len(rated) == 1 else Method.SUM,
        min(freedoms, default=None),
        below,
        above,
        rated[0].slope if len(rated) == 1 else None,
        unseen**2,
    )


def _unrated(parts: Sequence[PairedPart], fits: Sequence[ComponentFit]) -> list[PairedPart]:
    return [part for part, fit in zip(parts, fits, strict=True) if fit.influence.method is Method.UNCORRECTED]


def _labels_missing(parts: Sequence[PairedPart]) -> int:
    """Fewest rated questions that give a first figure."""
    return min(MIN_LABELS, *(len(part.component.frame) for part in parts if part.component.judged))
