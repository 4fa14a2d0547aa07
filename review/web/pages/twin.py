"""The table behind a picture: the same figures for whoever cannot or would rather not see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Twin:
    """A table with a heading for its first column and for the others; a row is its heading and its cells."""

    caption: str
    what: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
