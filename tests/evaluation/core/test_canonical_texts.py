"""The fast canonical JSON writer equals the plain one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.core.canonical import canonical_json, canonical_texts

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
WHOLE = st.integers(min_value=-(2**63), max_value=2**63 - 1)
VALUES = st.recursive(
    st.none() | st.booleans() | WHOLE | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_fast_and_plain_writers_agree(value: object) -> None:
    assert canonical_texts(value) == canonical_json(value)


def test_decomposed_hangul_is_composed() -> None:
    assert canonical_texts({"답": "\u1112\u1161\u11ab"}) == '{"답":"한"}'


@pytest.mark.parametrize("value", ["\ud800", 2**70, object()])
def test_unsupported_values_raise_type_error(value: object) -> None:
    with pytest.raises(TypeError):
        canonical_texts(value)
