"""Read Parquet and Arrow (IPC file or stream) into a parse tree, batch by batch. Requires the extra ``arrow``."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any

from evaluation.core.errors import InvalidFile
from evaluation.formats.tree import Limits, Node, NodeKind, Problems, TreeBuilder

PARQUET_MAGIC, ARROW_MAGIC = b"PAR1", (b"ARROW1", b"\xff\xff\xff\xff")
# Column in which pandas stores row numbers.
_PANDAS_INDEX_COLUMN = "__index_level_0__"

# Rows of one batch, and limits of the process that unpacks: seconds, and bytes of memory beside those of the file.
_BATCH_ROWS, _SECONDS, _MEMORY = 256, 60, 400_000_000
_UNPACK_SCRIPT = """
import resource, sys
memory, seconds, size, rows, columns, batch_rows = map(int, sys.argv[1:])
for kind, limit in ((resource.RLIMIT_AS, memory), (resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
    resource.setrlimit(kind, (limit, limit))
import pyarrow, pyarrow.parquet
def unpack(data):
    source = pyarrow.BufferReader(data)
    if data.startswith(b"PAR1"):
        file = pyarrow.parquet.ParquetFile(source)
        yield file.schema_arrow
        yield from file.iter_batches(batch_size=batch_rows, use_threads=False)
    elif data.startswith(b"ARROW1"):
        reader = pyarrow.ipc.open_file(source)
        yield reader.schema
        yield from (reader.get_batch(number) for number in range(reader.num_record_batches))
    else:
        reader = pyarrow.ipc.open_stream(source)
        yield reader.schema
        yield from reader
try:
    batches = unpack(sys.stdin.buffer.read())
    schema = next(batches)
    if len(schema) > columns:
        sys.exit("too_many_columns")
    with pyarrow.ipc.new_stream(sys.stdout.buffer, schema) as writer:
        for batch in batches:
            # A damaged text offset would read outside the buffer and crash the process.
            batch.validate(full=True)
            rows -= batch.num_rows
            size -= batch.nbytes
            if rows < 0 or size < 0:
                sys.exit("too_many_rows" if rows < 0 else "workbook_too_large")
            writer.write_batch(batch)
except MemoryError:
    sys.exit("workbook_too_large")
except Exception as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def read_columnar(data: bytes, problems: Problems, limits: Limits) -> Node:
    """Return the rows as maps, numbered from 1. Numbers keep their text, as cells of a table do, so that they can serve
    as ids.

    :raises InvalidFile: if the extra is missing, the file is broken, or it has too many rows, columns or unpacked
    bytes."""
    try:
        import pyarrow
    except ImportError:
        problems.stop("arrow_not_installed")
    unpacked = _unpack(data, problems, limits)
    try:
        return _read_batches(pyarrow.ipc.open_stream(unpacked), problems, limits)
    except InvalidFile:
        raise
    except Exception as error:  # noqa: BLE001 - values that Python cannot represent raise anything
        problems.stop("columnar_broken", detail=f"{type(error).__name__}: {str(error)[:200]}")


def _unpack(data: bytes, problems: Problems, limits: Limits) -> bytes:
    """Return the file as an uncompressed Arrow stream.

    A few kilobytes may declare any amount of memory, or crash the parser. A process of its own bounds both."""
    memory = _MEMORY + 2 * (len(data) + limits.unpacked_bytes)
    arguments = (memory, _SECONDS, limits.unpacked_bytes, limits.rows, limits.columns, _BATCH_ROWS)
    try:
        process = subprocess.run(  # noqa: S603 - a script of ours; the file is its input
            [sys.executable, "-I", "-c", _UNPACK_SCRIPT, *map(str, arguments)],
            input=data,
            capture_output=True,
            timeout=2 * _SECONDS,
            check=False,
            # Other pools reserve a gigabyte of addresses.
            env={"ARROW_DEFAULT_MEMORY_POOL": "system"},
        )
    except subprocess.TimeoutExpired:
        problems.stop("columnar_broken", detail=f"{_SECONDS} s")
    reason = process.stderr.decode("utf-8", "replace").strip()
    bounds = {
        "too_many_columns": limits.columns,
        "too_many_rows": limits.rows,
        "workbook_too_large": limits.unpacked_bytes,
    }
    if reason in bounds:
        problems.stop(reason, limit=bounds[reason])
    if process.returncode:
        problems.stop("columnar_broken", detail=reason[:200] or f"status {process.returncode}")
    return process.stdout


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
