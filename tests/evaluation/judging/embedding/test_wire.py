"""Strict parsing of responses: one finite vector for each text, all of one length, or wrong content."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judging.embedding.client import MAX_DIMENSIONS, read_embeddings, request_body
from evaluation.network.outcomes import Outcome

JSON = "application/json; charset=utf-8"


def body(*data: Any, **fields: Any) -> bytes:
    return json.dumps({"data": list(data), **fields}).encode()


def item(index: int, *parts: float) -> dict[str, Any]:
    return {"index": index, "embedding": list(parts)}


def test_a_request_names_the_model_and_asks_for_numbers() -> None:
    assert request_body("e5", ["a", "b\ud800"]) == {
        "model": "e5",
        "input": ["a", "b\ufffd"],
        "encoding_format": "float",
    }
    assert request_body("e5", ["a"], 256)["dimensions"] == 256


def test_vectors_follow_the_order_of_texts_not_of_the_response() -> None:
    result = read_embeddings(body(item(1, 0, 1), item(0, 1, 0), model="e5", usage={"prompt_tokens": 7}), JSON, 2)
    assert (result.outcome, result.model_returned, result.tokens_in) == (Outcome.OK, "e5", 7)
    assert [vector.tolist() for vector in result.vectors] == [[1.0, 0.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    "data",
    [
        body(item(0, 1, 0)),  # one for two
        body(item(0, 1, 0), item(0, 0, 1)),  # one twice
        body(item(0, 1, 0), item(2, 0, 1)),  # none of the two
        body(item(0, 1, 0), item(1, 0, 1, 1)),  # of two lengths
        body(item(0, 1, 0), item(1)),  # empty
        body(item(0, 1, 0), item(1, 0, 0)),  # without direction
        b'{"data": [{"embedding": [1, NaN]}, {"embedding": [1, 0]}]}',
        b'{"data": [{"embedding": [1, 1e400]}, {"embedding": [1, 0]}]}',
        b'{"data": [{"embedding": [1, true]}, {"embedding": [1, 0]}]}',
        b'{"data": [{"embedding": "AACAPw=="}, {"embedding": [1, 0]}]}',
        b'{"error": "busy"}',
        b"<html>",
        b"[" * 100_000,
    ],
)
def test_invalid_response_is_wrong_content_with_an_excerpt(data: bytes) -> None:
    result = read_embeddings(data, JSON, 2)
    assert (result.outcome, result.vectors) == (Outcome.WRONG_CONTENT, ())
    assert result.raw


def test_response_that_is_not_json_is_wrong_content() -> None:
    assert read_embeddings(body(item(0, 1)), "text/html", 1).outcome is Outcome.WRONG_CONTENT


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["index", "embedding", "x"]), inner),
    max_leaves=12,
)


@given(st.lists(TREES, max_size=3), TREES)
def test_reader_never_raises(data: list[Any], usage: Any) -> None:
    result = read_embeddings(json.dumps({"data": data, "usage": usage}).encode(), JSON, 1)
    assert (result.outcome is Outcome.OK) == (len(result.vectors) == 1)


def test_vector_may_have_up_to_max_dimensions() -> None:
    longest = [1.0] * MAX_DIMENSIONS
    assert read_embeddings(body(item(0, *longest)), JSON, 1).outcome is Outcome.OK
    assert read_embeddings(body(item(0, *longest, 1.0)), JSON, 1).outcome is Outcome.WRONG_CONTENT
