"""Several runs on the same questions: their order, the places each may have, and how the order depends on the
weights."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from review.statistics.agreement.statistic import Array, Indices, numbered
from review.statistics.correction.outcome import NO_VARIANCE, Deviation, group_freedom
from review.statistics.paired_tests.family import sure_places

EQUAL = 1e-12
Values = Mapping[Any, float]  # by question


@dataclass(frozen=True, slots=True)
class Ranked:
    """A run in the order of its score over the common questions, best first. ``places``: the first and the last place
    it may have, sure at 95% for all runs together."""

    run: str
    mean: float
    places: tuple[int, int] = (1, 1)


@dataclass(frozen=True, slots=True)
class Ranking:
    """``order``, best first, over the ``questions`` that all runs have in common."""

    order: tuple[Ranked, ...]
    questions: int


@dataclass(frozen=True, slots=True)
class _Part:
    """One part over its common questions: ``values`` (runs, questions) and the questions' positions among all."""

    weight: float
    values: Array
    at: Indices


def ranking(runs: Mapping[str, Values], groups: Mapping[Any, Hashable] | None = None, *, seed: int = 0) -> Ranking:
    """The order of runs (run -> question -> value, more is better) by their mean."""
    parts = {run: {"": values} for run, values in runs.items()}
    return ranking_of_sums(parts, {"": 1.0}, groups, seed=seed)


def ranking_of_sums(
    runs: Mapping[str, Mapping[str, Values]],
    weights: Mapping[str, float],
    groups: Mapping[Any, Hashable] | None = None,
    *,
    seed: int = 0,
) -> Ranking:
    """The order of runs (run -> part -> question -> value) by the sum of weight x mean of the parts, each over the
    questions that every run has it of. Parts without a common question count for nothing; an empty order without any.
    """
    common = {
        name: set.intersection(*(set(of.get(name, ())) for of in runs.values())) if runs else set() for name in weights
    }
    keys = sorted({key for of_part in common.values() for key in of_part}, key=str)
    if not keys:
        return Ranking((), 0)
    parts = _parts(runs, weights, common, keys)
    score = np.sum([part.weight * part.values.mean(axis=1) for part in parts], axis=0)
    names = list(runs)
    places = sure_places(len(runs), _leads(parts, score, keys, groups), seed=seed)
    order = sorted(range(len(runs)), key=lambda at: (-round(float(score[at]), 12), names[at]))
    return Ranking(tuple(Ranked(names[at], float(score[at]), places[at]) for at in order), len(keys))


def _leads(
    parts: Sequence[_Part], score: Array, keys: Sequence[Hashable], groups: Mapping[Any, Hashable] | None
) -> dict[tuple[int, int], Deviation]:
    """The difference of each pair of runs that varies, by group of questions."""
    member = numbered([groups[key] for key in keys] if groups else keys)
    sizes = np.bincount(member)
    deviation = np.zeros((len(score), len(keys)))
    for part in parts:
        size = part.values.shape[1]
        deviation[:, part.at] += part.weight * (part.values - part.values.mean(axis=1, keepdims=True)) / size
    sums = np.array([np.bincount(member, weights=row) for row in deviation])
    freedom, found = group_freedom(sizes), {}
    for one in range(len(score)):
        for other in range(one + 1, len(score)):
            apart = sums[one] - sums[other]
            variance = float(np.square(apart).sum()) * len(sizes) / max(1, len(sizes) - 1)
            if variance > NO_VARIANCE and len(sizes) > 1:
                lead = float(score[one] - score[other])
                found[one, other] = Deviation(lead, float(np.sqrt(variance)), freedom, dict(enumerate(apart.tolist())))
    return found


def _parts(
    runs: Mapping[str, Mapping[str, Values]],
    weights: Mapping[str, float],
    common: Mapping[str, set[Hashable]],
    keys: Sequence[Hashable],
) -> list[_Part]:
    place = {key: at for at, key in enumerate(keys)}
    found = []
    for name, weight in weights.items():
        questions = sorted(common[name], key=place.__getitem__)
        if questions:
            values = np.array([[of[name][key] for key in questions] for of in runs.values()], dtype=np.float64)
            found.append(_Part(weight, values, np.array([place[key] for key in questions], dtype=np.int64)))
    return found


