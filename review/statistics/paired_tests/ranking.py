"""Ranking of several runs on the same questions, with rank intervals and sensitivity to the weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from review.statistics.agreement.statistic import Array, Indices, factorize
from review.statistics.correction.outcome import NO_VARIANCE, Deviation, group_freedom
from review.statistics.paired_tests.family import rank_bounds

EQUAL_TOLERANCE = 1e-12
# Value by question.
Values = Mapping[Any, float]


@dataclass(frozen=True, slots=True)
class RankedRun:
    """Run with its mean over the common questions.

    ``places`` are its first and last possible rank, at 95% for all runs together."""

    run: str
    mean: float
    places: tuple[int, int] = (1, 1)


@dataclass(frozen=True, slots=True)
class RunRanking:
    """Runs, best first, over the ``questions`` that all runs have in common."""

    order: tuple[RankedRun, ...]
    questions: int


@dataclass(frozen=True, slots=True)
class _ScorePart:
    """Component over its common questions: ``values`` (runs, questions) and the questions' positions among all."""

    weight: float
    values: Array
    positions: Indices


def rank_runs(runs: Mapping[str, Values], groups: Mapping[Any, Hashable] | None = None, *, seed: int = 0) -> RunRanking:
    """Rank runs (run -> question -> value, more is better) by their mean."""
    parts = {run: {"": values} for run, values in runs.items()}
    return rank_weighted_runs(parts, {"": 1.0}, groups, seed=seed)


def rank_weighted_runs(
    runs: Mapping[str, Mapping[str, Values]],
    weights: Mapping[str, float],
    groups: Mapping[Any, Hashable] | None = None,
    *,
    seed: int = 0,
) -> RunRanking:
    """Rank runs (run -> component -> question -> value) by the sum of weight x mean of the components.

    Each mean is over the questions that every run has for the component. Components without a common question are
    ignored; without any the order is empty."""
    common = {
        name: set.intersection(*(set(part_values.get(name, ())) for part_values in runs.values())) if runs else set()
        for name in weights
    }
    keys = sorted({key for common_keys in common.values() for key in common_keys}, key=str)
    if not keys:
        return RunRanking((), 0)
    parts = _score_parts(runs, weights, common, keys)
    score = np.sum([part.weight * part.values.mean(axis=1) for part in parts], axis=0)
    names = list(runs)
    places = rank_bounds(len(runs), _run_differences(parts, score, keys, groups), seed=seed)
    order = sorted(range(len(runs)), key=lambda position: (-round(float(score[position]), 12), names[position]))
    return RunRanking(
        tuple(RankedRun(names[position], float(score[position]), places[position]) for position in order), len(keys)
    )


def _run_differences(
    parts: Sequence[_ScorePart], score: Array, keys: Sequence[Hashable], groups: Mapping[Any, Hashable] | None
) -> dict[tuple[int, int], Deviation]:
    """Difference of each pair of runs that varies, by group of questions."""
    group_index = factorize([groups[key] for key in keys] if groups else keys)
    sizes = np.bincount(group_index)
    deviation = np.zeros((len(score), len(keys)))
    for part in parts:
        size = part.values.shape[1]
        deviation[:, part.positions] += part.weight * (part.values - part.values.mean(axis=1, keepdims=True)) / size
    sums = np.array([np.bincount(group_index, weights=row) for row in deviation])
    freedom, leads = group_freedom(sizes), {}
    for first in range(len(score)):
        for second in range(first + 1, len(score)):
            group_difference = sums[first] - sums[second]
            variance = float(np.square(group_difference).sum()) * len(sizes) / max(1, len(sizes) - 1)
            if variance > NO_VARIANCE and len(sizes) > 1:
                lead = float(score[first] - score[second])
                leads[first, second] = Deviation(
                    lead, float(np.sqrt(variance)), freedom, dict(enumerate(group_difference.tolist()))
                )
    return leads


def _score_parts(
    runs: Mapping[str, Mapping[str, Values]],
    weights: Mapping[str, float],
    common: Mapping[str, set[Hashable]],
    keys: Sequence[Hashable],
) -> list[_ScorePart]:
    position_by_key = {key: position for position, key in enumerate(keys)}
    score_parts = []
    for name, weight in weights.items():
        questions = sorted(common[name], key=position_by_key.__getitem__)
        if questions:
            values = np.array(
                [[run_parts[name][key] for key in questions] for run_parts in runs.values()], dtype=np.float64
            )
            score_parts.append(
                _ScorePart(weight, values, np.array([position_by_key[key] for key in questions], dtype=np.int64))
            )
    return score_parts


DRAWS = 10_000
# Weights vary from a half to twice their value.
MAX_WEIGHT_FACTOR = 2.0


