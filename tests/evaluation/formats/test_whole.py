"""Atomic file writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluation.formats.export import write_atomically


def test_file_has_all_chunks_and_no_temporary_file_remains(tmp_path: Path) -> None:
    write_atomically(tmp_path / "report.csv", [b"a,", b"b\n"])
    assert (tmp_path / "report.csv").read_bytes() == b"a,b\n"
    assert [path.name for path in tmp_path.iterdir()] == ["report.csv"]


def test_interrupted_write_keeps_the_old_file_and_no_temporary_file(tmp_path: Path) -> None:
    def failing_chunks() -> Iterator[bytes]:
        yield b"half"
        # the other half goes into a file of another name until it is there
        assert (tmp_path / "report.csv").read_bytes() == b"old"
        raise RuntimeError("stop")

    (tmp_path / "report.csv").write_bytes(b"old")
    with pytest.raises(RuntimeError, match="stop"):
        write_atomically(tmp_path / "report.csv", failing_chunks())
    assert (tmp_path / "report.csv").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.csv"]


def test_pipe_is_written_to_and_stays(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as pool:
        content = pool.submit(pipe.read_bytes)
        write_atomically(pipe, [b"a,", b"b\n"])
        assert content.result(timeout=10) == b"a,b\n"
    assert pipe.is_fifo()
