"""Retrieval metrics equal trec_eval on random rankings; repeated ids never yield more than 1."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.metric_specs import RuleMetric, RuleSettings
from evaluation.core.samples import AnswerSpec, QuestionSpec
from evaluation.metrics.retrieval import (
    average_precision_at_k,
    hit_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
)

pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec-eval-terrier is not installed")

METRICS: dict[str, RuleMetric] = {
    "P": precision_at_k,
    "recall": recall_at_k,
    "success": hit_at_k,
    "recip_rank": reciprocal_rank,
    "ndcg_cut": ndcg_at_k,
    "map_cut": average_precision_at_k,
}
IDS = [f"c{n}" for n in range(30)]
RANKINGS = st.lists(st.sampled_from(IDS), min_size=1, max_size=20, unique=True)
RELEVANT = st.lists(st.sampled_from(IDS), min_size=1, max_size=10, unique=True)


def _value(metric: RuleMetric, ranking: list[str], relevant: list[str], k: int) -> float:
    question = QuestionSpec(id="q", category="c", text="?", ground_truth_chunk_ids=tuple(relevant))
    value = metric(question, AnswerSpec("", retrieved_ids=tuple(ranking)), RuleSettings(k=k)).value
    assert value is not None
    return value


@given(RANKINGS, RELEVANT, st.integers(1, 20))
def test_every_metric_equals_trec_eval(ranking: list[str], relevant: list[str], k: int) -> None:
    measures = {f"{name}.{k}" for name in METRICS if name != "recip_rank"} | {"recip_rank"}
    evaluator = pytrec_eval.RelevanceEvaluator({"q": dict.fromkeys(relevant, 1)}, measures)
    # trec_eval orders by score; recip_rank knows no cut, so the ranking is cut for it
    run = {chunk_id: float(-place) for place, chunk_id in enumerate(ranking[:k])}
    expected = evaluator.evaluate({"q": run})["q"]
    for name, metric in METRICS.items():
        key = name if name == "recip_rank" else f"{name}_{k}"
        assert _value(metric, ranking, relevant, k) == pytest.approx(expected[key], abs=1e-9), name


@given(
    st.lists(st.sampled_from(IDS[:6]), max_size=20),
    st.lists(st.sampled_from(IDS[:6]), min_size=1, max_size=6),
    st.integers(1, 20),
)
def test_repeated_ids_never_score_above_one(ranking: list[str], relevant: list[str], k: int) -> None:
    for metric in METRICS.values():
        assert 0 <= _value(metric, ranking, relevant, k) <= 1


@given(RANKINGS, RELEVANT, st.integers(1, 20))
def test_repeated_id_keeps_its_rank_and_counts_once(ranking: list[str], relevant: list[str], k: int) -> None:
    repeated = [chunk_id for chunk_id in ranking for _ in range(2)]
    spaced = [item for chunk_id in ranking for item in (chunk_id, f"not {chunk_id}")]
    for metric in METRICS.values():
        assert _value(metric, repeated, relevant, k) == _value(metric, spaced, relevant, k)
