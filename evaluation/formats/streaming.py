"""Read answer and question files row by row in constant memory: JSON Lines, CSV, and JSON with a list as root.

Other and small files are read as a whole. Problems are collected as by the whole-file reader and raised at the end, so
callers must spool the rows until then."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from operator import itemgetter
from typing import Any, BinaryIO, ClassVar, NamedTuple, Protocol

from evaluation.core.errors import InvalidFile
from evaluation.core.samples import QuestionSpec
from evaluation.formats.answer_rows import AnswerFacts, AnswerReader, AnswerRow, find_rows
from evaluation.formats.question_rows import QuestionFile, QuestionReader
from evaluation.formats.quick_json import QuickReader
from evaluation.formats.reading import (
    ANSWER_FORMATS,
    FileFormat,
    display_name,
    format_by_content,
    is_binary,
    read_questions,
    read_record_tree,
)
from evaluation.formats.record_formats import record_formats
from evaluation.formats.sections import PlacedRow
from evaluation.formats.shaping import (
    ANSWERS,
    QUESTIONS,
    SAMPLE_ROWS,
    RecordReader,
    Shape,
    apply_shape,
    recognise_shape,
    record_reader,
    refuse_unknown_columns,
)
from evaluation.formats.spool import SpooledIndex, SpooledSequence
from evaluation.formats.tables import SEPARATOR_LINE, CsvTable, detect_delimiter, skip_titles
from evaluation.formats.text_trees import JSONSyntaxError, scan_json
from evaluation.formats.tree import FileTree, Limits, Node, NodeKind, Problems, TreeBuilder

# Smaller files are read as a whole.
SMALL_BYTES = 2 * 1024 * 1024
# Number of bytes from which the format is detected.
HEAD_BYTES = 1024 * 1024
MAX_ROW_BYTES = 20 * 1024 * 1024
#: Limits of one row; the file itself may have any number of nodes.
_LIMITS = replace(Limits(), nodes=2**62)


class Source(Protocol):
    """A file that can be opened repeatedly; ``size`` is in bytes."""

    @property
    def size(self) -> int: ...

    def open(self) -> BinaryIO: ...


@dataclass(frozen=True, slots=True)
class MemorySource:
    """A file in memory."""

    data: bytes

    @property
    def size(self) -> int:
        return len(self.data)

    def open(self) -> BinaryIO:
        return io.BytesIO(self.data)


class _StreamedRecord(NamedTuple):
    """A record and its end offset in the file."""

    node: Node
    end: int


class _RowStream:
    """Iterates over the rows of a file.

    ``bytes_read`` of ``size`` is the progress; ``on_progress`` is called with it after each row. ``max_bytes`` limits
    files that are read as a whole, ``max_rows`` streamed ones; ``None`` means no limit."""

    kind: ClassVar[str]

    def __init__(
        self,
        source: Source,
        name: str,
        *,
        shape: Shape | None = None,
        max_bytes: int | None = None,
        max_rows: int | None = None,
        on_progress: Callable[[int], object] = lambda _: None,
    ) -> None:
        self.problems, self._on_progress = Problems(display_name(name)), on_progress
        self.size, self.bytes_read = source.size, 0
        self._source, self._shape = source, shape
        self._max_bytes, self._max_rows = max_bytes, max_rows
        self._record_reader: RecordReader | None = None

    @property
    def limit(self) -> int:
        """Maximum number of bytes to read as a whole."""
        return self.size if self._max_bytes is None else self._max_bytes

    def read_all(self) -> bytes:
        if self.size > self.limit:
            self.problems.stop("file_too_large", size=self.size, limit=self.limit)
        with self._source.open() as file:
            return file.read(self.limit + 1)

    def _nodes(self, file_format: FileFormat, problems: Problems) -> Iterator[Node]:
        """Yield the rows from the start of the file, mapped by its shape."""
        with self._source.open() as file:
            records = _READERS[file_format](file, self._head, problems)
            sample = list(islice(records, SAMPLE_ROWS))
            self._shape = self._shape or recognise_shape(Node(NodeKind.LIST, [record.node for record in sample], 1))
            if self._shape is None:
                refuse_unknown_columns([record.node for record in sample], self.kind, problems)
            else:
                self._record_reader = record_reader(self._shape, self.kind, problems)
            for number, (node, end) in enumerate(chain(sample, records), start=1):
                if self._max_rows is not None and number > self._max_rows:
                    problems.stop("too_many_rows", node.line, limit=self._max_rows)
                self.bytes_read = end
                self._on_progress(end)
                row = self._record_reader.read_row(node) if self._record_reader and node.kind is NodeKind.MAP else node
                if row is not None:
                    yield row
        self.bytes_read = self.size

    def _build_tree(self, file_format: FileFormat, *, has_rows: bool) -> FileTree:
        """Return an empty tree with the format, encoding and columns of the file, after its last row."""
        tree = FileTree(Node(NodeKind.LIST, [], 1), file_format.value, "utf-8-sig" if self._has_bom else "utf-8")
        if self._shape and self._record_reader:
            tree = self._record_reader.finish_tree(tree, self._shape, self.kind, has_rows=has_rows)
        return tree

    def _detect_streamable_format(self) -> FileFormat | None:
        """Return the format if the file can be streamed, else ``None``."""
        with self._source.open() as file:
            head = file.read(HEAD_BYTES)
        self._has_bom, self._head = head.startswith(codecs.BOM_UTF8), head.decode(errors="ignore")
        if (
            self.size <= SMALL_BYTES
            or is_binary(head)
            or any(record_format.matches_head(head) for record_format in record_formats())
        ):
            return None
        try:
            text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
        except UnicodeDecodeError:
            return None
        file_format = format_by_content(text, self.problems.file)
        if file_format not in _READERS:
            return None
        if file_format == FileFormat.JSON and not text.lstrip().startswith("["):
            return None
        if file_format == FileFormat.CSV and (text.lstrip("\n")[:1] in {",", ";", "\t"} or SEPARATOR_LINE.match(text)):
            # A nameless column, such as pandas' index, is only recognised from all cells. ``sep=`` lines are not
            # streamed either.
            return None
        return FileFormat(file_format)


class AnswerStream(_RowStream):
    """Answers of a file; ``facts`` is set after the last one.

    :raises InvalidFile: during iteration if parsing fails, and at the end with every problem."""

    kind = ANSWERS
    facts: AnswerFacts | None = None

    def __iter__(self) -> Iterator[AnswerRow]:
        file_format, reader = self._detect_streamable_format(), AnswerReader(self.problems)
        set_metadata: dict[str, Any] = {}
        if file_format is None:
            tree = read_record_tree(self.read_all(), self.problems, ANSWER_FORMATS, self.limit)
            tree = apply_shape(tree, ANSWERS, self._shape, self.problems)
            rows, set_metadata = find_rows(tree.root, ("answers", "results"), self.problems)
            self.bytes_read = self.size
            yield from filter(None, map(reader.read, rows.elements))
        else:
            yield from filter(None, map(reader.read, self._nodes(file_format, self.problems)))
            tree = self._build_tree(file_format, has_rows=reader.row_count > 0)
        self.facts = reader.facts(tree, set_metadata)


class _QuestionStream(_RowStream):
    kind = QUESTIONS

    def read(self, group_by: str) -> QuestionFile | None:
        """Return the question set, or ``None`` if the file must be read as a whole."""
        if (file_format := self._detect_streamable_format()) is None:
            return None
        reader = QuestionReader(self.problems, group_by)
        # The second pass raises the problem again.
        with suppress(InvalidFile):
            reader.detect_system_answers(self._nodes(file_format, Problems(self.problems.file)))
        questions, metadata = SpooledSequence[QuestionSpec](), SpooledIndex[dict[str, Any]]()
        for question, row_metadata in filter(
            None, map(reader.read, map(PlacedRow, self._nodes(file_format, self.problems)))
        ):
            questions.append(question)
            metadata.add(question.id, row_metadata)
        return reader.build_file(self._build_tree(file_format, has_rows=reader.row_count > 0), {}, questions, metadata)


def read_question_set(
    source: Source,
    name: str,
    *,
    group_by: str = "",
    shape: Shape | None = None,
    qrels: bytes = b"",
    max_bytes: int | None = None,
    max_rows: int | None = None,
    on_progress: Callable[[int], object] = lambda _: None,
) -> QuestionFile:
    """Read a question set as :func:`read_questions` does; streamed files are spooled to temporary files and may have
    ``max_rows``. They are read twice; ``on_progress`` is called with the bytes read, after each row.

    :raises InvalidFile: with every problem."""
    stream = _QuestionStream(source, name, shape=shape, max_bytes=max_bytes, max_rows=max_rows, on_progress=on_progress)
    # Relevance judgements need all questions at once.
    if not qrels and (question_file := stream.read(group_by)):
        return question_file
    limit = max(source.size, len(qrels)) if max_bytes is None else max_bytes
    return read_questions(stream.read_all(), name, group_by=group_by, shape=shape, qrels=qrels, max_bytes=limit)


def _decode_utf8(data: bytes, line: int, problems: Problems) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.stop("encoding_damaged", line + data.count(b"\n", 0, error.start), byte=f"0x{data[error.start]:02X}")


def _lines(file: BinaryIO, problems: Problems) -> Iterator[tuple[int, str, int]]:
    """Yield number, text and end offset of each line."""
    end = 0
    for number in count(1):
        data = file.readline(MAX_ROW_BYTES + 1)
        if not data:
            return
        if len(data) > MAX_ROW_BYTES:
            problems.stop("text_too_long", number, length=len(data), limit=MAX_ROW_BYTES)
        end += len(data)
        text = _decode_utf8(data, number, problems)
        yield number, text.removeprefix("\ufeff") if number == 1 else text, end


def _json_lines(file: BinaryIO, head: str, problems: Problems) -> Iterator[_StreamedRecord]:
    builder, quick_reader = TreeBuilder(problems, _LIMITS), QuickReader(_LIMITS)
    for number, text, end in _lines(file, problems):
        if not text.strip():
            continue
        if (node := quick_reader.read(text, number)) is not None:
            yield _StreamedRecord(node, end)
            continue
        builder.restart()
        try:
            scan_json(text.rstrip("\r\n"), number, builder)
        except JSONSyntaxError as error:
            problems.add("json_syntax", number, detail=error.detail, column=error.column)
        if builder.root is not None:
            yield _StreamedRecord(builder.root, end)


def _table(file: BinaryIO, head: str, problems: Problems) -> Iterator[_StreamedRecord]:
    end = 0
    _, delimiter = detect_delimiter(head, problems)

    def iterate_lines() -> Iterator[str]:
        nonlocal end
        for _, text, end in _lines(file, problems):  # noqa: B007 -- read by the rows below
            yield text

    reader = csv.reader(iterate_lines(), delimiter=delimiter, strict=True)
    # Keeps the end of each row, because titles are looked for several rows ahead.
    rows = ((number, cells, end) for number, cells in enumerate(reader, 1))

    table = CsvTable(TreeBuilder(problems, _LIMITS))
    number = 0
    try:
        for number, cells, row_end in skip_titles(rows, itemgetter(1), problems):
            if node := table.read(cells, number):
                yield _StreamedRecord(node, row_end)
    except csv.Error as error:
        problems.stop("csv_syntax", number + 1, detail=str(error))


def _json_list(file: BinaryIO, head: str, problems: Problems) -> Iterator[_StreamedRecord]:
    builder, quick_reader = TreeBuilder(problems, _LIMITS), QuickReader(_LIMITS)
    for data, line, column, end in _elements(file, problems):
        text = _decode_utf8(data, line, problems)
        if "\n" not in text and (node := quick_reader.read(text, line)) is not None:
            yield _StreamedRecord(node, end)
            continue
        builder.restart()
        try:
            scan_json(text, line, builder)
        except JSONSyntaxError as error:
            column_offset = column if error.line == line else 0
            problems.stop("json_syntax", error.line, detail=error.detail, column=error.column + column_offset)
        if builder.root is not None:
            yield _StreamedRecord(builder.root, end)


_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*("?)|[\[\]{},\n]', re.DOTALL)
_CHUNK_BYTES = 1024 * 1024


def _elements(file: BinaryIO, problems: Problems) -> Iterator[tuple[bytes, int, int, int]]:
    """Yield each element of a JSON list as raw bytes, with its start line, start column and end offset.

    Only brackets, commas, strings and line breaks are scanned."""
    # Buffered bytes, and their offset in the file.
    data, base = b"", 0
    # Positions within ``data``; ``start`` is that of the current element.
    scanned = depth = start = 0
    line = start_line = 1
    # Offset of the current line in the file.
    line_offset = column = 0
    element_count = 0
    while True:
        pending = len(data) - start
        # Doubling the buffer keeps the rescan of a long string linear.
        if not (chunk := file.read(max(_CHUNK_BYTES, min(pending, MAX_ROW_BYTES - pending)))):
            break
        base, data = base + start, data[start:] + chunk
        scanned, start = scanned - start, 0
        if len(data) > MAX_ROW_BYTES + _CHUNK_BYTES:
            problems.stop("text_too_long", start_line, length=len(data), limit=MAX_ROW_BYTES)
        for token in _TOKEN.finditer(data, scanned):
            char, offset = data[token.start() : token.start() + 1], token.start()
            if char == b'"':
                if not token[1]:
                    # The string continues in the next chunk.
                    scanned = offset
                    break
            elif char == b"\n":
                line, line_offset = line + 1, base + offset + 1
            elif char in b"[{":
                depth += 1
            elif depth == 1 and char in b",]":
                if char == b"," or element_count or data[start:offset].strip():
                    yield data[start:offset], start_line, column, base + token.end()
                element_count += 1
            depth -= char in b"]}"
            if (depth == 1 and char in b"[,") or not depth:
                start, start_line, column = token.end(), line, base + token.end() - line_offset
            scanned = token.end()
    if depth or data[start:].strip():
        detail = "extra content after the end of the value" if not depth else "a comma or ] is missing"
        problems.stop("json_syntax", line, detail=detail, column=1)


_READERS: dict[FileFormat, Callable[[BinaryIO, str, Problems], Iterator[_StreamedRecord]]] = {
    FileFormat.JSONL: _json_lines,
    FileFormat.CSV: _table,
    FileFormat.JSON: _json_list,
}
