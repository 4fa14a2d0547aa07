"""Several runs on the same questions: their order, and how sure it is."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from review.statistics.agreement.bootstrap import CHUNK_CELLS, Resampler, Resampling, resampler
from review.statistics.agreement.statistic import Array, Indices

EQUAL = 1e-12
Values = Mapping[Any, float]  # by question


@dataclass(frozen=True, slots=True)
class Ranked:
    """A run in the order of its score over the common questions, best first. ``best``: share of resamples in which it
    is the best; ``ahead``: in which it is above the next in the order (``None`` for the last). Equal scores count
    half."""

    run: str
    mean: float
    best: float
    ahead: float | None


@dataclass(frozen=True, slots=True)
class Ranking:
    """``order``, best first; ``questions`` all runs have in common; ``holds``: the share of resamples in which the
    whole order is the same (a tie of neighbours counts half); ``None`` where it cannot be said."""

    order: tuple[Ranked, ...]
    questions: int
    holds: float | None


@dataclass(frozen=True, slots=True)
class _Part:
    """One part over its common questions: ``values`` (runs, questions) and the questions' positions among all."""

    weight: float
    values: Array
    at: Indices


def ranking(
    runs: Mapping[str, Values],
    groups: Mapping[Any, Hashable] | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Ranking:
    """The order of runs (run -> question -> value, more is better) by their mean."""
    parts = {run: {"": values} for run, values in runs.items()}
    return ranking_of_sums(parts, {"": 1.0}, groups, resamples=resamples, seed=seed)


def ranking_of_sums(
    runs: Mapping[str, Mapping[str, Values]],
    weights: Mapping[str, float],
    groups: Mapping[Any, Hashable] | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> Ranking:
    """The order of runs (run -> part -> question -> value) by the sum of weight x mean of the parts, each over the
    questions that every run has it of; bootstrap over groups of questions. Parts without a common question count for
    nothing; an empty order without any. Resamples that hold no question of some part are left out.
    """
    common = {
        name: set.intersection(*(set(of.get(name, ())) for of in runs.values())) if runs else set() for name in weights
    }
    keys = sorted({key for of_part in common.values() for key in of_part}, key=str)
    if not keys:
        return Ranking((), 0, None)
    parts = _parts(runs, weights, common, keys)
    score = _scores(parts, np.ones((1, len(keys))))[0]
    order = sorted(range(len(runs)), key=lambda at: (-round(float(score[at]), 12), list(runs)[at]))
    plan = Resampling(resamples, seed, [groups[key] for key in keys] if groups else None)
    drawn = resampler(len(keys), plan, np.arange(len(keys), dtype=np.int64))
    resampled = _resampled(parts, drawn, plan, len(keys))[:, order]
    return _ranked([list(runs)[at] for at in order], score[order], resampled, len(keys))


def _ranked(names: Sequence[str], score: Array, resampled: Array, questions: int) -> Ranking:
    if not len(resampled):
        return Ranking(tuple(Ranked(run, float(score[at]), 0.0, None) for at, run in enumerate(names)), questions, None)
    top = resampled >= resampled.max(axis=1, keepdims=True) - EQUAL
    best = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    lead = resampled[:, :-1] - resampled[:, 1:]
    above = (lead > EQUAL) + 0.5 * (np.abs(lead) <= EQUAL)
    ahead = above.mean(axis=0)
    order = tuple(
        Ranked(run, float(score[at]), float(best[at]), float(ahead[at]) if at < len(ahead) else None)
        for at, run in enumerate(names)
    )
    return Ranking(order, questions, float(above.prod(axis=1).mean()) if len(names) > 1 else None)


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


def _resampled(parts: Sequence[_Part], drawn: Resampler, plan: Resampling, questions: int) -> Array:
    chunk = max(1, CHUNK_CELLS // questions)
    batches = [
        _scores(parts, counts[:, drawn.group]) for counts in drawn.multiplicities(plan.resamples, plan.seed, chunk)
    ]
    return np.concatenate(batches)


def _scores(parts: Sequence[_Part], weight: Array) -> Array:
    """The sums of every weighting of the questions, shape (weightings, runs), without those that miss a part."""
    total = np.zeros((len(weight), len(parts[0].values)))
    usable = np.ones(len(weight), dtype=np.bool_)
    for part in parts:
        rows = weight[:, part.at]
        size = rows.sum(axis=1)
        usable &= size > 0
        total += part.weight * (rows @ part.values.T) / np.where(size > 0, size, 1.0)[:, None]
    return np.asarray(total[usable])
