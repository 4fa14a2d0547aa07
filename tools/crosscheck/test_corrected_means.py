"""Corrected means against ppi-python, after conversion of the slope: PPI++'s lambda, with the unrated answers as the
unlabelled set, is b (N - k) / N."""

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


def simulate_frame(seed: int, sizes: tuple[int, ...], labels: tuple[int, ...]) -> tuple[list[FrameAnswer], np.ndarray]:
    """Answers in strata of the given sizes, some rated; and the columns stratum, judge, expert, rated."""
    random = np.random.default_rng(seed)
    answers, columns = [], []
    for stratum, (size, label_count) in enumerate(zip(sizes, labels, strict=True)):
        expert = np.clip(random.normal(3 + stratum, 1.0, size), 1, 5)
        judge = np.clip(expert + 0.4 + random.normal(0, 0.6, size), 1, 5)
        is_sampled = np.isin(np.arange(size), random.permutation(size)[:label_count])
        for index in range(size):
            answers.append(
                FrameAnswer(
                    len(answers),
                    float(judge[index]),
                    float(expert[index]) if is_sampled[index] else None,
                    ReviewState.RATED if is_sampled[index] else ReviewState.NOT_SAMPLED,
                    label_count / size,
                    str(stratum),
                    len(answers),
                )
            )
            columns.append((stratum, judge[index], expert[index], is_sampled[index]))
    return answers, np.array(columns, dtype=float)


def corrected_estimate(answers: list[FrameAnswer], target: Target = Target.THIS_RUN) -> Estimate:
    outcome = corrected_component(Component("m", frame_of(answers), 1.0, 5.0), target)
    assert isinstance(outcome, Estimate)
    assert outcome.method is Method.REGRESSION
    return outcome


def ppi_mean(rows: np.ndarray, slope: float) -> float:
    """ppi-python's mean of one stratum with our slope converted."""
    ppi = pytest.importorskip("ppi_py")
    labelled, unlabelled = rows[rows[:, 3] == 1], rows[rows[:, 3] == 0]
    lam = slope * len(unlabelled) / len(rows)
    return float(np.ravel(ppi.ppi_mean_pointestimate(labelled[:, 2], labelled[:, 1], unlabelled[:, 1], lam=lam))[0])


@pytest.mark.parametrize("labels", [40, 200, 1000])
@pytest.mark.parametrize("seed", SEEDS)
def test_corrected_mean_of_uniform_draw_matches_ppi(seed: int, labels: int) -> None:
    answers, rows = simulate_frame(seed, (SIZE,), (labels,))
    outcome = corrected_estimate(answers)
    assert outcome.slope is not None
    assert outcome.value == pytest.approx(ppi_mean(rows, outcome.slope), abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_stratified_mean_is_weighted_sum_of_ppi_strata_means(seed: int) -> None:
    answers, rows = simulate_frame(seed, (1200, 800), (15, 90))  # below 20 labels in one of them both share one slope
    outcome = corrected_estimate(answers)
    assert outcome.slope is not None
    rows_by_stratum = [rows[rows[:, 0] == stratum] for stratum in (0, 1)]
    weighted_mean = sum(
        len(stratum_rows) / len(rows) * ppi_mean(stratum_rows, outcome.slope) for stratum_rows in rows_by_stratum
    )
    assert outcome.value == pytest.approx(weighted_mean, abs=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_interval_width_for_questions_like_these_matches_ppi(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both intervals converge. Ours uses t instead of the normal distribution and another divisor; the allowance for
    answers unlike all rated ones, which ppi-python lacks, is switched off."""
    monkeypatch.setattr(correction_parts, "PSEUDO_LABELS", 0.0)
    ppi = pytest.importorskip("ppi_py")
    answers, rows = simulate_frame(seed, (SIZE,), (200,))
    outcome = corrected_estimate(answers, Target.QUESTIONS_LIKE_THESE)
    labelled, unlabelled = rows[rows[:, 3] == 1], rows[rows[:, 3] == 0]
    assert outcome.slope is not None
    lam = outcome.slope * len(unlabelled) / len(rows)
    low, high = (
        float(np.ravel(end)[0])
        for end in ppi.ppi_mean_ci(labelled[:, 2], labelled[:, 1], unlabelled[:, 1], alpha=0.05, lam=lam)
    )
    assert outcome.high - outcome.low == pytest.approx(high - low, rel=0.04)