@dataclass(frozen=True, slots=True)
class RankSwap:
    """Change of a weight that swaps two neighbours of the ranking.

    The component ``part`` has the weight ``at`` instead of ``weight``; the others keep their proportions. ``ahead`` and
    ``behind`` are the current order."""

    ahead: str
    behind: str
    part: str
    weight: float
    at: float


@dataclass(frozen=True, slots=True)
class WeightSensitivity:
    """Sensitivity of a ranking to the weights.

    ``holds`` is the share of weightings near the profile's that keep the whole order. ``best`` is run -> share of all
    possible weightings in which it is best. ``turns`` are the nearest changes of a single weight that swap neighbours,
    smallest first; neighbours that no single weight can swap have none."""

    holds: float
    best: Mapping[str, float]
    turns: tuple[RankSwap, ...]


def weight_sensitivity(
    runs: Mapping[str, Mapping[str, float]], weights: Mapping[str, float], *, seed: int = 0, draws: int = DRAWS
) -> WeightSensitivity | None:
    """Sensitivity of the ranking of ``runs`` (run -> component -> mean on one scale, more is better) to positive
    ``weights``.

    The score is ``sum_j w_j x_j`` with weights scaled to sum 1. ``holds`` multiplies each weight by a seeded factor
    between 1/2 and 2, uniform on the log scale. ``best`` draws weights uniformly over all possible ones: the rank
    acceptability of R. Lahdelma, J. Hokkanen, P. Salminen (1998), Eur. J. Oper. Res. 106. Ties are shared. ``None``
    with fewer than two runs or components.

    :raises ValueError: for a weight that is not positive."""
    if len(runs) < 2 or len(weights) < 2:
        return None
    if any(weight <= 0 for weight in weights.values()):
        raise ValueError("weights are positive")
    share = np.array(list(weights.values()), dtype=np.float64) / sum(weights.values())
    table = np.array([[part_means[part] for part in weights] for part_means in runs.values()], dtype=np.float64)
    names = list(runs)
    order = sorted(
        range(len(names)), key=lambda position: (-round(float(table[position] @ share), 12), names[position])
    )
    names, table = [names[position] for position in order], table[order]
    random = np.random.default_rng(seed)
    nearby_weights = share * np.exp(
        random.uniform(-np.log(MAX_WEIGHT_FACTOR), np.log(MAX_WEIGHT_FACTOR), (draws, len(share)))
    )
    random_weights = random.dirichlet(np.ones(len(share)), draws)
    return WeightSensitivity(
        holds=_order_stability(nearby_weights / nearby_weights.sum(axis=1, keepdims=True) @ table.T),
        best=dict(zip(names, _best_shares(random_weights @ table.T), strict=True)),
        turns=_rank_swaps(names, table, list(weights), share),
    )


def _order_stability(score: Array) -> float:
    lead = score[:, :-1] - score[:, 1:]
    return float(((lead > EQUAL_TOLERANCE) + 0.5 * (np.abs(lead) <= EQUAL_TOLERANCE)).prod(axis=1).mean())


def _best_shares(score: Array) -> list[float]:
    top = score >= score.max(axis=1, keepdims=True) - EQUAL_TOLERANCE
    return [float(share) for share in (top / top.sum(axis=1, keepdims=True)).mean(axis=0)]


def _rank_swaps(names: Sequence[str], table: Array, parts: Sequence[str], share: Array) -> tuple[RankSwap, ...]:
    swaps = []
    for position in range(len(names) - 1):
        lead = table[position] - table[position + 1]
        candidates = [
            (round(abs(swap_weight - share[part_index]), 12), part_index, swap_weight)
            for part_index in range(len(parts))
            if (swap_weight := _swap_weight(lead, share, part_index))
        ]
        if candidates:
            _, part_index, swap_weight = min(candidates)
            swaps.append(
                RankSwap(names[position], names[position + 1], parts[part_index], float(share[part_index]), swap_weight)
            )
    return tuple(sorted(swaps, key=lambda turn: abs(turn.at - turn.weight)))


def _swap_weight(lead: Array, share: Array, part: int) -> float | None:
    """Weight ``t`` of one component, in 0 to 1, at which the lead vanishes.

    ``t x lead_j + (1 - t) x lead of the others`` is linear in t. ``None`` if it never vanishes, or there is no lead."""
    others_lead = float(lead @ share - lead[part] * share[part]) / float(1.0 - share[part])
    part_lead = float(lead[part])
    if abs(part_lead - others_lead) <= EQUAL_TOLERANCE or float(lead @ share) <= EQUAL_TOLERANCE:
        return None
    swap_weight = others_lead / (others_lead - part_lead)
    return swap_weight if 0.0 < swap_weight <= 1.0 else None
