"""The error held over several differences, and the places that are sure in an order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from review.statistics.correction.outcome import Deviation
from review.statistics.paired_tests.family import difference_family, rank_bounds
from review.statistics.paired_tests.paired import paired_difference
from review.statistics.paired_tests.ranking import rank_runs
from tests.examples import examples


def deviation(values: dict[str, float]) -> Deviation:
    found = paired_difference(values, dict.fromkeys(values, 0.0))
    assert found is not None
    assert found.deviation is not None
    return found.deviation


def noise(seed: int, prefix: str = "q", shift: float = 0.0, size: int = 40) -> dict[str, float]:
    return {f"{prefix}{n}": float(x) for n, x in enumerate(np.random.default_rng(seed).normal(shift, 1.0, size))}


def test_one_difference_alone_keeps_the_whole_error() -> None:
    # 1, 2, 3, 4: mean 2.5, variance 5/3, error sqrt(5/12); t = 3.873, p = 0.0305 with 3 degrees of freedom
    one = deviation({"a": 1, "b": 2, "c": 3, "d": 4})
    assert (one.t, one.p_value) == (pytest.approx(15**0.5), pytest.approx(0.0305, abs=5e-5))
    family = difference_family([one])
    assert (family.size, family.level, family.p_values) == (1, 0.05, (one.p_value,))


def test_differences_that_hang_together_count_as_fewer() -> None:
    same = difference_family([deviation(noise(1))] * 5)
    assert same.level == pytest.approx(0.05, abs=0.006)  # five times the same is one difference
    apart = difference_family([deviation(noise(seed, prefix=f"{seed}-")) for seed in range(5)])
    assert apart.level == pytest.approx(1 - 0.95**0.2, abs=0.0015)  # five independent ones: 0.0102 for each
    half = difference_family([deviation({k: v + noise(9)[k] for k, v in noise(seed).items()}) for seed in range(5)])
    assert apart.level < half.level < same.level


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=6, unique=True), st.floats(0, 0.8))
def test_a_value_is_sure_exactly_where_its_interval_leaves_out_0(seeds: list[int], shift: float) -> None:
    found = [deviation(noise(seed, shift=shift)) for seed in seeds]
    family = difference_family(found, resamples=1000)
    for one, p in zip(found, family.p_values, strict=True):
        assert (p <= 0.05) == (one.half_width(family.confidence) <= abs(one.value))
        assert one.p_value <= p <= min(1.0, one.p_value * len(found)) + 1e-12


def test_places_are_those_that_no_sure_lead_forbids() -> None:
    far = {f"q{n}": 10.0 + (n % 3) for n in range(30)}
    near = {key: value - 5.0 + 0.1 * (n % 2) for n, (key, value) in enumerate(far.items())}
    equal = {key: value + (0.1 if n % 2 else -0.1) for n, (key, value) in enumerate(near.items())}
    places = {one.run: one.places for one in rank_runs({"far": far, "near": near, "equal": equal}).order}
    assert places == {"far": (1, 1), "near": (2, 3), "equal": (2, 3)}
    assert rank_bounds(3, {}) == [(1, 3)] * 3


def test_an_interval_at_another_confidence_and_back_is_the_same() -> None:
    found = paired_difference(noise(3), noise(4), limit=10.0)
    assert found is not None
    wider = found.with_confidence(0.99)
    assert wider.low is not None
    assert found.low is not None
    assert wider.low < found.low
    assert wider.with_confidence(0.95) == found
