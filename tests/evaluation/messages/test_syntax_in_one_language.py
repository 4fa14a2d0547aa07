"""Where a file's syntax is wrong, the sentence is wholly in the reader's language."""

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
def test_no_english_is_left_in_korean(name: str, text: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        read_answers(text.encode(), name, max_bytes=10_000)
    with translation.override("ko"):
        told = explain(refused.value.problems[0]).replace(name, "")
    assert set(re.findall(r"[A-Za-z]{2,}", told)) <= {"JSON", "nope", "CSV"}


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


def told_in_korean(problem: Problem) -> str:
    with translation.override("ko"):
        told = explain(problem)
        assert str(UNKNOWN_PARSER_MESSAGE) not in told, problem
    return told


@pytest.mark.parametrize(("text", "says"), YAML.items())
def test_every_fault_of_yaml_has_a_sentence_of_its_own(text: str, says: str) -> None:
    with pytest.raises(InvalidFile) as refused:
        read_questions(text.encode(), "a.yaml", max_bytes=10_000)
    assert says in told_in_korean(refused.value.problems[0])


def workbook() -> bytes:
    made, book = io.BytesIO(), openpyxl.Workbook()
    book.active.append(["id", "question"])
    book.active.append(["q1", "Why?"])
    book.save(made)
    return made.getvalue()


def columns(kind: str) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    made, table = io.BytesIO(), pyarrow.table({"question_id": ["q1", "q2"], "answer": ["first", "second"]})
    if kind == "parquet":
        parquet.write_table(table, made)
    else:
        with pyarrow.ipc.new_file(made, table.schema) as file:
            file.write_table(table)
    return made.getvalue()


@pytest.mark.parametrize("kind", ["xlsx", "parquet", "arrow"])
def test_a_file_that_was_cut_off_is_said_to_be(kind: str) -> None:
    whole = workbook() if kind == "xlsx" else columns(kind)
    read = read_questions if kind == "xlsx" else read_answers
    for data in (whole[: len(whole) // 2], whole[:-3]):
        with pytest.raises(InvalidFile) as refused:
            read(data, f"a.{kind}", max_bytes=1_000_000)
        assert "손상되었거나" in told_in_korean(refused.value.problems[0])


def test_a_text_whose_place_is_beyond_the_file_is_refused_and_ends_no_process() -> None:
    whole = columns("arrow")
    place = whole.index((0).to_bytes(4, "little") + (5).to_bytes(4, "little") + (11).to_bytes(4, "little"))
    wrong = whole[: place + 4] + (1 << 30).to_bytes(4, "little") + whole[place + 8 :]
    with pytest.raises(InvalidFile) as refused:
        read_answers(wrong, "a.arrow", max_bytes=1_000_000)
    assert refused.value.problems[0].code == "columnar_broken"
