"""Readable names of a plan's strata."""

from __future__ import annotations

import pytest
from django.utils.translation import override

from review.reports.figure import Figure, stratum_in_words, withheld_reason


@pytest.mark.parametrize(
    ("name", "description"),
    [
        ("inference 1..1.667", "추론 1–1.667"),
        ("inference|single_hop 2", "추론, 단일 사실 2"),
        ("old prices unscored", "old prices 점수 없음"),
        ("unscored", "점수 없음"),
        (" 3..4", "3–4"),
    ],
)
def test_stratum_is_described_by_category_and_scores(name: str, description: str) -> None:
    with override("ko"):
        assert stratum_in_words(name) == description


def test_strata_without_ratings_are_described_too() -> None:
    missing = {"strata": {"inference|single_hop 2..3": 2, "certain": 1}}
    with override("ko"):
        text = withheld_reason(
            Figure(None, None, None, "", 9, withheld="stratum_too_few_labels", extra={"missing": missing})
        )
    assert "추론, 단일 사실 2–3 (2)" in text
    assert "certain" not in text


def test_failed_and_merged_strata_have_names() -> None:
    with override("en"):
        assert [stratum_in_words(name) for name in ("fails", "rest")] == ["below the threshold", "all others"]
