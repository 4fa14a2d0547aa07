"""Registry of file formats of optional features, whose files become JSON records of a known shape."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from evaluation.formats.tree import FileTree, Problems


@dataclass(frozen=True, slots=True)
class RecordFormat:
    """A file format of an optional feature.

    ``text`` converts a binary file to JSON. ``matches_head`` returns whether a file head may be of the format.
    ``records`` converts a tree to one with a record per row. ``shape`` is the map file for these records. ``text`` and
    ``records`` return other formats unchanged."""

    text: Callable[[bytes, Problems], bytes]
    matches_head: Callable[[bytes], bool]
    records: Callable[[FileTree, Problems], FileTree]
    shape: Path


#: Feature name -> loader of its format, called when a file is read.
FORMATS: dict[str, Callable[[], RecordFormat]] = {}


def record_formats() -> list[RecordFormat]:
    """Formats of the installed features."""
    return [load() for load in FORMATS.values()]
