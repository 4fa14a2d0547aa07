"""Parsing of scales."""

from __future__ import annotations

import pytest

from evaluation.core.scales import Scale, ScaleKind


@pytest.mark.parametrize(
    ("text", "kind", "low", "high"),
    [
        ("1..5", ScaleKind.LEVELS, 1, 5),
        ("levels 1..5", ScaleKind.LEVELS, 1, 5),
        ("1-5", ScaleKind.LEVELS, 1, 5),
        ("–2..2", ScaleKind.LEVELS, -2, 2),  # a minus as word processors write it
        ("-2..2", ScaleKind.LEVELS, -2, 2),
        ("0..1:real", ScaleKind.REAL, 0, 1),
        ("real 0..1", ScaleKind.REAL, 0, 1),
        ("0.5..1", ScaleKind.REAL, 0.5, 1),
        ("bool", ScaleKind.YES_NO, 0, 1),
        ("seconds", ScaleKind.SECONDS, 0, 86_400),
    ],
)
def test_range_is_read_in_each_spelling(text: str, kind: ScaleKind, low: float, high: float) -> None:
    assert Scale.parse(text) == Scale(kind, low, high)


@pytest.mark.parametrize("text", ["class a|b", "class:a| b ", "class a||b"])
def test_classes_keep_their_order(text: str) -> None:
    assert Scale.parse(text) == Scale(ScaleKind.CLASS, labels=("a", "b"))


@pytest.mark.parametrize("text", ["", "5..1", "1..1", "high", "class a", "class a|a", "0..1:reel"])
def test_invalid_scales_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"scale|range"):
        Scale.parse(text)
