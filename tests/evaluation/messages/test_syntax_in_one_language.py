"""Syntax problems are explained entirely in the reader's language."""

from __future__ import annotations

import io
import re

import openpyxl
import pytest
from django.utils import translation

from evaluation.core.errors import InvalidFile, Problem
from evaluation.formats.reading import read_answers, read_questions
from evaluation.messages.explanations import explain
from evaluation.messages.problems import UNKNOWN_PARSER_MESSAGE

BROKEN = {
    "a.json": [
        '[{"a": 1}] x',
        '[{"a": 1 "b": 2}]',
        "[1 2]",
        "[{a: 1}]",
        '[{"a" 1}]',
        '[{"a": "x\n"}]',
        '[{"a": nope}]',
    ],
    "a.csv": ['question_id,answer\nq1,"x" y\n', 'question_id,answer\nq1,"x\n'],
}


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BROKEN.items() for text in texts])
def test_korean_message_contains_no_english(name: str, text: str) -> None:
    with pytest.raises(InvalidFile) as error:
        read_answers(text.encode(), name, max_bytes=10_000)
    with translation.override("ko"):
        message = explain(error.value.problems[0]).replace(name, "")
    assert set(re.findall(r"[A-Za-z]{2,}", message)) <= {"JSON", "nope", "CSV"}


YAML = {
    "a: [1 2": "쉼표나 닫는 괄호",
    "a: [b, c\nd: e": "쉼표나 닫는 괄호",
    "a: \x01": "",
    "a: | b": "",
    "a: - b": "",
    "? a\n? [b\n": "",
    "a: * b": "",
    "a: & b": "",
    "%YAMEL": "",
    'a: "\\u12"': "",
    "a: b\n\t- c": "",
}


def explain_in_korean(problem: Problem) -> str:
    with translation.override("ko"):
        message = explain(problem)
        assert str(UNKNOWN_PARSER_MESSAGE) not in message, problem
    return message


@pytest.mark.parametrize(("text", "says"), YAML.items())
def test_every_yaml_fault_has_its_own_message(text: str, says: str) -> None:
    with pytest.raises(InvalidFile) as error:
        read_questions(text.encode(), "a.yaml", max_bytes=10_000)
    assert says in explain_in_korean(error.value.problems[0])


def workbook_file() -> bytes:
    buffer, book = io.BytesIO(), openpyxl.Workbook()
    book.active.append(["id", "question"])
    book.active.append(["q1", "Why?"])
    book.save(buffer)
    return buffer.getvalue()


def columnar_file(kind: str) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    buffer, table = io.BytesIO(), pyarrow.table({"question_id": ["q1", "q2"], "answer": ["first", "second"]})
    if kind == "parquet":
        parquet.write_table(table, buffer)
    else:
        with pyarrow.ipc.new_file(buffer, table.schema) as file:
            file.write_table(table)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["xlsx", "parquet", "arrow"])
def test_truncated_file_is_reported_as_damaged(kind: str) -> None:
    content = workbook_file() if kind == "xlsx" else columnar_file(kind)
    reader = read_questions if kind == "xlsx" else read_answers
    for data in (content[: len(content) // 2], content[:-3]):
        with pytest.raises(InvalidFile) as error:
            reader(data, f"a.{kind}", max_bytes=1_000_000)
        assert "손상되었거나" in explain_in_korean(error.value.problems[0])


def test_text_offset_beyond_the_file_is_refused_without_a_crash() -> None:
    content = columnar_file("arrow")
    offset = content.index((0).to_bytes(4, "little") + (5).to_bytes(4, "little") + (11).to_bytes(4, "little"))
    corrupted = content[: offset + 4] + (1 << 30).to_bytes(4, "little") + content[offset + 8 :]
    with pytest.raises(InvalidFile) as error:
        read_answers(corrupted, "a.arrow", max_bytes=1_000_000)
    assert error.value.problems[0].code == "columnar_broken"
