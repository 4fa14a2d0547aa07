"""Files that appear whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file that appears whole or not at all.

    :raises OSError: where it cannot be written.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with unfinished.open("wb") as file:
            file.writelines(chunks)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
