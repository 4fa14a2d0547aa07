"""Registry of file formats that optional features add: their files become JSON records of a known shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from evaluation.formats.tree import FileTree, Problems


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """A file format: ``text`` returns a binary file as JSON, ``may_begin`` tells whether a file that begins so may be
    of the format, ``records`` returns a tree with a record for each row, and ``shape`` is the map file that reads them.
    ``text`` and ``records`` return files of other formats unchanged.
    """

    text: Callable[[bytes, Problems], bytes]
    may_begin: Callable[[bytes], bool]
    records: Callable[[FileTree, Problems], FileTree]
    shape: Path


#: Loaders of the formats, by the name of their feature; they are called when a file is read.
FORMATS: dict[str, Callable[[], RecordFormat]] = {}


def record_formats() -> list[RecordFormat]:
    """Formats of the installed features."""
    return [load() for load in FORMATS.values()]
