"""Question and answer files for tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from evaluation.formats.question_rows import QuestionFile
from evaluation.formats.reading import read_questions


def question(number: int, **fields: Any) -> dict[str, Any]:
    """The question with this number as a row of a file."""
    row = {
        "id": f"q{number}",
        "category": "capitals",
        "question": f"What is the capital of country {number}?",
        "expected_answer": f"The capital is city {number}.",
        "expected_keywords": [f"city {number}"],
    }
    return row | fields


def as_json(rows: Sequence[dict[str, Any]]) -> bytes:
    """The rows as a JSON list."""
    return json.dumps(list(rows), ensure_ascii=False, indent=1).encode()


def as_lines(rows: Sequence[dict[str, Any]]) -> bytes:
    """The rows as JSON Lines."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def question_file(*rows: dict[str, Any], name: str = "capitals.json") -> QuestionFile:
    """The rows as a parsed question file."""
    return read_questions(as_json(rows), name)
