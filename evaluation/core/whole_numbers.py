"""Whole numbers as addresses and forms send them: the digits of a primary key, a page, a number of milliseconds."""

from __future__ import annotations

LONGEST = 18  # digits; more may not fit into a column of 64 bits


def whole_number(text: str, digits: int = LONGEST) -> int | None:
    """The number that the text writes in ASCII digits, at most so many; ``None`` for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits else None
