"""Overall scores are tested before the metrics behind them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from review.statistics.correction.outcome import Deviation
from review.statistics.paired_tests.family import difference_family
from review.statistics.paired_tests.gatekeeping import Branch, gatekeep
from review.statistics.paired_tests.paired import paired_difference

FAST = {"resamples": 500}


def make_deviation(seed: int, shift: float = 0.0, size: int = 40) -> Deviation:
    values = {f"q{n}": float(x) for n, x in enumerate(np.random.default_rng(seed).normal(shift, 1.0, size))}
    difference = paired_difference(values, dict.fromkeys(values, 0.0))
    assert difference is not None
    assert difference.deviation is not None
    return difference.deviation


def test_two_runs_are_compared_at_the_whole_error() -> None:
    overall = make_deviation(1, 0.5)
    multiplicity, (tests,) = gatekeep([Branch(overall, {})])

    assert (multiplicity.size, multiplicity.confidence) == (1, 0.95)
    assert tests.overall_p == overall.p_value


def test_several_overall_scores_share_the_error() -> None:
    multiplicity, tests = gatekeep([Branch(make_deviation(seed, 0.5), {}) for seed in range(4)])

    assert (multiplicity.size, multiplicity.level) == (4, 0.0125)
    assert [branch_test.overall_p for branch_test in tests] == [
        pytest.approx(min(1.0, 4 * make_deviation(seed, 0.5).p_value)) for seed in range(4)
    ]


def test_planned_looks_share_the_level_of_a_branch() -> None:
    overall, metrics = make_deviation(1, 0.6), {"far": make_deviation(5, 1.0)}
    multiplicity, (tests,) = gatekeep([Branch(overall, metrics, looks=2)], **FAST)

    assert multiplicity.confidence == 0.95
    assert tests.overall_p == pytest.approx(2 * overall.p_value)
    assert tests.metric_p == {"far": pytest.approx(2 * metrics["far"].p_value)}
    assert tests.metric_confidence == pytest.approx(0.975)


def test_metrics_are_tested_only_where_their_overall_score_differs() -> None:
    metrics = {"far": make_deviation(5, 1.0), "near": make_deviation(6)}
    _, (differs, equal) = gatekeep(
        [Branch(make_deviation(1, 1.0), metrics), Branch(make_deviation(2), metrics)], **FAST
    )

    assert set(differs.metric_p) == {"far", "near"}
    assert differs.metric_p["far"] <= 0.05 < differs.metric_p["near"]
    assert equal.metric_p == {}


def test_level_of_an_overall_score_passes_to_its_metrics() -> None:
    metrics = {str(seed): make_deviation(seed, 0.4) for seed in range(3)}
    _, tests = gatekeep([Branch(make_deviation(1, 1.0), metrics), Branch(make_deviation(2), {})], **FAST)
    family = difference_family(list(metrics.values()), error=0.025, **FAST)

    assert tests[0].metric_confidence == family.confidence
    assert list(tests[0].metric_p.values()) == pytest.approx([min(1.0, 2 * p) for p in family.p_values])


def test_metrics_behind_an_untestable_overall_score_are_not_tested() -> None:
    multiplicity, (tests,) = gatekeep([Branch(None, {"far": make_deviation(5, 1.0)})], **FAST)

    assert (multiplicity.size, tests.overall_p, tests.metric_p) == (0, None, {})


def test_metrics_without_an_overall_score_take_its_place() -> None:
    multiplicity, (tests,) = gatekeep([Branch(None, {"far": make_deviation(5, 1.0)}, gated=False)], **FAST)

    assert (multiplicity.size, tests.metric_confidence) == (1, 0.95)
    assert tests.metric_p == {"far": make_deviation(5, 1.0).p_value}


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 10_000), st.floats(0, 0.8)), min_size=1, max_size=4))
def test_tested_difference_is_significant_exactly_when_its_interval_excludes_0(runs: list[tuple[int, float]]) -> None:
    branches = [
        Branch(make_deviation(seed, shift), {"a": make_deviation(seed + 1, shift), "b": make_deviation(seed + 2)})
        for seed, shift in runs
    ]
    multiplicity, branch_tests = gatekeep(branches, **FAST)
    for branch, tests in zip(branches, branch_tests, strict=True):
        assert branch.overall is not None
        assert tests.overall_p is not None
        excludes_zero = branch.overall.half_width(multiplicity.confidence) <= abs(branch.overall.value)
        assert (tests.overall_p <= 0.05) is excludes_zero
        assert bool(tests.metric_p) is excludes_zero
        for name, p in tests.metric_p.items():
            metric = branch.metrics[name]
            assert (p <= 0.05) is (metric.half_width(tests.metric_confidence) <= abs(metric.value))
