"""The experts' blind first ratings of one metric, on the answers that are used together."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.utils import timezone

from evaluation.core.samples import Status
from evaluation.core.scales import Scale, ScaleKind
from evaluation.models import MetricDefinition
from review.figures.answers import RunAnswer
from review.figures.experts import ExpertRating
from review.figures.judged import Judged, Key
from review.figures.weights import Weighting
from review.statistics.agreement.bootstrap import Resampling
from review.statistics.agreement.rating import Rating, consensus, period_names

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
