"""Variance components of ratings: by hand, by simulation, and components the design cannot separate."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from review.statistics.agreement.variance import DesignGap, Observation, VarianceSource, variance_split
from review.statistics.precision import SpendOption, spending_advice

ANSWERS, REVIEWERS, TASTE, REST = (
    VarianceSource.ANSWERS,
    VarianceSource.REVIEWERS,
    VarianceSource.INTERACTION,
    VarianceSource.RESIDUAL,
)


def table(rows: list[list[float | None]]) -> list[Observation]:
    """Answers in rows, reviewers in columns; ``None`` is a gap."""
    return [
        Observation(a, f"r{r}", value) for a, row in enumerate(rows) for r, value in enumerate(row) if value is not None
    ]


def test_two_way_analysis_of_variance_by_hand() -> None:
    # 3 answers, 2 reviewers:  1 2 / 3 4 / 5 9. Means 1.5, 3.5, 7; 3, 5; all 4.
    # answers: 2 x (6.25 + .25 + 9) = 31, / 2 df = 15.5; reviewers: 3 x (1 + 1) = 6, / 1; all about the mean 40, so that
    # 40 - 31 - 6 = 3 are left, / 2 df = 1.5. Components: (15.5 - 1.5) / 2 = 7; (6 - 1.5) / 3 = 1.5; 1.5
    split = variance_split(table([[1, 2], [3, 4], [5, 9]]))

    assert split.variances == pytest.approx({ANSWERS: 7.0, REVIEWERS: 1.5, TASTE: 1.5})
    assert split.missing == {REST: DesignGap.NEEDS_HIDDEN_REPEATS}
    assert (split.design.answers, split.design.reviewers, split.design.ratings) == (3, 2, 2.0)


def test_gaps_by_hand() -> None:
    # 1 2 / 3 - : y1. = 3, y2. = 3, y.1 = 4, y.2 = 2, all 6 of 3, sum of squares 14.
    # T_A = 9/2 + 9 = 13.5, T_R = 16/2 + 4 = 12, T_0 = 14, T_m = 12. Expected (answers, reviewers, rest, N mean^2):
    #   T_A: 3, 1/2 + 1/2 + 1 = 2, 2, 3;  T_R: 1/2 + 1/2 + 1 = 2, 3, 2, 3;  T_0: 3, 3, 3, 3;  T_m: 5/3, 5/3, 1, 3
    # T_0 - T_A = .5 = R + e; T_0 - T_R = 2 = A + e; T_A - T_m = 1.5 = 4/3 A + 1/3 R + e
    # e = x: A = 2 - x, R = .5 - x: 4/3 (2 - x) + 1/3 (.5 - x) + x = 1.5 -> 17/6 - 2/3 x = 1.5 -> x = 2: A = 0, R = -1.5
    split = variance_split(table([[1, 2], [3, None]]))

    assert split.variances == pytest.approx({ANSWERS: 0.0, REVIEWERS: 0.0, TASTE: 2.0})


def test_hidden_repeats_separate_interaction_from_residual() -> None:
    # the second time each value moves by +-1 about its mean: variance 2 within each of 4 cells, 2 df... each cell of
    # values m - 1, m + 1 has a sum of squares of 2 with 1 df: rest = 8 / 4 = 2
    cells = [(0, "x", 3.0), (0, "y", 5.0), (1, "x", 7.0), (1, "y", 9.0)]
    split = variance_split([Observation(a, r, m + d) for a, r, m in cells for d in (-1.0, 1.0)])

    # cell means 3 5 / 7 9 are additive: interaction mean square 0, so that taste is (0 - 2) / 2, shown as 0
    # answers: 4 x (4 + 4) = 32 / 1 df; expected rest + 2 taste + 4 answers: with taste -1 it is (32 - 2 + 2) / 4 = 8
    assert split.variances[REST] == pytest.approx(2.0)
    assert split.variances[TASTE] == 0.0
    assert split.variances[ANSWERS] == pytest.approx(8.0)
    assert split.missing == {}


def test_inseparable_components_state_what_they_need() -> None:
    assert variance_split(table([[1, None], [None, 3]])).missing == {
        ANSWERS: DesignGap.NEEDS_OVERLAP,
        REVIEWERS: DesignGap.NEEDS_OVERLAP,
        TASTE: DesignGap.NEEDS_OVERLAP,
        REST: DesignGap.NEEDS_HIDDEN_REPEATS,
    }
    single_reviewer = variance_split([Observation(a, "r", float(a + d)) for a in range(3) for d in (0, 1)])
    assert single_reviewer.missing == {REVIEWERS: DesignGap.NEEDS_TWO_REVIEWERS, TASTE: DesignGap.NEEDS_OVERLAP}
    assert set(single_reviewer.variances) == {ANSWERS, REST}
    assert variance_split([]).missing[ANSWERS] is DesignGap.NEEDS_RATINGS


def test_judge_noise_is_the_mean_square_within_answers() -> None:
    # repeats 1, 3 (sum of squares 2, 1 df) and 4, 4, 7 (6, 2 df): 8 / 3
    split = variance_split([], {"a": [1, 3], "b": [4, 4, 7], "c": [5]})

    assert split.variances == {VarianceSource.NOISE: pytest.approx(8 / 3)}
    assert split.missing[VarianceSource.JUDGE] is DesignGap.NEEDS_RATINGS
    assert variance_split([], {"a": [1.0], "b": [2.0]}).missing[VarianceSource.NOISE] is DesignGap.NEEDS_JUDGE_REPEATS


def test_judge_error_is_unexplained_by_experts_and_noise() -> None:
    # experts agree with themselves but for a constant, so that only the judge differs: gaps 1, -1, 0 have variance 1
    split = variance_split(table([[1, 2], [3, 4], [5, 6]]), {0: [2.5], 1: [2.5], 2: [5.5]})

    assert split.variances[TASTE] == pytest.approx(0.0)
    assert split.variances[VarianceSource.JUDGE] == pytest.approx(1.0)


def test_simulation_recovers_its_variance_components() -> None:
    random = np.random.default_rng(11)
    sums: dict[VarianceSource, float] = {}
    rounds = 40
    for _ in range(rounds):
        answer, reviewer = random.normal(0, 1.0, 150), random.normal(0, 0.5, 8)
        ratings, judge = [], {}
        for a in range(150):
            for r in random.choice(8, 3, replace=False):
                taste = random.normal(0, 0.6)
                times = 2 if random.random() < 0.3 else 1
                ratings += [
                    Observation(a, str(r), 3 + answer[a] + reviewer[r] + taste + random.normal(0, 0.4))
                    for _ in range(times)
                ]
            noise = random.normal(0, 0.7)
            judge[a] = list(3.5 + answer[a] + noise + random.normal(0, 0.3, 3))
        for source, variance in variance_split(ratings, judge).variances.items():
            sums[source] = sums.get(source, 0.0) + variance / rounds
    expected = {
        ANSWERS: 1.0,
        REVIEWERS: 0.25,
        TASTE: 0.36,
        REST: 0.16,
        VarianceSource.JUDGE: 0.49,
        VarianceSource.NOISE: 0.09,
    }
    assert sums == pytest.approx(expected, rel=0.15)


@given(
    values=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 3), st.floats(1, 5)), max_size=40),
    judge=st.dictionaries(st.integers(0, 6), st.lists(st.floats(1, 5), min_size=1, max_size=3), max_size=7),
)
def test_variances_are_never_negative_and_shares_sum_to_one(
    values: list[tuple[int, int, float]], judge: dict[int, list[float]]
) -> None:
    split = variance_split([Observation(a, str(r), v) for a, r, v in values], judge)
    assert all(0.0 <= variance < 100.0 for variance in split.variances.values())
    assert not set(split.variances) & set(split.missing)
    advice = spending_advice(split)
    assert (sum(advice.shares.values()) == pytest.approx(1.0)) if advice.shares else advice.first is None


def test_advice_names_the_largest_variance_reduction() -> None:
    # 3 answers, 2 reviewers: answers 7 / 3, reviewers 1.5 / 2, taste 1.5 / 6
    advice = spending_advice(variance_split(table([[1, 2], [3, 4], [5, 9]])))

    total = 7 / 3 + 0.75 + 0.25
    assert advice.first is SpendOption.QUESTIONS
    assert advice.shares[SpendOption.REVIEWERS] == pytest.approx(0.75 / total)
    assert advice.shares[SpendOption.RATINGS] == pytest.approx(0.25 / total)
    assert spending_advice(variance_split([])).first is None
