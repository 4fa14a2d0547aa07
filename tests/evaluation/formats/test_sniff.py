"""Detection of file formats from content and file name."""

from __future__ import annotations

import pytest

from evaluation.core.errors import InvalidFile
from evaluation.formats.reading import sniff
from evaluation.formats.tree import Limits, Problems


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("a: 1", "x.yaml", "yaml"),
        ('{"a": 1}', "x.YML", "yaml"),
        ("[]", "x.json", "json"),
        ("[\n]", "x.jsonl", "json"),
        ('{"a": 1}', "x.json", "json"),
        ('{"a": 1}', "x.jsonl", "jsonl"),
        ('{"a": 1}\n\n{"a": 2}', "x.json", "jsonl"),
        ('{\n"a": 1}', "x.jsonl", "json"),
        ('{"a": 1,\n"b": 2}', "x.json", "json"),
        ("a,b\n1,2", "x.tsv", "csv"),
        ('{"a": 1}\n{"a": 2}', "x", "jsonl"),
        ('{"a": 1}', "", "json"),
        ("- a\n- b", "x.txt", "yaml"),
        ("# remark\na: 1", "x", "yaml"),
        ("categories:\n  a: []", "x", "yaml"),
        ("id,question\n1,a: b", "x", "csv"),
        ("id\tquestion", "x", "csv"),
    ],
)
def test_format_is_detected(text: str, name: str, expected: str) -> None:
    assert sniff(text.encode(), name, Problems(name), Limits()).format == expected


@pytest.mark.parametrize(
    ("data", "name"), [(b"PK\x03\x04", "a.xlsx"), (b"PAR1", "a"), (b"ARROW1", "a.arrow"), (b"PAR1", "a.parquet")]
)
def test_binary_formats_have_no_text_and_no_encoding(data: bytes, name: str) -> None:
    sniffed = sniff(data + b" more", name, Problems(name), Limits())
    assert (sniffed.text, sniffed.encoding) == ("", "")


def test_file_size_limit_is_inclusive() -> None:
    assert sniff(b"a: 1", "x.yaml", Problems("x"), Limits(bytes=4)).format == "yaml"
    with pytest.raises(InvalidFile) as error:
        sniff(b"a: 12", "x.yaml", Problems("x"), Limits(bytes=4))
    assert [problem.params for problem in error.value.problems] == [{"size": 5, "limit": 4}]


def test_line_of_a_nul_character_counts_blank_lines() -> None:
    with pytest.raises(InvalidFile) as error:
        sniff(b"\na,b\nx\0,c", "x.csv", Problems("x"), Limits())
    assert [(problem.code, problem.line) for problem in error.value.problems] == [("nul_character", 3)]
