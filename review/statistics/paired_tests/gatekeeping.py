"""Overall scores before their metrics: the order in which the differences of several runs are tested.

A graphical procedure (F. Bretz, W. Maurer, W. Brannath, M. Posch, 2009, Statistics in Medicine 28, 586): each of m
overall scores is tested at error / m. Where it differs, its level is handed to the metrics behind it, over which max-t
holds it (:mod:`review.statistics.paired_tests.family`). Metrics of an overall score that does not differ are not
tested.

Of a run that is equal overall a false verdict is one about its overall score, of a run that differs one about a metric.
Either has at most error / m, so that any false verdict at all has at most the error, whichever runs differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from review.statistics.correction.outcome import Deviation
from review.statistics.paired_tests.family import ERROR, family_of


@dataclass(frozen=True, slots=True)
class Multiplicity:
    """``error`` is held over ``size`` overall scores and the metrics behind them."""

    size: int
    error: float = ERROR

    @property
    def level(self) -> float:
        """The level at which each overall score is tested."""
        return self.error / max(1, self.size)

    @property
    def confidence(self) -> float:
        """The confidence of the interval of each overall score."""
        return 1.0 - self.level


@dataclass(frozen=True, slots=True)
class Branch:
    """The difference of an overall score and of the metrics behind it, by name; ``overall`` is ``None`` where it cannot
    be tested, and then no metric is. ``gated`` is false for runs without an overall score by design: their metrics
    take its place."""

    overall: Deviation | None
    metrics: Mapping[str, Deviation]
    gated: bool = True


@dataclass(frozen=True, slots=True)
class BranchTests:
    """Adjusted p-values: one is at most the error exactly where the difference is tested and its interval leaves out 0.
    ``metric_p`` is empty where the metrics are not tested. The interval of each metric has ``metric_confidence``."""

    overall_p: float | None
    metric_p: Mapping[str, float]
    metric_confidence: float


def gatekeep(
    branches: Sequence[Branch], *, error: float = ERROR, resamples: int | None = None, seed: int = 0
) -> tuple[Multiplicity, tuple[BranchTests, ...]]:
    """Test the branches in order, each overall score before the metrics behind it."""
    first = [branch for branch in branches if branch.overall or (branch.metrics and not branch.gated)]
    multiplicity = Multiplicity(len(first), error)
    return multiplicity, tuple(_tests(branch, multiplicity, resamples, seed) for branch in branches)


def _tests(branch: Branch, multiplicity: Multiplicity, resamples: int | None, seed: int) -> BranchTests:
    level, size = multiplicity.level, max(1, multiplicity.size)
    more = {} if resamples is None else {"resamples": resamples}
    family = family_of(list(branch.metrics.values()), error=level, seed=seed, **more)
    overall_p = None if branch.overall is None else min(1.0, branch.overall.p_value * size)
    tested = not branch.gated if overall_p is None else overall_p <= multiplicity.error
    metric_p = {name: min(1.0, p * size) for name, p in zip(branch.metrics, family.p_values, strict=True)}
    return BranchTests(overall_p, metric_p if tested else {}, family.confidence)
