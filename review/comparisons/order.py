"""Several runs in order: who is ahead, how sure that is, and how far it hangs on the weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from review.comparisons.choosing import Side
from review.comparisons.values import groups_of, part_values, part_weights
from review.statistics.paired_tests.ranking import Ranking, ranking_of_sums
from review.statistics.paired_tests.weight_sensitivity import WeightSensitivity, weight_sensitivity


@dataclass(frozen=True, slots=True)
class Order:
    """The runs by judge-only score over the parts and questions that all of them have, under the newest run's profile.
    ``parts`` are the weights in use; ``sensitivity`` is ``None`` where there is nothing to weigh."""

    profile: str
    parts: Mapping[str, float]
    ranking: Ranking
    sensitivity: WeightSensitivity | None


def order(sides: Sequence[Side], *, resamples: int = 2000, seed: int = 0) -> Order | None:
    """The order of at least two runs; ``None`` for fewer, or where they have no question of any part in common."""
    if len(sides) < 2:
        return None
    newest = max(sides, key=lambda side: side.run_id)
    profile = newest.basis.profile
    values = {str(side.run_id): part_values(side, profile) for side in sides}
    common = _common(values)
    if not common:
        return None
    weights = part_weights(profile, common)
    groups = {key: group for side in sides for key, group in groups_of(side).items()}
    means = {
        run: {name: math.fsum(of[name][key] for key in common[name]) / len(common[name]) for name in weights}
        for run, of in values.items()
    }
    return Order(
        profile=newest.report.header.profile,
        parts=weights,
        ranking=ranking_of_sums(values, weights, groups, resamples=resamples, seed=seed),
        sensitivity=weight_sensitivity(means, weights, seed=seed),
    )


def _common(values: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, list[str]]:
    """Part -> the questions that every run has it of; parts without one are left out."""
    names = set.intersection(*(set(of) for of in values.values()))
    found = {}
    for name in sorted(names):
        keys = set.intersection(*(set(of[name]) for of in values.values()))
        if keys:
            found[name] = sorted(keys)
    return found
