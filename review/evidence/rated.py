"""The weights with which ratings stand for the answers nobody rated.

The experts' blind first ratings of one metric, on the answers that are used together.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.utils import timezone

from evaluation.core.registry import Scale, ScaleKind
from evaluation.core.samples import Status
from evaluation.models import MetricDefinition
from review.evidence.answers import RunAnswer
from review.evidence.experts import ExpertRating
from review.evidence.judged import Judged, Key
from review.evidence.sampling import NOWHERE, Place
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.rating import Rating, consensus, period_names

EQUAL_WITHIN = 1e-12


@dataclass(frozen=True, slots=True)
class Weighting:
    """Which rated answers are used together, and with which weights: ``None`` where all count the same.

    ``sampling`` is ``weighted``, ``equal`` (a sample with one probability for all) or ``unknown``; ``left_out`` counts
    rated answers of unknown sampling beside a sample with probabilities: the two are never mixed.
    """

    answers: tuple[int, ...]
    weights: tuple[float, ...] | None
    strata: tuple[str, ...]
    sampling: str
    left_out: int


def weigh(rated: Collection[int], places: Mapping[int, Place]) -> Weighting:
    """Weights 1 / (probability x response rate of the stratum). The response rate is rated / sampled, so that it
    covers both non-response and items not reached yet, whose order is random."""
    known = [answer for answer in rated if _usable(places.get(answer, NOWHERE))]
    if not known:
        answers = tuple(rated)
        return Weighting(answers, None, ("",) * len(answers), "unknown", 0)
    drawn = Counter(place.stratum for place in places.values() if _usable(place))
    response = Counter(places[answer].stratum for answer in known)
    strata = tuple(places[answer].stratum for answer in known)
    weights = tuple(
        drawn[stratum] / ((places[answer].probability or 1.0) * response[stratum])
        for answer, stratum in zip(known, strata, strict=True)
    )
    equal = max(weights) - min(weights) <= EQUAL_WITHIN * max(weights)
    return Weighting(
        tuple(known), None if equal else weights, strata, "equal" if equal else "weighted", len(rated) - len(known)
    )


def _usable(place: Place) -> bool:
    return place.sampled and place.probability is not None


OFF_SCALE = "scale"  # the reason code of a score that a judge gave off the metric's scale


@dataclass(frozen=True)
class Rated:
    """What is compared on one metric. ``ratings`` and ``answers`` may hold more answers than ``weighting`` uses."""

    metric: MetricDefinition
    name: str
    scale: Scale
    ratings: Mapping[int, list[ExpertRating]]
    weighting: Weighting
    answers: Mapping[int, RunAnswer]

    @cached_property
    def means(self) -> list[float | str | None]:
        """The experts' mean of each answer (classes: majority, ``None`` where tied)."""
        return [
            consensus([v for r in self.ratings[answer] if (v := r.answer) is not None], self.scale)
            for answer in self.weighting.answers
        ]

    @cached_property
    def groups(self) -> list[str]:
        """The group of each answer."""
        return [self.answers[answer].group for answer in self.weighting.answers]

    def single(self) -> list[Rating]:
        """Every expert's value by itself."""
        return [
            Rating(answer, rating.rater, value)
            for answer in self.weighting.answers
            for rating in self.ratings[answer]
            if (value := rating.answer) is not None
        ]

    def said(self, by: Mapping[Key, Judged]) -> list[float | str | None]:
        """What a scorer said of each answer, as :func:`comparable` has it."""
        return [comparable(by.get((answer, self.metric.pk)), self.scale) for answer in self.weighting.answers]

    def values(self, by: Mapping[Key, Judged]) -> dict[Any, float | str]:
        """Answer -> a scorer's value, of those that have one."""
        return {
            answer: value
            for answer in self.weighting.answers
            if (one := by.get((answer, self.metric.pk))) is not None and (value := one.answer) is not None
        }

    def resampling(self, asked: Resampling | None) -> Resampling | None:
        """The resampling with the groups and strata of these answers."""
        if asked is None:
            return None
        return dataclasses.replace(asked, groups=self.groups, strata=self.weighting.strata)

    def by_category(self) -> dict[str, Rated]:
        """The same, category by category."""
        return self._parts([self.answers[answer].category for answer in self.weighting.answers])

    def by_period(self) -> dict[str, Rated]:
        """The same by the time of rating: an answer belongs to the day, week or month of its newest rating, in the
        site's time zone."""
        newest = [max(rating.at for rating in self.ratings[answer]) for answer in self.weighting.answers]
        return self._parts(period_names([timezone.localtime(one).date() for one in newest]))

    def _parts(self, names: list[str]) -> dict[str, Rated]:
        places: dict[str, list[int]] = {}
        for position, name in enumerate(names):
            places.setdefault(name, []).append(position)
        return {name: self._only(places[name]) for name in sorted(places)}

    def _only(self, positions: Collection[int]) -> Rated:
        whole = self.weighting
        part = dataclasses.replace(
            whole,
            answers=tuple(whole.answers[at] for at in positions),
            weights=None if whole.weights is None else tuple(whole.weights[at] for at in positions),
            strata=tuple(whole.strata[at] for at in positions),
        )
        return dataclasses.replace(self, weighting=part)


def comparable(said: Judged | None, scale: Scale) -> float | str | None:
    """What a judge said as the comparison reads it: a value off the scale stays off the scale, so that it is counted
    as such; everything else without a value is ``None``."""
    if said is None:
        return None
    if said.status is Status.FAILED and said.reason.partition(":")[0] == OFF_SCALE:
        return "" if scale.kind is ScaleKind.CLASS else math.inf
    return said.answer
