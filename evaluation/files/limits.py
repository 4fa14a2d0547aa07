"""What a file may cost before it is refused: caps that hold before anything is walked or built."""

from __future__ import annotations

from dataclasses import dataclass

MAX_BYTES = 20 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """``bytes``: size of the file. ``depth``: nested lists and mappings. ``nodes``: values in the file, keys not
    counted. ``field_length``: characters of one text. ``rows`` and ``columns``: of a table. ``inflated``: bytes of a
    workbook once unpacked, ``members`` the files in it."""

    bytes: int = MAX_BYTES
    depth: int = 32
    nodes: int = 2_000_000
    field_length: int = 1_000_000
    rows: int = 500_000
    columns: int = 100
    inflated: int = 10 * MAX_BYTES
    members: int = 1_000


MOST_PROBLEMS = 10_000  # of one file, after which the reading stops: nobody reads more
SHORT_TEXT = 200  # characters of ids, categories and other names: what fits an indexed column on every database
