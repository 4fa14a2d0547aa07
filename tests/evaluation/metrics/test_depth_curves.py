"""Each point of a depth curve equals the metric at that k."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.metric_specs import RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.metrics import retrieval
from evaluation.metrics.depth_curves import CURVES, means_by_depth
from evaluation.metrics.retrieval import Ranking, ranking

IDS = [f"c{n}" for n in range(8)]


def test_curves_of_one_ranking_equal_hand_computed_values() -> None:
    # relevant at ranks 2 and 3 of 2 relevant passages
    curves = means_by_depth([Ranking((False, True, True), 2, 3, ("a", "b"))], 4)
    assert curves["precision_at_k"] == pytest.approx((0, 1 / 2, 2 / 3, 2 / 4))
    assert curves["recall_at_k"] == pytest.approx((0, 1 / 2, 1, 1))
    assert curves["hit_at_k"] == (0, 1, 1, 1)
    assert curves["reciprocal_rank"] == (0, 0.5, 0.5, 0.5)
    assert curves["average_precision_at_k"] == pytest.approx((0, 1 / 4, (1 / 2 + 2 / 3) / 2, (1 / 2 + 2 / 3) / 2))
    # ideal 1 + 1 / log2(3) = 1.63093; gained at 2: 0.63093, at 3: 1.13093
    assert curves["ndcg_at_k"] == pytest.approx((0, 0.63093 / 1.63093, 1.13093 / 1.63093, 1.13093 / 1.63093), abs=1e-5)
    with pytest.raises(ValueError):
        means_by_depth([], 3)


CASES = st.lists(
    st.tuples(st.lists(st.sampled_from(IDS), min_size=1, unique=True), st.lists(st.sampled_from(IDS))), min_size=1
)


@given(CASES, st.integers(1, 10))
def test_curve_equals_the_metric_at_each_k(cases: list[tuple[list[str], list[str]]], depth: int) -> None:
    samples = [
        (
            QuestionSpec(id="q", category="c", text="?", ground_truth_chunk_ids=tuple(truth)),
            AnswerSpec("", None, tuple(ids)),
        )
        for truth, ids in cases
    ]
    rankings = [ranking(question, answer, RuleSettings(k=depth)) for question, answer in samples]
    curves = means_by_depth([r for r in rankings if isinstance(r, Ranking)], depth)
    for name in CURVES:
        metric = getattr(retrieval, name)
        for k in range(1, depth + 1):
            values = [metric(question, answer, RuleSettings(k=k)).value for question, answer in samples]
            assert curves[name][k - 1] == pytest.approx(sum(values) / len(values))