DRAWS = 10_000
SPREAD = 2.0  # weights are varied from a half to twice their value


@dataclass(frozen=True, slots=True)
class Turn:
    """Two neighbours in the order change places where ``part`` has the weight ``at`` instead of ``weight``, the other
    parts keeping their proportions. ``ahead`` and ``behind`` are the order as it is now."""

    ahead: str
    behind: str
    part: str
    weight: float
    at: float


@dataclass(frozen=True, slots=True)
class WeightSensitivity:
    """``holds``: the share of weightings near the profile's under which the whole order stays; ``best``: run -> the
    share of all possible weightings under which it is the best. ``turns``: the nearest change of a single weight that
    swaps neighbours, the smallest change first; neighbours that no single weight can swap have none."""

    holds: float
    best: Mapping[str, float]
    turns: tuple[Turn, ...]


def weight_sensitivity(
    runs: Mapping[str, Mapping[str, float]], weights: Mapping[str, float], *, seed: int = 0, draws: int = DRAWS
) -> WeightSensitivity | None:
    """``runs``: run -> part -> mean on one scale (more is better) over the same questions; ``weights`` are positive.

    The score is ``sum_j w_j x_j`` with weights scaled to sum 1. ``holds`` multiplies each weight by a factor between
    1/2 and 2, uniform on the log scale, seeded. ``best`` draws weights uniformly over all possible ones: the rank
    acceptability of R. Lahdelma, J. Hokkanen, P. Salminen (1998), Eur. J. Oper. Res. 106. Ties are shared.
    ``None`` with fewer than two runs or parts: there is nothing to weigh.

    :raises ValueError: for a weight that is not positive.
    """
    if len(runs) < 2 or len(weights) < 2:
        return None
    if any(weight <= 0 for weight in weights.values()):
        raise ValueError("weights are positive")
    share = np.array(list(weights.values()), dtype=np.float64) / sum(weights.values())
    table = np.array([[of[part] for part in weights] for of in runs.values()], dtype=np.float64)
    names = list(runs)
    order = sorted(range(len(names)), key=lambda at: (-round(float(table[at] @ share), 12), names[at]))
    names, table = [names[at] for at in order], table[order]
    random = np.random.default_rng(seed)
    near = share * np.exp(random.uniform(-np.log(SPREAD), np.log(SPREAD), (draws, len(share))))
    anywhere = random.dirichlet(np.ones(len(share)), draws)
    return WeightSensitivity(
        holds=_holds(near / near.sum(axis=1, keepdims=True) @ table.T),
        best=dict(zip(names, _best(anywhere @ table.T), strict=True)),
        turns=_turns(names, table, list(weights), share),
    )


def _holds(score: Array) -> float:
    lead = score[:, :-1] - score[:, 1:]
    return float(((lead > EQUAL) + 0.5 * (np.abs(lead) <= EQUAL)).prod(axis=1).mean())


def _best(score: Array) -> list[float]:
    top = score >= score.max(axis=1, keepdims=True) - EQUAL
    return [float(share) for share in (top / top.sum(axis=1, keepdims=True)).mean(axis=0)]


def _turns(names: Sequence[str], table: Array, parts: Sequence[str], share: Array) -> tuple[Turn, ...]:
    found = []
    for at in range(len(names) - 1):
        lead = table[at] - table[at + 1]
        near = [
            (round(abs(there - share[j]), 12), j, there) for j in range(len(parts)) if (there := _zero(lead, share, j))
        ]
        if near:
            _, j, there = min(near)
            found.append(Turn(names[at], names[at + 1], parts[j], float(share[j]), there))
    return tuple(sorted(found, key=lambda turn: abs(turn.at - turn.weight)))


def _zero(lead: Array, share: Array, part: int) -> float | None:
    """The weight ``t`` of one part, in 0 to 1, at which the lead is gone: ``t x lead_j + (1 - t) x lead of the others``
    is linear in t. ``None`` where that never happens, or where nothing leads."""
    rest = float(lead @ share - lead[part] * share[part]) / float(1.0 - share[part])
    own = float(lead[part])
    if abs(own - rest) <= EQUAL or float(lead @ share) <= EQUAL:
        return None
    there = rest / (rest - own)
    return there if 0.0 < there <= 1.0 else None
