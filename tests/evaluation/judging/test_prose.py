from __future__ import annotations

from evaluation.judging.prose import prose

TEXT = (
    "# Rent\n\nPaid monthly.\n\n| 항목 | 금액 |\n|---|---:|\n| 월세 | 500,000 |\n\n```python\nrent = 1\n```\n- a list\n"
)


def test_code_headings_and_table_headers_are_not_prose() -> None:
    assert [line for line in prose(TEXT).splitlines() if line] == ["Paid monthly.", "| 월세 | 500,000 |", "- a list"]


def test_open_fence_removes_the_rest_and_plain_text_is_unchanged() -> None:
    assert prose("One.\r\n```\ncode") == "One.\r\n\n\n"
    assert prose("One.\r\nTwo | three.") == "One.\r\nTwo | three."
