"""Cosine similarity and lossless serialization of vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judging.embedding.similarity import cosine, from_bytes, percent, to_bytes

NUMBERS = st.floats(-1e6, 1e6, width=32).filter(lambda x: abs(x) > 1e-3)


def vector(*parts: float) -> np.ndarray:
    return np.array(parts, dtype=np.float32)


def test_cosine_is_dot_product_over_norms() -> None:
    # (3 x 4 + 4 x 3) / (5 x 5) = 24 / 25
    assert cosine(vector(3, 4), vector(4, 3)) == pytest.approx(0.96)
    assert cosine(vector(1, 0), vector(0, 7)) == 0.0
    assert cosine(vector(1, 2), vector(-2, -4)) == pytest.approx(-1.0)


@pytest.mark.parametrize("invalid", [vector(1, 2, 3), vector(0, 0)])
def test_vectors_of_another_space_or_without_direction_are_refused(invalid: np.ndarray) -> None:
    with pytest.raises(ValueError, match="vector"):
        cosine(vector(1, 2), invalid)


@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_vector_has_cosine_1_with_itself_and_survives_serialization(parts: list[float]) -> None:
    array = vector(*parts)
    assert cosine(array, array) == pytest.approx(1.0)
    assert (from_bytes(to_bytes(array)) == array).all()
    assert len(to_bytes(array)) == 4 * len(parts)


def test_shares_are_clipped_and_converted_to_percent() -> None:
    assert [percent(share) for share in (-0.2, 0.0, 0.25, 1.0, 1.0000001)] == [0.0, 0.0, 25.0, 100.0, 100.0]
