"""Several runs on the same questions: their order, and how sure it is."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from review.agreement.bootstrap import CHUNK_CELLS, Resampling, resampler


@dataclass(frozen=True, slots=True)
class Ranked:
    """A run in the order of its mean over the common questions, best first. ``best``: share of resamples in which it
    is the best; ``ahead``: in which it is above the next in the order (``None`` for the last). Equal means count
    half."""

    run: str
    mean: float
    best: float
    ahead: float | None


def ranking(
    runs: Mapping[str, Mapping[Hashable, float]],
    groups: Mapping[Hashable, Hashable] | None = None,
    *,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[list[Ranked], int]:
    """The order of runs (run -> question -> value, more is better) over the questions all of them have, and how many
    these are; bootstrap over groups of questions. An empty order without a common question."""
    common = sorted(set.intersection(*(set(values) for values in runs.values())), key=str) if runs else []
    if not common:
        return [], 0
    names = sorted(runs, key=lambda run: (-sum(runs[run][key] for key in common), run))
    table = np.array([[runs[run][key] for key in common] for run in names], dtype=np.float64)
    plan = Resampling(resamples, seed, [groups[key] for key in common] if groups else None)
    drawn = resampler(len(common), plan, np.arange(len(common), dtype=np.int64))
    chunk = max(1, CHUNK_CELLS // len(common))
    batches = [counts[:, drawn.group] for counts in drawn.multiplicities(resamples, seed, chunk)]
    means = np.concatenate([weight @ table.T / weight.sum(axis=1, keepdims=True) for weight in batches])
    top = means >= means.max(axis=1, keepdims=True) - 1e-12
    best = (top / top.sum(axis=1, keepdims=True)).mean(axis=0)
    lead = means[:, :-1] - means[:, 1:]
    ahead = ((lead > 1e-12) + 0.5 * (np.abs(lead) <= 1e-12)).mean(axis=0)
    order = [
        Ranked(run, float(table[at].mean()), float(best[at]), float(ahead[at]) if at < len(ahead) else None)
        for at, run in enumerate(names)
    ]
    return order, len(common)
