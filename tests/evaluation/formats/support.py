"""Small builders for the tests of the file readers."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import openpyxl
import pytest

from evaluation.core.errors import InvalidFile, Problem


def expect_problems(reader: Callable[..., Any], data: bytes | str, name: str, **options: Any) -> tuple[Problem, ...]:
    """Assert that the reader refuses the file, and return its problems."""
    with pytest.raises(InvalidFile) as error:
        reader(data.encode() if isinstance(data, str) else data, name, **options)
    return error.value.problems


def facts(problems: Iterable[Problem]) -> list[tuple[str, int | None, str]]:
    """Code, line and field of each problem."""
    return [(problem.code, problem.line, problem.field) for problem in problems]


def jsonl(*rows: Mapping[str, Any]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def xlsx(*rows: Iterable[Any], further: Iterable[str] = ()) -> bytes:
    workbook = openpyxl.Workbook()
    for row in rows:
        workbook.active.append(list(row))
    for title in further:
        workbook.create_sheet(title)
    buffer = io.BytesIO()
    workbook.save(buffer)
    return buffer.getvalue()
