"""Retrieval metrics on small rankings, computed by hand."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.metric_specs import RuleMetric, RuleSettings
from evaluation.core.samples import AnswerSpec, ContextSpec, QuestionSpec, Status
from evaluation.metrics.retrieval import (
    average_precision_at_k,
    hit_at_k,
    ndcg_at_k,
    precision_at_k,
    recall_at_k,
    reciprocal_rank,
)

ALL = (precision_at_k, recall_at_k, hit_at_k, reciprocal_rank, ndcg_at_k, average_precision_at_k)


def _value(metric: RuleMetric, relevant: str, retrieved: str, k: int = 5) -> float | None:
    question = QuestionSpec(id="q", category="c", text="?", ground_truth_chunk_ids=tuple(relevant))
    return metric(question, AnswerSpec("", retrieved_ids=tuple(retrieved)), RuleSettings(k=k)).value


@pytest.mark.parametrize(
    ("metric", "value"),
    [
        (precision_at_k, 2 / 5),  # b and d among the top five
        (recall_at_k, 2 / 3),  # z was never retrieved
        (hit_at_k, 1),
        (reciprocal_rank, 1 / 2),  # b is second
        # (1/log2(3) + 1/log2(5)) / (1/log2(2) + 1/log2(3) + 1/log2(4)) = 1.0616... / 2.1309... = 0.4982...
        (ndcg_at_k, (1 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / 2)),
        (average_precision_at_k, (1 / 2 + 2 / 4) / 3),  # precision at ranks 2 and 4, over three relevant
    ],
)
def test_metrics_of_two_relevant_passages_at_ranks_two_and_four(metric: RuleMetric, value: float) -> None:
    assert _value(metric, "bdz", "abcdef") == pytest.approx(value)


def test_only_the_top_k_count() -> None:
    assert _value(hit_at_k, "d", "abcd", k=3) == 0
    assert _value(reciprocal_rank, "d", "abcd", k=4) == 1 / 4
    assert _value(precision_at_k, "a", "a", k=5) == 1 / 5


def test_repeated_id_keeps_its_rank_and_is_relevant_once() -> None:
    assert _value(recall_at_k, "ab", "aaab", k=3) == 1 / 2
    assert _value(precision_at_k, "a", "aaa", k=3) == 1 / 3
    # b is at rank 3 behind the repeated a: (1/1 + 2/3) / 2
    assert _value(average_precision_at_k, "ab", "aab", k=3) == pytest.approx((1 + 2 / 3) / 2)


@pytest.mark.parametrize("metric", ALL)
def test_empty_retrieval_is_zero_and_no_retrieval_not_applicable(metric: RuleMetric) -> None:
    question = QuestionSpec(id="q", category="c", text="?", ground_truth_chunk_ids=("a",))
    assert metric(question, AnswerSpec("", contexts=()), RuleSettings()).value == 0
    assert metric(question, AnswerSpec(""), RuleSettings()).reason == "does_not_retrieve"
    assert metric(question, AnswerSpec("", contexts=(ContextSpec("t"),)), RuleSettings()).reason == "no_retrieved_ids"
    unlabelled = QuestionSpec(id="q", category="c", text="?")
    assert metric(unlabelled, AnswerSpec("", contexts=()), RuleSettings()).reason == "no_relevant_chunks"


def test_contexts_give_the_ranking_without_retrieved_ids() -> None:
    question = QuestionSpec(id="q", category="c", text="?", ground_truth_chunk_ids=("b",))
    contexts = (ContextSpec("x", chunk_id="a"), ContextSpec("y"), ContextSpec("z", chunk_id="b"))
    assert reciprocal_rank(question, AnswerSpec("", contexts=contexts), RuleSettings()).value == 1 / 3


@given(st.text("abcdef", min_size=1, max_size=6), st.text("abcdefgh", max_size=12), st.integers(1, 10))
def test_every_value_is_a_share_and_metrics_agree_about_zero(relevant: str, retrieved: str, k: int) -> None:
    values = [_value(metric, relevant, retrieved, k) for metric in ALL]
    assert all(value is not None and 0 <= value <= 1 + 1e-12 for value in values)
    assert len({bool(value) for value in values}) == 1


@given(st.text("abcdef", min_size=1, max_size=6))
def test_perfect_ranking_has_the_maximum_value(relevant: str) -> None:
    ideal = "".join(dict.fromkeys(relevant))
    assert _value(ndcg_at_k, relevant, ideal, k=10) == pytest.approx(1)
    assert _value(average_precision_at_k, relevant, ideal, k=10) == pytest.approx(1)


def test_result_detail_stores_the_ranking() -> None:
    question = QuestionSpec(id="q", category="c", text="?", ground_truth_chunk_ids=("b", "z"))
    result = recall_at_k(question, AnswerSpec("", retrieved_ids=("a", "b")), RuleSettings(k=2))
    assert result.status is Status.SCORED
    assert result.detail == {"k": 2, "relevant": 2, "retrieved": 2, "found": ["b"]}
