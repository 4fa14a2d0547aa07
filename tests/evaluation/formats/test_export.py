"""CSV, workbook and JSON Lines exports."""

from __future__ import annotations

import csv
import io
import re

import openpyxl
import pytest

from evaluation.formats.export import csv_chunks, json_lines, xlsx_bytes
from tests.hostile_runs import RUNS, assert_linear


def test_csv_begins_with_the_byte_order_mark() -> None:
    data = b"".join(csv_chunks(["이름", "=x"], [["가", 1], [None, -2.5], ['a"b', "=1"]]))
    assert data == '\ufeff이름,\'=x\r\n가,1\r\n,-2.5\r\n"a""b",\'=1\r\n'.encode()


def test_csv_chunks_lose_no_rows() -> None:
    chunks = list(csv_chunks(["n"], ([n] for n in range(450))))
    assert len(chunks) == 3  # after 200 and 400 rows, and the rest
    assert b"".join(chunks).decode("utf-8-sig").split() == ["n", *map(str, range(450))]


def test_workbook_stores_text_and_never_formulas() -> None:
    long = "x" * 40_000
    data = xlsx_bytes({"runs/1": (["a", "b"], [["=1+1", 2], ["\x01bell", long]])})
    sheet = openpyxl.load_workbook(io.BytesIO(data))["runs_1"]
    assert sheet.freeze_panes == "A2"
    rows = list(sheet.iter_rows(values_only=True))
    assert rows[:2] == [("a", "b"), ("'=1+1", 2)]
    assert rows[2][0] == "\ufffdbell"
    assert len(str(rows[2][1])) == 32_767
    assert str(rows[2][1]).endswith("[cut: the whole text is in the JSON Lines export]")


def test_json_lines_are_verbatim_and_refuse_nan() -> None:
    assert list(json_lines([{"a": "=1\n가"}])) == ['{"a": "=1\\n가"}\n']
    with pytest.raises(ValueError, match="Out of range"):
        list(json_lines([{"a": float("nan")}]))


@pytest.mark.parametrize("separator", [";", "\t", "\n", "; ", ";\u200b"])
@pytest.mark.parametrize("formula", ["=1+1", "@SUM(A1)", "+1", "-2+3", "- 2+cmd|' /C x'!A0", "- HYPERLINK(1)", "＝1"])
def test_csv_has_no_formula_after_another_separator(separator: str, formula: str) -> None:
    content = b"".join(csv_chunks(["id", "answer"], [[1, f"text{separator}{formula}"]])).decode()
    for line in content.splitlines():
        for cell in re.split("[;\t]", line):
            assert not cell.strip(" \u200b\ufeff").startswith(tuple("=@+-＝")), line


@pytest.mark.parametrize("text", ["a; b", "a\n- item\n- other (b)", "a\n---\nb", "a\n| - | b |", "a;b=c"])
def test_csv_leaves_other_text_unchanged(text: str) -> None:
    content = b"".join(csv_chunks(["answer"], [[text]])).decode("utf-8-sig")
    assert list(csv.reader(io.StringIO(content, newline=""))) == [["answer"], [text]]


@pytest.mark.slow
@pytest.mark.parametrize("run", [*RUNS.values(), ";", ";-", "\t"])
def test_time_of_csv_grows_with_the_length_of_the_text(run: str) -> None:
    assert_linear(lambda text: list(csv_chunks(["a"], [[text]])), run)
