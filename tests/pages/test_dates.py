"""Dates and times as each language has them: 24 hours, nothing that can be misread."""

from __future__ import annotations

import datetime

import pytest
from django.utils.formats import date_format
from django.utils.translation import override


@pytest.mark.parametrize(
    ("language", "name", "expected"),
    [
        ("ko", "DATETIME_FORMAT", "2026년 3월 4일 15:05"),  # Django's own: 2026년 3월 4일 3:05 오후
        ("ko", "SHORT_DATETIME_FORMAT", "2026-03-04 15:05"),
        ("en", "DATETIME_FORMAT", "4 March 2026, 15:05"),
        ("en", "SHORT_DATETIME_FORMAT", "4 Mar 2026, 15:05"),
    ],
)
def test_dates_and_times_follow_the_language(language: str, name: str, expected: str) -> None:
    with override(language):
        assert date_format(datetime.datetime(2026, 3, 4, 15, 5, tzinfo=datetime.UTC), name) == expected
