"""Read Parquet and Arrow (IPC file or stream) into a parse tree, batch by batch. Requires the extra ``arrow``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any

from evaluation.core.errors import InvalidFile
from evaluation.formats.tree import Limits, Node, NodeKind, Problems, TreeBuilder

PARQUET_MAGIC, ARROW_MAGIC = b"PAR1", (b"ARROW1", b"\xff\xff\xff\xff")
# Column in which pandas stores row numbers.
_PANDAS_INDEX_COLUMN = "__index_level_0__"
_BATCH_ROWS = 256


def read_columnar(data: bytes, problems: Problems, limits: Limits) -> Node:
    """Return the rows as maps, numbered from 1. Numbers keep their text, as cells of a table do, so that they can serve
    as ids.

    :raises InvalidFile: if the extra is missing, the file is broken, or it has too many rows, columns or unpacked
    bytes."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        problems.stop("arrow_not_installed")
    try:
        source = pyarrow.BufferReader(data)
        if data.startswith(PARQUET_MAGIC):
            file = pyarrow.parquet.ParquetFile(source)
            row_groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
            _check_size(
                file.metadata.num_rows, sum(row_group.total_byte_size for row_group in row_groups), problems, limits
            )
            names, batches = file.schema_arrow.names, file.iter_batches(batch_size=_BATCH_ROWS)
        elif data.startswith(ARROW_MAGIC[0]):
            reader = pyarrow.ipc.open_file(source)
            names = reader.schema.names
            batches = (reader.get_batch(number) for number in range(reader.num_record_batches))
        else:
            batches = pyarrow.ipc.open_stream(source)
            names = batches.schema.names
        if len(names) > limits.columns:
            problems.stop("too_many_columns", limit=limits.columns)
        return _read_batches(batches, problems, limits)
    except InvalidFile:
        raise
    except Exception as error:  # noqa: BLE001 - a foreign parser on hostile bytes raises anything
        problems.stop("columnar_broken", detail=f"{type(error).__name__}: {str(error)[:200]}")


def _check_size(rows: int, size: int, problems: Problems, limits: Limits) -> None:
    if rows > limits.rows:
        problems.stop("too_many_rows", limit=limits.rows)
    if size > limits.unpacked_bytes:
        problems.stop("workbook_too_large", limit=limits.unpacked_bytes)


def _read_batches(batches: Iterable[Any], problems: Problems, limits: Limits) -> Node:
    """Build a list node of all rows. Drops pandas' default row numbers; reports binary columns, whose values become
    null."""
    builder = TreeBuilder(problems, limits)
    nodes: list[Node] = []
    size = text_length = 0
    binary_columns: set[str] = set()
    for batch in batches:
        # A damaged text offset would read outside the buffer and crash the process.
        batch.validate(full=True)
        size += batch.nbytes
        _check_size(len(nodes) + batch.num_rows, size, problems, limits)
        for row in _rows(batch):
            builder.restart()
            text_length += _text_length(row)
            _check_size(len(nodes), text_length, problems, limits)
            entries = {
                name: value for name, value in row.items() if name != _PANDAS_INDEX_COLUMN or value != len(nodes)
            }
            binary_columns |= {name for name, value in entries.items() if isinstance(value, bytes)}
            _feed(builder, entries, len(nodes) + 1)
            assert builder.root is not None  # noqa: S101  -- tells the type checker
            nodes.append(builder.root)
    if binary_columns:
        problems.remark("columns_not_read", columns=", ".join(sorted(binary_columns)))
    return Node(NodeKind.LIST, nodes, 1)


def _rows(batch: Any) -> Iterator[dict[str, Any]]:
    """Yield rows as dictionaries. Values that rows share in the file are copied for each, so such rows come singly."""
    shares_values = any(
        kind in str(column.type) for column in batch.schema for kind in ("dictionary", "view", "run_end_encoded")
    )
    step = 1 if shares_values else _BATCH_ROWS
    for first in range(0, batch.num_rows, step):
        yield from batch.slice(first, step).to_pylist()


def _text_length(value: Any) -> int:
    if isinstance(value, Mapping):
        return sum(map(_text_length, value.values()))
    if isinstance(value, list | tuple):
        return sum(map(_text_length, value))
    return len(value) if isinstance(value, str) else 0


def _feed(builder: TreeBuilder, value: Any, line: int) -> None:
    """Feed a value to the builder as events; bytes and non-finite numbers become null."""
    if isinstance(value, Mapping):
        builder.open_map(line)
        for key, child in value.items():
            builder.key(str(key), line)
            _feed(builder, child, line)
        builder.close()
    elif isinstance(value, list | tuple):
        builder.open_list(line)
        for child in value:
            _feed(builder, child, line)
        builder.close()
    elif value is None or isinstance(value, bytes) or (isinstance(value, float) and not math.isfinite(value)):
        builder.scalar(NodeKind.NULL, None, line)
    elif isinstance(value, bool):
        builder.scalar(NodeKind.BOOLEAN, value, line, str(value))
    elif isinstance(value, str):
        builder.scalar(NodeKind.TEXT, value, line)
    else:
        text = value.isoformat() if isinstance(value, datetime | date | time) else str(value)
        builder.scalar(NodeKind.CELL, text, line, text)
