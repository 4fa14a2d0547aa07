"""What refusals say."""

from __future__ import annotations

from evaluation.core.errors import UnknownName


def test_an_unknown_name_is_told_with_near_ones_and_those_there_are() -> None:
    assert str(UnknownName("metric", "corectness", ["faithfulness", "correctness"])) == (
        "unknown metric 'corectness'; did you mean correctness? (known: correctness, faithfulness)"
    )
    assert str(UnknownName("profile", "x", [])) == "unknown profile 'x' (known: none)"
