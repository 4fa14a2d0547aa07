"""Corrected means as ppi-python has them, after the conversion of the slope: PPI++'s lambda, with the answers nobody
rated as the unlabelled set, is b (N - k) / N."""

from __future__ import annotations

import numpy as np
import pytest

from review.statistics.correction import strata_estimates as correction_parts
from review.statistics.correction.corrected import corrected_component
from review.statistics.correction.frame import Component, ReviewState
from review.statistics.correction.outcome import Estimate, Method, Target
from tests.review.statistics.correction.frames import FrameAnswer, frame_of

SEEDS = range(8)
SIZE = 2000


def frame(seed: int, sizes: tuple[int, ...], labels: tuple[int, ...]) -> tuple[list[FrameAnswer], np.ndarray]:
    """Answers in strata of the given sizes, some rated; and the columns stratum, judge, expert, rated."""
    random = np.random.default_rng(seed)
    answers, columns = [], []
    for stratum, (size, rated) in enumerate(zip(sizes, labels, strict=True)):
        expert = np.clip(random.normal(3 + stratum, 1.0, size), 1, 5)
        judge = np.clip(expert + 0.4 + random.normal(0, 0.6, size), 1, 5)
        taken = np.isin(np.arange(size), random.permutation(size)[:rated])
        for at in range(size):
            answers.append(
                FrameAnswer(
                    len(answers),
                    float(judge[at]),
                    float(expert[at]) if taken[at] else None,
                    ReviewState.RATED if taken[at] else ReviewState.NOT_SAMPLED,
                    rated / size,
                    str(stratum),
                    len(answers),
                )
            )
            columns.append((stratum, judge[at], expert[at], taken[at]))
    return answers, np.array(columns, dtype=float)


def estimate(answers: list[FrameAnswer], target: Target = Target.THIS_RUN) -> Estimate:
    found = corrected_component(Component("m", frame_of(answers), 1.0, 5.0), target)
    assert isinstance(found, Estimate)
    assert found.method is Method.REGRESSION
    return found


def reference(rows: np.ndarray, slope: float) -> float:
    """ppi-python's mean of one stratum with our slope converted."""
    ppi = pytest.importorskip("ppi_py")
    labelled, rest = rows[rows[:, 3] == 1], rows[rows[:, 3] == 0]
    lam = slope * len(rest) / len(rows)
    return float(np.ravel(ppi.ppi_mean_pointestimate(labelled[:, 2], labelled[:, 1], rest[:, 1], lam=lam))[0])


@pytest.mark.parametrize("labels", [40, 200, 1000])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_mean_of_a_uniform_draw(seed: int, labels: int) -> None:
    answers, rows = frame(seed, (SIZE,), (labels,))
    found = estimate(answers)
    assert found.slope is not None
    assert found.value == pytest.approx(reference(rows, found.slope), abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_mean_of_a_stratified_draw_is_the_weighted_sum_of_its_strata(seed: int) -> None:
    answers, rows = frame(seed, (1200, 800), (15, 90))  # below 20 labels in one of them both share one slope
    found = estimate(answers)
    assert found.slope is not None
    parts = [rows[rows[:, 0] == stratum] for stratum in (0, 1)]
    whole = sum(len(part) / len(rows) * reference(part, found.slope) for part in parts)
    assert found.value == pytest.approx(whole, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_interval_of_questions_like_these_is_as_wide(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both tend to the same; ours has t instead of the normal distribution and another divisor, and the allowance for
    answers unlike all that were rated, which ppi-python does not know, is left out here."""
    monkeypatch.setattr(correction_parts, "PSEUDO_LABELS", 0.0)
    ppi = pytest.importorskip("ppi_py")
    answers, rows = frame(seed, (SIZE,), (200,))
    found = estimate(answers, Target.QUESTIONS_LIKE_THESE)
    labelled, rest = rows[rows[:, 3] == 1], rows[rows[:, 3] == 0]
    assert found.slope is not None
    lam = found.slope * len(rest) / len(rows)
    low, high = (
        float(np.ravel(end)[0])
        for end in ppi.ppi_mean_ci(labelled[:, 2], labelled[:, 1], rest[:, 1], alpha=0.05, lam=lam)
    )
    assert found.high - found.low == pytest.approx(high - low, rel=0.04)
