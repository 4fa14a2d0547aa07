"""Phone numbers are recognised in every spelling, and nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.metrics.normalise import folded
from evaluation.metrics.phones import phones


def _numbers(text: str) -> list[str]:
    return [number for phone in phones(folded(text)) for number in phone.numbers]


@pytest.mark.parametrize(
    "written",
    [
        "02-123-4567", "(02)123-4567", "(02) 123 4567", "02) 123-4567", "02.123.4567", "02 - 123 - 4567",
        "02–123–4567", "021234567", "０２－１２３－４５６７", "+82-2-123-4567", "+82 (0)2 123 4567", "0082 2 123 4567",
        "+8221234567", "전화:02-123-4567입니다",
    ],
)  # fmt: skip
def test_every_spelling_is_normalised_to_one_number(written: str) -> None:
    assert _numbers(written) == ["021234567"]


@pytest.mark.parametrize(
    ("written", "number"),
    [
        ("010-1234-5678", "01012345678"),
        ("+82-10-1234-5678", "01012345678"),
        ("070 1234 5678", "07012345678"),
        ("1588-1234", "15881234"),
        ("전화 1588-1600", "15881600"),
        ("(555) 223-4567", "5552234567"),
        ("+1 555 223 4567", "5552234567"),
        ("+44 20 7946 0958", "442079460958"),
    ],
)
def test_other_kinds_of_phone_numbers_are_read(written: str, number: str) -> None:
    assert _numbers(written) == [number]


@pytest.mark.parametrize(
    "written",
    [
        "102-123-4567",  # a pattern without limits fires inside it
        "2024-03-15", "02-03-2024", "1600-1700년", "1588-1600", "005930", "1,000억원", "학번 20231234", "제15조 02 30",
        "계좌 110-123-456789", "ISBN 978-89-123-4567-8", "02-123-45678",
    ],
)  # fmt: skip
def test_dates_codes_and_longer_numbers_are_not_phone_numbers(written: str) -> None:
    assert _numbers(written) == []


def test_phone_range_is_expanded_to_all_its_numbers() -> None:
    assert _numbers("02-123-4567~9") == ["021234567", "021234568", "021234569"]


@given(
    st.sampled_from(["2", "31", "51", "64"]), st.integers(200, 9999), st.integers(0, 9999), st.text(" -.", max_size=2)
)
def test_separator_does_not_change_the_digits(area: str, middle: int, last: int, gap: str) -> None:
    assert _numbers(f"문의 0{area}{gap}{middle}{gap}{last:04}.") == [f"0{area}{middle}{last:04}"]
