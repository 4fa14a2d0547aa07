"""What a file is: by content between JSON and JSON Lines, by name elsewhere, by content where the name says nothing."""

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
def test_format(text: str, name: str, expected: str) -> None:
    assert sniff(text.encode(), name, Problems(name), Limits()).format == expected


@pytest.mark.parametrize(
    ("data", "name"), [(b"PK\x03\x04", "a.xlsx"), (b"PAR1", "a"), (b"ARROW1", "a.arrow"), (b"PAR1", "a.parquet")]
)
def test_what_is_no_text_has_none_and_no_encoding(data: bytes, name: str) -> None:
    found = sniff(data + b" more", name, Problems(name), Limits())
    assert (found.text, found.encoding) == ("", "")


def test_a_file_may_have_as_many_bytes_as_allowed() -> None:
    assert sniff(b"a: 1", "x.yaml", Problems("x"), Limits(bytes=4)).format == "yaml"
    with pytest.raises(InvalidFile) as refused:
        sniff(b"a: 12", "x.yaml", Problems("x"), Limits(bytes=4))
    assert [problem.params for problem in refused.value.problems] == [{"size": 5, "limit": 4}]


def test_the_line_of_a_nul_counts_blank_lines_before_it() -> None:
    with pytest.raises(InvalidFile) as refused:
        sniff(b"\na,b\nx\0,c", "x.csv", Problems("x"), Limits())
    assert [(problem.code, problem.line) for problem in refused.value.problems] == [("nul_character", 3)]
