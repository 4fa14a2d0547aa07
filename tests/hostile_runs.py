"""Hostile runs of text, which must be read in time that grows with their length."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

RUNS = {
    "spaces": " ",
    "line feeds": "\n",
    "invisible": "\u200b",
    "open brackets": "[",
    "brackets": "[1]",
    "sources": "(출처 ",
    "digits": "1",
    "grouped digits": "1,",
    "versions": "1.1.",
    "multipliers": "만",
    "multiplied": "1만 ",
    "articles": "제15조의2",
    "regulations": "규정",
    "phones": "02-123-4567 ",
    "years": "1600-1700 ",
    "quotes": '"',
    "quoted": "'a' ",
    "escaped": '\\"',
    "hangul": "가",
    "particles": "는 ",
    "negated": "30일 아니",
    "names": "서울대",
    "avoidance": "확인하세요 ",
    "clauses": "확인하세요. 모르 ",
    "emphasis": "a*",
    "bars": "| ",
    "secrets": '"password":"',
    "tokens": "-eyJaaaaaaaa.",
    "addresses": "a@a.",
    "mixed": "[1] 가1 '\n",
}


def assert_linear(read: Callable[[str], object], run: str) -> None:
    """Assert that twice the text takes about twice the time. A pattern that reads a run again from each of its
    characters takes four times as long."""
    short, long = (f"x{run * (length // len(run))}x" for length in (50_000, 100_000))
    read("warm-up")
    assert _seconds(read, short) * 3 + 0.5 > _seconds(read, long)


def _seconds(read: Callable[[str], object], text: str) -> float:
    start = process_time()
    read(text)
    return process_time() - start
