"""Error held over a family of differences, and certain ranks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from review.statistics.correction.outcome import Deviation
from review.statistics.paired_tests.family import difference_family, rank_bounds
from review.statistics.paired_tests.paired import paired_difference
from review.statistics.paired_tests.ranking import rank_runs
from tests.examples import max_examples


def make_deviation(values: dict[str, float]) -> Deviation:
    difference = paired_difference(values, dict.fromkeys(values, 0.0))
    assert difference is not None
    assert difference.deviation is not None
    return difference.deviation


def noise(seed: int, prefix: str = "q", shift: float = 0.0, size: int = 40) -> dict[str, float]:
    return {f"{prefix}{n}": float(x) for n, x in enumerate(np.random.default_rng(seed).normal(shift, 1.0, size))}


def test_single_difference_keeps_the_whole_error() -> None:
    # 1, 2, 3, 4: mean 2.5, variance 5/3, error sqrt(5/12); t = 3.873, p = 0.0305 with 3 degrees of freedom
    single = make_deviation({"a": 1, "b": 2, "c": 3, "d": 4})
    assert (single.t, single.p_value) == (pytest.approx(15**0.5), pytest.approx(0.0305, abs=5e-5))
    family = difference_family([single])
    assert (family.size, family.level, family.p_values) == (1, 0.05, (single.p_value,))


def test_correlated_differences_count_as_fewer() -> None:
    identical = difference_family([make_deviation(noise(1))] * 5)
    assert identical.level == pytest.approx(0.05, abs=0.006)  # five times the same is one difference
    independent = difference_family([make_deviation(noise(seed, prefix=f"{seed}-")) for seed in range(5)])
    assert independent.level == pytest.approx(1 - 0.95**0.2, abs=0.0015)  # five independent ones: 0.0102 for each
    correlated = difference_family(
        [make_deviation({k: v + noise(9)[k] for k, v in noise(seed).items()}) for seed in range(5)]
    )
    assert independent.level < correlated.level < identical.level


@settings(max_examples=max_examples(30), deadline=None)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=6, unique=True), st.floats(0, 0.8))
def test_difference_is_significant_exactly_when_its_interval_excludes_0(seeds: list[int], shift: float) -> None:
    deviations = [make_deviation(noise(seed, shift=shift)) for seed in seeds]
    family = difference_family(deviations, resamples=1000)
    for member, p in zip(deviations, family.p_values, strict=True):
        assert (p <= 0.05) == (member.half_width(family.confidence) <= abs(member.value))
        assert member.p_value <= p <= min(1.0, member.p_value * len(deviations)) + 1e-12


def test_rank_bounds_follow_from_significant_leads() -> None:
    far_values = {f"q{n}": 10.0 + (n % 3) for n in range(30)}
    near_values = {key: value - 5.0 + 0.1 * (n % 2) for n, (key, value) in enumerate(far_values.items())}
    equal_values = {key: value + (0.1 if n % 2 else -0.1) for n, (key, value) in enumerate(near_values.items())}
    places = {
        ranked.run: ranked.places
        for ranked in rank_runs({"far": far_values, "near": near_values, "equal": equal_values}).order
    }
    assert places == {"far": (1, 1), "near": (2, 3), "equal": (2, 3)}
    assert rank_bounds(3, {}) == [(1, 3)] * 3


def test_changing_the_confidence_and_back_restores_the_interval() -> None:
    difference = paired_difference(noise(3), noise(4), limit=10.0)
    assert difference is not None
    wider = difference.with_confidence(0.99)
    assert wider.low is not None
    assert difference.low is not None
    assert wider.low < difference.low
    assert wider.with_confidence(0.95) == difference
