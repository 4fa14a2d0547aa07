"""Similarity and relevance by hand-made vectors."""

from __future__ import annotations

import numpy as np
import pytest

from evaluation.core.samples import AnswerSpec, QuestionSpec, Result, Status
from evaluation.judging.embedding.similarity import answer_relevance, semantic_similarity, texts_to_embed

MODEL = {"kind": "endpoint", "model": "e5"}
VECTORS = {
    "answer": np.array([3, 4], dtype=np.float32),
    "near": np.array([4, 3], dtype=np.float32),
    "far": np.array([1, 0], dtype=np.float32),
    "against": np.array([-3, -4], dtype=np.float32),
}


def question(*references: str) -> QuestionSpec:
    return QuestionSpec(id="q", category="c", text="?", references=references)


def test_similarity_is_the_cosine_with_the_nearest_expected_answer() -> None:
    # answer and far: 3 / 5; answer and near: 24 / 25
    result = semantic_similarity(("answer", "far", "near"), VECTORS, MODEL)
    assert result.value == pytest.approx(96.0)
    assert result.detail == {"cosine": pytest.approx(0.96), "reference": 1, "embeddings": MODEL}


def test_negative_cosine_scores_0_and_the_raw_cosine_is_stored() -> None:
    result = semantic_similarity(("answer", "against"), VECTORS, MODEL)
    assert (result.value, result.detail["cosine"]) == (0.0, pytest.approx(-1.0))


def test_identical_texts_score_100() -> None:
    assert semantic_similarity(("answer", "answer"), VECTORS, MODEL).value == pytest.approx(100.0)


def test_without_an_expected_answer_similarity_does_not_apply() -> None:
    assert texts_to_embed(question(), AnswerSpec("answer")) == Result.not_applicable("no_reference")
    assert texts_to_embed(question("  "), AnswerSpec("answer")) == Result.not_applicable("no_reference")


def test_an_empty_answer_is_0_without_a_call() -> None:
    result = texts_to_embed(question("near"), AnswerSpec(" \n"))
    assert isinstance(result, Result)
    assert (result.value, result.detail) == (0.0, {"empty": True})


def test_relevance_is_mean_cosine_with_generated_questions() -> None:
    # (24/25 + 3/5 + 1) / 3 = 2.56 / 3
    result = answer_relevance("answer", ("near", "far", "answer"), VECTORS, MODEL)
    assert result.value == pytest.approx(256 / 3)
    assert [(f.kind, f.text, f.verdict) for f in result.findings] == [
        ("question", "near", "0.9600"),
        ("question", "far", "0.6000"),
        ("question", "answer", "1.0000"),
    ]
    assert result.detail["embeddings"] == MODEL


def test_mean_cosine_is_clipped_after_averaging() -> None:
    # (24/25 - 1) / 2 = -0.02, shown as 0; with clipped parts it would be 48
    result = answer_relevance("answer", ("near", "against"), VECTORS, MODEL)
    assert (result.status, result.value) == (Status.SCORED, 0.0)
    assert result.detail["cosine"] == pytest.approx(-0.02)


def test_relevance_without_questions_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        answer_relevance("answer", (), VECTORS, MODEL)
