"""Messages of refusals."""

from __future__ import annotations

from evaluation.core.errors import UnknownName


def test_unknown_name_message_lists_near_and_known_names() -> None:
    assert str(UnknownName("metric", "corectness", ["faithfulness", "correctness"])) == (
        "unknown metric 'corectness'; did you mean correctness? (known: correctness, faithfulness)"
    )
    assert str(UnknownName("profile", "x", [])) == "unknown profile 'x' (known: none)"
