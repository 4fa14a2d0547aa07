"""Strata of a plan as a lead reads them."""

from __future__ import annotations

import pytest
from django.utils.translation import override

from review.pages.plan import stratum_in_words


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("inference 1..1.667", "추론 1–1.667"),
        ("inference|single_hop 2", "추론, 단일 사실 2"),
        ("old prices unscored", "old prices 점수 없음"),
        ("unscored", "점수 없음"),
        (" 3..4", "3–4"),
    ],
)
def test_a_stratum_is_told_by_category_and_scores(name: str, told: str) -> None:
    with override("ko"):
        assert stratum_in_words(name) == told
