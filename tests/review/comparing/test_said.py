"""How p-values are said."""

from __future__ import annotations

import pytest

from review.comparing.said import p_text


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, "–"), (0.0, "<0.001"), (0.00099, "<0.001"), (0.001, "0.001"), (0.0314, "0.031"), (1.0, "1.000")],
)
def test_no_p_value_is_nought(value: float | None, expected: str) -> None:
    assert p_text(value) == expected
