"""Files of answers and questions read row by row, in memory that does not grow with the file: JSON Lines, CSV, and
JSON whose root is a list. Everything else, and what is small, is read as a whole.

A row's problems are collected as the whole reader collects them; that there are any is told at the end, so whoever
takes rows keeps them aside until then.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from typing import Any, BinaryIO, ClassVar, NamedTuple, Protocol

from evaluation.core.errors import InvalidFile
from evaluation.core.samples import QuestionSpec
from evaluation.formats.answer_rows import AnswerFacts, AnswerReader, AnswerRow, list_in
from evaluation.formats.aside import AsideById, KeptAside
from evaluation.formats.question_rows import QuestionFile, QuestionReader
from evaluation.formats.quick_json import QuickReader
from evaluation.formats.reading import (
    ANSWER_FORMATS,
    FileFormat,
    display_name,
    format_by_content,
    is_binary,
    read_questions,
    rows_of_file,
)
from evaluation.formats.record_formats import record_formats
from evaluation.formats.sections import Placed
from evaluation.formats.shaping import ANSWERS, QUESTIONS, SAMPLE, RecordReader, Shape, reader_of, recognised, shaped
from evaluation.formats.tables import SEPARATOR_LINE, delimiter_of, read_header, read_row
from evaluation.formats.text_trees import JSONSyntax, scan_json
from evaluation.formats.tree import FileTree, Kind, Limits, Node, Problems, TreeBuilder

SMALL_BYTES = 2 * 1024 * 1024  # up to here a file is read as a whole
HEAD_BYTES = 1024 * 1024  # by which the format is told
LONGEST_ROW = 20 * 1024 * 1024
#: Of one row; what the whole file may hold is no matter here.
_LIMITS = replace(Limits(), nodes=2**62)


class Source(Protocol):
    """A file that can be opened more than once; ``size`` in bytes."""

    @property
    def size(self) -> int: ...

    def open(self) -> BinaryIO: ...


@dataclass(frozen=True, slots=True)
class Content:
    """A file that is in memory already."""

    data: bytes

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.data)

    def open(self) -> BinaryIO:
        """The content from its start."""
        return io.BytesIO(self.data)


class _Record(NamedTuple):
    """A record, and the first byte behind it."""

    node: Node
    end: int


class _RowStream:
    """The rows of a file, one after the other. ``at`` is how many bytes of ``size`` have been read. ``max_bytes`` holds
    for what is read as a whole, ``max_rows`` for the others, ``None`` being no limit."""

    wanted: ClassVar[str]

    def __init__(
        self,
        source: Source,
        name: str,
        *,
        shape: Shape | None = None,
        max_bytes: int | None = None,
        max_rows: int | None = None,
    ) -> None:
        self.problems = Problems(display_name(name))
        self.size, self.at = source.size, 0
        self._source, self._shape = source, shape
        self._max_bytes, self._max_rows = max_bytes, max_rows
        self._shaping: RecordReader | None = None

    @property
    def limit(self) -> int:
        """Of the bytes that are read as a whole."""
        return self.size if self._max_bytes is None else self._max_bytes

    def data(self) -> bytes:
        """The file as a whole."""
        if self.size > self.limit:
            self.problems.stop("file_too_large", size=self.size, limit=self.limit)
        with self._source.open() as file:
            return file.read(self.limit + 1)

    def _nodes(self, form: FileFormat, problems: Problems) -> Iterator[Node]:
        """What is read of the file from its start, by its shape."""
        with self._source.open() as file:
            records = _READERS[form](file, self._head, problems)
            first = list(islice(records, SAMPLE))
            self._shape = self._shape or recognised(Node(Kind.LIST, [one.node for one in first], 1))
            if self._shape:
                self._shaping = reader_of(self._shape, self.wanted, problems)
            for number, (node, end) in enumerate(chain(first, records), start=1):
                if self._max_rows is not None and number > self._max_rows:
                    problems.stop("too_many_rows", node.line, limit=self._max_rows)
                self.at = end
                made = self._shaping.row(node) if self._shaping and node.kind is Kind.MAP else node
                if made is not None:
                    yield made
        self.at = self.size

    def _tree(self, form: FileFormat, *, any_row: bool) -> FileTree:
        """What is to be told of the file behind its last row."""
        tree = FileTree(Node(Kind.LIST, [], 1), form.value, "utf-8-sig" if self._marked else "utf-8")
        if self._shape and self._shaping:
            tree = self._shaping.told(tree, self._shape, self.wanted, any_row=any_row)
        return tree

    def _streamed_form(self) -> FileFormat | None:
        """The format, where the file can be read row by row."""
        with self._source.open() as file:
            head = file.read(HEAD_BYTES)
        self._marked, self._head = head.startswith(codecs.BOM_UTF8), head.decode(errors="ignore")
        if self.size <= SMALL_BYTES or is_binary(head) or any(form.may_begin(head) for form in record_formats()):
            return None
        try:
            text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
        except UnicodeDecodeError:
            return None
        form = format_by_content(text, self.problems.file)
        if form not in _READERS:
            return None
        if form == FileFormat.JSON and not text.lstrip().startswith("["):
            return None
        if form == FileFormat.CSV and (text.lstrip("\n")[:1] in {",", ";", "\t"} or SEPARATOR_LINE.match(text)):
            return None  # a column without a name, such as pandas' index, which only all of its cells tell; or sep=;
        return FileFormat(form)


class AnswerStream(_RowStream):
    """The answers of a file; ``facts`` are known behind the last one.

    :raises InvalidFile: by the iteration, where the file cannot be read on, and at its end with every problem.
    """

    wanted = ANSWERS
    facts: AnswerFacts | None = None

    def __iter__(self) -> Iterator[AnswerRow]:
        """Read the file from its start."""
        form, reader = self._streamed_form(), AnswerReader(self.problems)
        about: dict[str, Any] = {}
        if form is None:
            tree = rows_of_file(self.data(), self.problems, ANSWER_FORMATS, self.limit)
            tree = shaped(tree, ANSWERS, self._shape, self.problems)
            found, about = list_in(tree.root, ("answers", "results"), self.problems)
            self.at = self.size
            yield from filter(None, map(reader.read, found.elements))
        else:
            yield from filter(None, map(reader.read, self._nodes(form, self.problems)))
            tree = self._tree(form, any_row=reader.seen > 0)
        self.facts = reader.facts(tree, about)


class _QuestionStream(_RowStream):
    wanted = QUESTIONS

    def read(self, group_by: str) -> QuestionFile | None:
        """The questions; ``None`` where the file is to be read as a whole."""
        if self.size > self.limit or (form := self._streamed_form()) is None:
            return None
        reader = QuestionReader(self.problems, group_by)
        with suppress(InvalidFile):  # raised again by the second reading
            reader.settle(self._nodes(form, Problems(self.problems.file)))
        questions, metadata = KeptAside[QuestionSpec](), AsideById[dict[str, Any]]()
        for question, rest in filter(None, map(reader.read, map(Placed, self._nodes(form, self.problems)))):
            questions.append(question)
            metadata.add(question.id, rest)
        return reader.file(self._tree(form, any_row=reader.seen > 0), {}, questions, metadata)


def read_question_set(
    source: Source,
    name: str,
    *,
    group_by: str = "",
    shape: Shape | None = None,
    qrels: bytes = b"",
    max_bytes: int | None = None,
) -> QuestionFile:
    """The same as :func:`read_questions`; of what can be read row by row questions and metadata are kept aside.

    :raises InvalidFile: with every problem found.
    """
    stream = _QuestionStream(source, name, shape=shape, max_bytes=max_bytes)
    if not qrels and (found := stream.read(group_by)):  # judgements are of all questions
        return found
    limit = max(source.size, len(qrels)) if max_bytes is None else max_bytes
    return read_questions(stream.data(), name, group_by=group_by, shape=shape, qrels=qrels, max_bytes=limit)


def _decoded(data: bytes, line: int, problems: Problems) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.stop("encoding_damaged", line + data.count(b"\n", 0, error.start), byte=f"0x{data[error.start]:02X}")


def _lines(file: BinaryIO, problems: Problems) -> Iterator[tuple[int, str, int]]:
    """Number, text and end of each line."""
    end = 0
    for number in count(1):
        data = file.readline(LONGEST_ROW + 1)
        if not data:
            return
        if len(data) > LONGEST_ROW:
            problems.stop("text_too_long", number, length=len(data), limit=LONGEST_ROW)
        end += len(data)
        text = _decoded(data, number, problems)
        yield number, text.removeprefix("\ufeff") if number == 1 else text, end


def _json_lines(file: BinaryIO, head: str, problems: Problems) -> Iterator[_Record]:
    builder, quick = TreeBuilder(problems, _LIMITS), QuickReader(_LIMITS)
    for number, text, end in _lines(file, problems):
        if not text.strip():
            continue
        if (node := quick.read(text, number)) is not None:
            yield _Record(node, end)
            continue
        builder.restart()
        try:
            scan_json(text.rstrip("\r\n"), number, builder)
        except JSONSyntax as error:
            problems.add("json_syntax", number, detail=error.detail, column=error.column)
        if builder.root is not None:
            yield _Record(builder.root, end)


def _table(file: BinaryIO, head: str, problems: Problems) -> Iterator[_Record]:
    end = 0
    _, delimiter = delimiter_of(head, problems)

    def texts() -> Iterator[str]:
        nonlocal end
        for _, text, end in _lines(file, problems):  # noqa: B007 -- read by the loop below
            yield text

    builder = TreeBuilder(problems, _LIMITS)
    header: list[str] = []
    number = 0
    try:
        for number, cells in enumerate(csv.reader(texts(), delimiter=delimiter, strict=True), 1):
            if number == 1:
                header = read_header(cells, problems)
                if len(header) > _LIMITS.columns:
                    problems.stop("too_many_columns", 1, limit=_LIMITS.columns)
            elif any(cell.strip() for cell in cells) and (node := read_row(header, cells, number, builder)):
                yield _Record(node, end)
    except csv.Error as error:
        problems.stop("csv_syntax", number + 1, detail=str(error))


def _json_list(file: BinaryIO, head: str, problems: Problems) -> Iterator[_Record]:
    builder, quick = TreeBuilder(problems, _LIMITS), QuickReader(_LIMITS)
    for data, line, column, end in _elements(file, problems):
        text = _decoded(data, line, problems)
        if "\n" not in text and (node := quick.read(text, line)) is not None:
            yield _Record(node, end)
            continue
        builder.restart()
        try:
            scan_json(text, line, builder)
        except JSONSyntax as error:
            before = column if error.line == line else 0
            problems.stop("json_syntax", error.line, detail=error.detail, column=error.column + before)
        if builder.root is not None:
            yield _Record(builder.root, end)


_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*("?)|[\[\]{},\n]', re.DOTALL)
_PIECE = 1024 * 1024


def _elements(file: BinaryIO, problems: Problems) -> Iterator[tuple[bytes, int, int, int]]:
    """The elements of a list as they are written, each with the line and the column it begins in and its end. What is
    no bracket, comma or text is nobody's business here."""
    data, base = b"", 0  # what is held of the file, and where that begins
    scanned = depth = begin = 0  # within ``data``; ``begin`` of the present element
    line = began_in = 1
    line_at = column = 0  # where the present line begins in the file
    found = 0
    while True:
        held = len(data) - begin
        # As much again as is held: a long text is looked through anew with each piece, which stays linear so.
        if not (piece := file.read(max(_PIECE, min(held, LONGEST_ROW - held)))):
            break
        base, data = base + begin, data[begin:] + piece
        scanned, begin = scanned - begin, 0
        if len(data) > LONGEST_ROW + _PIECE:
            problems.stop("text_too_long", began_in, length=len(data), limit=LONGEST_ROW)
        for token in _TOKEN.finditer(data, scanned):
            sign, place = data[token.start() : token.start() + 1], token.start()
            if sign == b'"':
                if not token[1]:
                    scanned = place  # the text goes on in the next piece
                    break
            elif sign == b"\n":
                line, line_at = line + 1, base + place + 1
            elif sign in b"[{":
                depth += 1
            elif depth == 1 and sign in b",]":
                if sign == b"," or found or data[begin:place].strip():
                    yield data[begin:place], began_in, column, base + token.end()
                found += 1
            depth -= sign in b"]}"
            if (depth == 1 and sign in b"[,") or not depth:
                begin, began_in, column = token.end(), line, base + token.end() - line_at
            scanned = token.end()
    if depth or data[begin:].strip():
        wrong = "something follows the end of the value" if not depth else "a comma or ] is missing"
        problems.stop("json_syntax", line, detail=wrong, column=1)


_READERS: dict[FileFormat, Callable[[BinaryIO, str, Problems], Iterator[_Record]]] = {
    FileFormat.JSONL: _json_lines,
    FileFormat.CSV: _table,
    FileFormat.JSON: _json_list,
}
