"""Export formats keep their names, extensions and media types, because clients store them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluation.core.errors import UnknownName
from evaluation.formats.export import FORMATS, Exports

SHEET = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


def write_chunk() -> Iterator[bytes]:
    yield b"x"


EXPORTS = Exports[[]]("a report", {"json": write_chunk, "md": write_chunk})


def test_every_format_has_a_name_extension_and_media_type() -> None:
    assert [
        (export_format.name, export_format.extension, export_format.media_type) for export_format in FORMATS.values()
    ] == [
        ("json", "json", "application/json"),
        ("jsonl", "jsonl", "application/x-ndjson"),
        ("csv", "csv", "text/csv; charset=utf-8"),
        ("xlsx", "xlsx", SHEET),
        ("html", "html", "text/html; charset=utf-8"),
        ("junit", "xml", "application/xml"),
        ("md", "md", "text/markdown; charset=utf-8"),
        ("experiment", "yaml", "application/yaml"),
        ("label_studio", "json", "application/json"),
        ("label_studio_config", "xml", "application/xml"),
    ]
    assert list(FORMATS) == [export_format.name for export_format in FORMATS.values()]


def test_a_file_is_named_by_its_stem_and_its_format() -> None:
    export = EXPORTS.write("md", "run-7")
    assert (export.file_name, export.media_type, list(export.chunks)) == (
        "run-7.md",
        "text/markdown; charset=utf-8",
        [b"x"],
    )


def test_format_is_found_by_file_extension_in_any_case() -> None:
    assert (EXPORTS.names, EXPORTS.extensions) == (["json", "md"], {"json": "json", "md": "md"})
    assert EXPORTS.format_for_path(Path("a/b.MD")) == "md"
    with pytest.raises(UnknownName, match=r"unknown ending of a report 'csv' \(known: json, md\)"):
        EXPORTS.format_for_path(Path("b.csv"))
    with pytest.raises(UnknownName, match=r"unknown report format 'csv'"):
        EXPORTS.check_name("csv")
