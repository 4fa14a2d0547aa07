"""Test order for several runs: overall scores before their metrics.

A graphical procedure (F. Bretz, W. Maurer, W. Brannath, M. Posch, 2009, Statistics in Medicine 28, 586). Each of m
overall scores is tested at error / m. If it differs, its level passes to its metrics, where max-t controls it
(:mod:`review.statistics.paired_tests.family`). Metrics of an overall score that does not differ are not tested.

For a run that is equal overall, a false verdict is one about its overall score; for a run that differs, one about a
metric. Either has a chance of at most error / m, so the chance of any false verdict is at most the error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from review.statistics.correction.outcome import Deviation
from review.statistics.paired_tests.family import ERROR_RATE, difference_family


@dataclass(frozen=True, slots=True)
class Multiplicity:
    """Number of overall scores that are tested together, and the ``error`` over them and their metrics."""

    size: int
    error: float = ERROR_RATE

    @property
    def level(self) -> float:
        """Level of the test of each overall score."""
        return self.error / max(1, self.size)

    @property
    def confidence(self) -> float:
        """Confidence of the interval of each overall score."""
        return 1.0 - self.level


@dataclass(frozen=True, slots=True)
class Branch:
    """Difference of an overall score, and differences of its metrics by name.

    ``overall`` is ``None`` if it cannot be tested; then no metric is tested. ``gated`` is false for runs without an
    overall score by design: their metrics are tested instead. The level of the branch is shared over the
    ``looks`` (at least 1) that were planned at its ratings (C. E. Bonferroni, 1936)."""

    overall: Deviation | None
    metrics: Mapping[str, Deviation]
    gated: bool = True
    looks: int = 1


@dataclass(frozen=True, slots=True)
class BranchTests:
    """Adjusted p-values of a branch.

    A p-value is at most the error exactly if the difference is tested and its interval excludes 0. ``metric_p`` is
    empty if the metrics are not tested. The interval of each metric has ``metric_confidence``."""

    overall_p: float | None
    metric_p: Mapping[str, float]
    metric_confidence: float


def gatekeep(
    branches: Sequence[Branch],
    *,
    error: float = ERROR_RATE,
    others: int = 0,
    resamples: int | None = None,
    seed: int = 0,
) -> tuple[Multiplicity, tuple[BranchTests, ...]]:
    """Test the branches in order, each overall score before its metrics.

    ``others`` counts verdicts on overall scores that are tested elsewhere, at the same level."""
    tested = [branch for branch in branches if branch.overall or (branch.metrics and not branch.gated)]
    multiplicity = Multiplicity(len(tested) + others, error)
    return multiplicity, tuple(_branch_tests(branch, multiplicity, resamples, seed) for branch in branches)


def _branch_tests(branch: Branch, multiplicity: Multiplicity, resamples: int | None, seed: int) -> BranchTests:
    level, size = multiplicity.level / branch.looks, max(1, multiplicity.size) * branch.looks
    options = {} if resamples is None else {"resamples": resamples}
    family = difference_family(list(branch.metrics.values()), error=level, seed=seed, **options)
    overall_p = None if branch.overall is None else min(1.0, branch.overall.p_value * size)
    is_tested = not branch.gated if overall_p is None else overall_p <= multiplicity.error
    metric_p = {name: min(1.0, p * size) for name, p in zip(branch.metrics, family.p_values, strict=True)}
    return BranchTests(overall_p, metric_p if is_tested else {}, family.confidence)
