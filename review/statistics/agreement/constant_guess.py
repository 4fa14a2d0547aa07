"""The best constant guess: what a judge reaches who gives every answer the same value without reading it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.core.registry import Scale, ScaleKind
from review.statistics.agreement.pair import PairAgreement, compare


@dataclass(frozen=True, slots=True)
class ConstantGuess:
    """The guess, and how it agrees with the experts."""

    value: float | str
    agreement: PairAgreement


def best_constant_guess(
    expert_means: Sequence[float | str | None],
    scale: Scale,
    weights: Sequence[float] | None = None,
    bins: Sequence[float] = (),
) -> ConstantGuess | None:
    """The level or class with the largest share of exact agreement (the lowest of equally good ones); for reals the
    median, which has the smallest mean absolute error. ``None`` without any expert's value."""
    candidates: list[float | str]
    if scale.kind is ScaleKind.CLASS:
        candidates = list(scale.labels)
    elif scale.levels:
        candidates = [float(level) for level in scale.levels]
    else:
        candidates = _median(expert_means, weights)
    guesses = [
        ConstantGuess(value, compare([value] * len(expert_means), expert_means, scale, weights, bins=bins))
        for value in candidates
    ]
    guesses = [guess for guess in guesses if guess.agreement.n]
    if len(guesses) < 2:
        return guesses[0] if guesses else None
    return max(guesses, key=lambda guess: guess.agreement.statistics["exact"].value or 0.0)


def _median(expert_means: Sequence[float | str | None], weights: Sequence[float] | None) -> list[float | str]:
    """The lower weighted median of the values that exist, if any does."""
    known = sorted(
        (float(value), 1.0 if weights is None else weights[at])
        for at, value in enumerate(expert_means)
        if value is not None
    )
    if not known:
        return []
    passed = np.cumsum([weight for _, weight in known])
    return [known[int(np.searchsorted(passed, passed[-1] / 2.0))][0]]
