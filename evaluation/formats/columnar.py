"""Parquet and Arrow (IPC file or stream) to a tree, a batch at a time, where the extra ``arrow`` is installed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any

from evaluation.core.errors import InvalidFile
from evaluation.formats.tree import Kind, Limits, Node, Problems, TreeBuilder

PARQUET, ARROW = b"PAR1", (b"ARROW1", b"\xff\xff\xff\xff")
_INDEX = "__index_level_0__"  # pandas' row numbers
_AT_ONCE = 256  # rows


def read_columnar(data: bytes, problems: Problems, limits: Limits) -> Node:
    """The rows as maps, numbered from 1. A number stands as a table's cell does, so that it may be an id.

    :raises InvalidFile: without the extra, for a broken file, and for one that has too many rows, columns or bytes
        once unpacked.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        problems.stop("arrow_not_installed")
    try:
        source = pyarrow.BufferReader(data)
        if data.startswith(PARQUET):
            file = pyarrow.parquet.ParquetFile(source)
            parts = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            _guard(file.metadata.num_rows, sum(part.total_byte_size for part in parts), problems, limits)
            names, batches = file.schema_arrow.names, file.iter_batches(batch_size=_AT_ONCE)
        elif data.startswith(ARROW[0]):
            opened = pyarrow.ipc.open_file(source)
            names = opened.schema.names
            batches = (opened.get_batch(number) for number in range(opened.num_record_batches))
        else:
            batches = pyarrow.ipc.open_stream(source)
            names = batches.schema.names
        if len(names) > limits.columns:
            problems.stop("too_many_columns", limit=limits.columns)
        return _table(batches, problems, limits)
    except InvalidFile:
        raise
    except Exception as error:  # noqa: BLE001 - a foreign parser on hostile bytes raises anything
        problems.stop("columnar_broken", detail=f"{type(error).__name__}: {str(error)[:200]}")


def _guard(rows: int, size: int, problems: Problems, limits: Limits) -> None:
    if rows > limits.rows:
        problems.stop("too_many_rows", limit=limits.rows)
    if size > limits.inflated:
        problems.stop("workbook_too_large", limit=limits.inflated)


def _table(batches: Iterable[Any], problems: Problems, limits: Limits) -> Node:
    builder = TreeBuilder(problems, limits)
    nodes: list[Node] = []
    size = 0
    binary: set[str] = set()
    for batch in batches:
        batch.validate(full=True)  # a damaged place of a text would be read beyond the memory, and end the process
        size += batch.nbytes
        _guard(len(nodes) + batch.num_rows, size, problems, limits)
        for row in _rows(batch):
            builder.restart()
            entries = {name: value for name, value in row.items() if name != _INDEX or value != len(nodes)}
            binary |= {name for name, value in entries.items() if isinstance(value, bytes)}
            _feed(builder, entries, len(nodes) + 1)
            assert builder.root is not None  # noqa: S101  -- tells the type checker
            nodes.append(builder.root)
    if binary:
        problems.remark("columns_not_read", columns=", ".join(sorted(binary)))
    return Node(Kind.LIST, nodes, 1)


def _rows(batch: Any) -> Iterator[dict[str, Any]]:
    for first in range(0, batch.num_rows, _AT_ONCE):
        yield from batch.slice(first, _AT_ONCE).to_pylist()


def _feed(builder: TreeBuilder, value: Any, line: int) -> None:
    """A value as events; bytes and what is not finite become nothing."""
    if isinstance(value, Mapping):
        builder.open_map(line)
        for key, one in value.items():
            builder.key(str(key), line)
            _feed(builder, one, line)
        builder.close()
    elif isinstance(value, list | tuple):
        builder.open_list(line)
        for one in value:
            _feed(builder, one, line)
        builder.close()
    elif value is None or isinstance(value, bytes) or (isinstance(value, float) and not math.isfinite(value)):
        builder.scalar(Kind.NULL, None, line)
    elif isinstance(value, bool):
        builder.scalar(Kind.BOOLEAN, value, line, str(value))
    elif isinstance(value, str):
        builder.scalar(Kind.TEXT, value, line)
    else:
        text = value.isoformat() if isinstance(value, datetime | date | time) else str(value)
        builder.scalar(Kind.CELL, text, line, text)
