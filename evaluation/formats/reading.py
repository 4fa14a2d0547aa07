"""Entry points of the file readers: bytes and a name to a typed file, or every problem.

The format is detected from the content first and from the name second."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NoReturn

from evaluation.core.scales import Scale
from evaluation.formats.answer_rows import AnswerFile, answer_file
from evaluation.formats.columnar import ARROW_MAGIC, PARQUET_MAGIC, read_columnar
from evaluation.formats.label_studio import read_annotations
from evaluation.formats.question_rows import QuestionFile, question_file
from evaluation.formats.rating_rows import RatingFile, rating_file
from evaluation.formats.record_formats import record_formats
from evaluation.formats.shaping import ANSWERS, QUESTIONS, Shape, apply_shape
from evaluation.formats.tables import read_csv, read_xlsx, transpose_columns
from evaluation.formats.text_trees import read_json, read_json_lines, read_yaml
from evaluation.formats.trec import QRELS, RUN, TOPICS, detect_trec_form, read_qrels, read_run, read_topics
from evaluation.formats.tree import MAX_BYTES, FileTree, Limits, Node, Problems

_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
MAX_NAME_LENGTH = 100


def display_name(name: str) -> str:
    """Return the base name in NFC, at most 100 characters, with its extension.

    Invisible and direction-changing characters are spelled out (``U+202E``)."""
    base = re.split(r"[\\/]", name)[-1].strip() or "file"
    normalized = unicodedata.normalize("NFC", base)
    visible = "".join(f"U+{ord(c):04X}" if unicodedata.category(c) in _INVISIBLE else c for c in normalized)
    if len(visible) <= MAX_NAME_LENGTH:
        return visible
    return visible[: MAX_NAME_LENGTH - 21] + "…" + visible[-20:]


def file_extension(name: str) -> str:
    """Lower-case extension without dot, or empty."""
    _, dot, extension = display_name(name).rpartition(".")
    return extension.lower() if dot else ""


_EXTENSIONS = {
    "yaml": "yaml",
    "yml": "yaml",
    "json": "json",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "csv": "csv",
    "tsv": "csv",
    "xlsx": "xlsx",
    "parquet": "parquet",
    "arrow": "arrow",
    "feather": "arrow",
}
_ARCHIVES = (b"\x1f\x8b", b"BZh", b"7z\xbc\xaf\x27\x1c", b"Rar!", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd")
_BOM = b"\xef\xbb\xbf"
_UNICODE_BOMS = (b"\xff\xfe", b"\xfe\xff")
_HANGUL = re.compile("[가-힣]")
_HANGUL_PAIR = re.compile("[가-힣]{2}")
#: Encodings that a user can choose -> Python's name.
ENCODINGS = {"utf-8": "utf-8-sig", "utf-16": "utf-16", "cp949": "cp949", "cp1252": "cp1252"}
# Windows-1252.
WESTERN = "cp1252"


class FileFormat(StrEnum):
    """Readable file formats."""

    YAML = "yaml"
    JSON = "json"
    JSONL = "jsonl"
    CSV = "csv"
    XLSX = "xlsx"
    PARQUET = "parquet"
    ARROW = "arrow"
    TOPICS = TOPICS
    RUN = RUN
    QRELS = QRELS


@dataclass(frozen=True, slots=True)
class SniffedFile:
    """Detected format, text and encoding of a file.

    ``text`` has no byte order mark and is empty for binary formats. ``encoding`` is ``utf-8``, ``utf-8-sig``,
    ``utf-16``, ``cp949`` (which the preview reports), or empty for binary formats."""

    format: FileFormat
    text: str
    encoding: str


def sniff(data: bytes, name: str, problems: Problems, limits: Limits) -> SniffedFile:
    """Detect format and encoding.

    :raises InvalidFile: for an empty, too large or binary file, an unknown format, content that contradicts the name,
    and an ambiguous encoding."""
    if len(data) > limits.bytes:
        problems.stop("file_too_large", size=len(data), limit=limits.bytes)
    if not data.strip():
        problems.stop("file_empty")
    named_format = _EXTENSIONS.get(file_extension(name), "")
    if data.startswith(PARQUET_MAGIC):
        return SniffedFile(FileFormat.PARQUET, "", "")
    if data.startswith(ARROW_MAGIC):
        return SniffedFile(FileFormat.ARROW, "", "")
    if named_format == FileFormat.XLSX and data.startswith(b"PK\x03\x04"):
        return SniffedFile(FileFormat.XLSX, "", "")
    _refuse_binary(data, problems)
    if named_format == FileFormat.XLSX:
        problems.stop("file_not_workbook")
    if named_format in {FileFormat.PARQUET, FileFormat.ARROW}:
        problems.stop("file_not_columnar")
    text, encoding = decode(data, problems)
    if not text.strip():
        problems.stop("file_empty")
    if "\x00" in text:
        problems.stop("nul_character", text.count("\n", 0, text.index("\x00")) + 1)
    detected = _detect_format(text, named_format)
    if not detected:
        problems.stop("format_unknown", known=", ".join(FileFormat))
    return SniffedFile(FileFormat(detected), text, encoding)


def is_binary(head: bytes) -> bool:
    """Return whether a file head is not UTF-8 text or belongs to a refused format."""
    signatures = (
        b"PK\x03\x04",
        b"PK\x05\x06",
        b"\xd0\xcf\x11\xe0",
        PARQUET_MAGIC,
        *ARROW_MAGIC,
        *_ARCHIVES,
        *_UNICODE_BOMS,
    )
    return head.startswith(signatures) or b"%PDF" in head[:1024] or b"\x00" in head


def format_by_content(text: str, name: str) -> str:
    """Detect the format of a text with this file name; empty if unknown."""
    return _detect_format(text, _EXTENSIONS.get(file_extension(name), ""))


def _refuse_binary(data: bytes, problems: Problems) -> None:
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06", *_ARCHIVES)):
        problems.stop("file_archive")
    if data[:1024].lstrip().startswith(b"%PDF"):
        problems.stop("file_pdf")
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        problems.stop("file_old_excel")


def decode(data: bytes, problems: Problems) -> tuple[str, str]:
    """Decode UTF-16 with a byte order mark, UTF-8, or CP949 if the result is Korean; returns text and encoding.

    Other encodings, such as Windows-1252, are refused until the user names one. Damaged UTF-8 is never decoded as
    another encoding."""
    try:
        if data.startswith(_UNICODE_BOMS):
            return data.decode("utf-16"), "utf-16"
        if data.startswith(_BOM):
            return data.decode("utf-8-sig"), "utf-8-sig"
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        line, byte = data.count(b"\n", 0, error.start) + 1, data[error.start]
    if data.startswith(_UNICODE_BOMS):
        problems.stop("encoding_utf16", byte=f"0x{byte:02X}")
    lossy = data.decode("utf-8", "replace")
    damaged = lossy.count("\ufffd")
    if data.startswith(_BOM) or _non_ascii_count(lossy) > 2 * damaged:
        problems.stop("encoding_damaged", line, byte=f"0x{byte:02X}")
    if b"\x00" in data:
        problems.stop("file_binary")
    if not _is_korean(data.decode("cp949", "replace")):
        _refuse_encoding(data, line, byte, problems)
    try:
        text = data.decode("cp949")
    except UnicodeDecodeError as error:
        line, byte = data.count(b"\n", 0, error.start) + 1, data[error.start]
        problems.stop("encoding_unknown", line, byte=f"0x{byte:02X}")
    problems.remark("encoding_cp949")
    return text, "cp949"


def recode(data: bytes, encoding: str, name: str) -> bytes:
    """Re-encode data as UTF-8 from the chosen encoding, which is empty or in :data:`ENCODINGS`.

    :raises InvalidFile: if the data is not in that encoding."""
    if not encoding:
        return data
    try:
        return data.decode(ENCODINGS[encoding]).encode()
    except UnicodeDecodeError as error:
        line, byte = data.count(b"\n", 0, error.start) + 1, f"0x{data[error.start]:02X}"
        Problems(display_name(name)).stop("encoding_wrong", line, encoding=encoding, byte=byte)


def _is_korean(text: str) -> bool:
    """Return whether text decoded as CP949 is Korean.

    Korean has adjacent syllables; at least 90% of its syllables are in KS X 1001, and syllables of that standard are at
    least three quarters of the non-ASCII characters. Windows-1252 yields isolated syllables outside KS X 1001; Chinese
    and Cyrillic yield Hanja."""
    syllables = _HANGUL.findall(text)
    rare = sum(min(syllable.encode("cp949")) < 0xA1 for syllable in syllables)
    common = len(syllables) - rare
    return bool(_HANGUL_PAIR.search(text)) and 4 * common >= 3 * _non_ascii_count(text) and rare * 10 <= len(syllables)


def _refuse_encoding(data: bytes, line: int, byte: int, problems: Problems) -> NoReturn:
    """Refuse the file, with the line decoded as Windows-1252 if possible."""
    try:
        line_text = data.split(b"\n")[line - 1].decode(WESTERN).strip()
    except UnicodeDecodeError:
        problems.stop("encoding_unknown", line, byte=f"0x{byte:02X}")
    problems.stop("encoding_western", line, text=line_text[:_MAX_SHOWN_TEXT])


_MAX_SHOWN_TEXT = 80


def _non_ascii_count(text: str) -> int:
    return len(text) - len(text.encode("ascii", "ignore"))


def _detect_format(text: str, named_format: str) -> str:
    """Detect TREC, JSON and JSON Lines by content; other formats by name if it is known."""
    if named_format in {"", FileFormat.CSV} and (trec_format := detect_trec_form(text)):
        return trec_format
    if named_format in {FileFormat.YAML, FileFormat.CSV}:
        return named_format
    lines = (line.strip() for line in text.split("\n"))
    first = next((line for line in lines if line), "")
    if first.startswith("["):
        return FileFormat.JSON
    if first.startswith("{"):
        second = next((line for line in lines if line), "")
        if first.endswith("}") and (second.startswith("{") or (not second and named_format == FileFormat.JSONL)):
            return FileFormat.JSONL
        return named_format if named_format and not first.endswith("{") else FileFormat.JSON
    if named_format:
        return named_format
    if re.match(r"(-\s|---|#|%YAML|[^\s,;\t][^,;\t]*:(\s|$))", first):
        return FileFormat.YAML
    return FileFormat.CSV if re.search(r"[,;\t]", first) else ""


# Limit for ids in one message.
MAX_NAMED_IDS = 5
QUESTION_FORMATS = tuple(
    file_format for file_format in FileFormat if file_format not in {FileFormat.RUN, FileFormat.QRELS}
)
ANSWER_FORMATS = (
    FileFormat.JSONL,
    FileFormat.JSON,
    FileFormat.CSV,
    FileFormat.PARQUET,
    FileFormat.ARROW,
    FileFormat.RUN,
)
RATING_FORMATS = (FileFormat.JSONL, FileFormat.CSV)


def read_questions(
    data: bytes,
    name: str,
    *,
    group_by: str = "",
    shape: Shape | None = None,
    qrels: bytes = b"",
    max_bytes: int = MAX_BYTES,
) -> QuestionFile:
    """Read a question set in any format.

    Questions with equal values in the field ``group_by`` are not independent. ``shape`` maps the fields; without it a
    known shape is detected. ``qrels`` is a file of relevance judgements for the passages.

    :raises InvalidFile: with every problem; no part of the file is returned."""
    problems = Problems(display_name(name))
    tree = read_record_tree(data, problems, QUESTION_FORMATS, max_bytes)
    file = question_file(apply_shape(tree, QUESTIONS, shape, problems), problems, group_by=group_by)
    return _with_passages(file, qrels, max_bytes) if qrels else file


def _with_passages(file: QuestionFile, qrels: bytes, max_bytes: int) -> QuestionFile:
    """Replace the passages of the questions with those that the relevance judgements grade above 0."""
    problems, limits = Problems("qrels"), replace(Limits(), bytes=max_bytes)
    if len(qrels) > max_bytes:
        problems.stop("file_too_large", size=len(qrels), limit=max_bytes)
    grades = read_qrels(decode(qrels, problems)[0], problems, limits)
    unknown = grades.keys() - {question.id for question in file.questions}
    if len(unknown) == len(grades):
        problems.stop("qrels_unmatched")
    relevant = {
        topic: tuple(id_ for id_, grade in passage_grades.items() if grade > 0)
        for topic, passage_grades in grades.items()
    }
    questions = tuple(
        question.model_copy(update={"ground_truth_chunk_ids": relevant.get(question.id, ())})
        for question in file.questions
    )
    missing = sum(not question.ground_truth_chunk_ids for question in questions)
    problems.remark("qrels_added", rows=len(questions) - missing, missing=missing)
    if unknown:
        judgements = sum(len(grades[topic]) for topic in unknown)
        unknown_topics = [topic for topic in grades if topic in unknown]
        ids = ", ".join(unknown_topics[:MAX_NAMED_IDS]) + (", …" if len(unknown_topics) > MAX_NAMED_IDS else "")
        problems.remark("qrels_of_unknown", judgements=judgements, topics=len(unknown_topics), ids=ids)
    return replace(file, questions=questions, remarks=(*file.remarks, *problems.remarks))


def read_answers(data: bytes, name: str, *, shape: Shape | None = None, max_bytes: int = MAX_BYTES) -> AnswerFile:
    """Read the answers of one system in any of ``ANSWER_FORMATS``.

    ``shape`` maps the fields; without it a known shape is detected.

    :raises InvalidFile: with every problem."""
    problems = Problems(display_name(name))
    return answer_file(
        apply_shape(read_record_tree(data, problems, ANSWER_FORMATS, max_bytes), ANSWERS, shape, problems), problems
    )


def read_record_tree(data: bytes, problems: Problems, accepted: tuple[FileFormat, ...], max_bytes: int) -> FileTree:
    """Read a file to a tree with one record per row, including formats of optional features.

    :raises InvalidFile: if it cannot be parsed."""
    tree = read_file_tree(data, problems, accepted, max_bytes)
    for record_format in record_formats():
        tree = record_format.records(tree, problems)
    return tree


def read_file_tree(data: bytes, problems: Problems, accepted: tuple[FileFormat, ...], max_bytes: int) -> FileTree:
    """Read a file to a tree, including binary formats of optional features.

    :raises InvalidFile: if it cannot be parsed."""
    if len(data) > max_bytes:
        problems.stop("file_too_large", size=len(data), limit=max_bytes)
    for record_format in record_formats():
        data = record_format.text(data, problems)
    # ``max_bytes`` limits the file itself. A binary file grows as JSON; the limits on values bound that growth.
    return read_tree(data, problems, accepted, max(max_bytes, len(data)))


def read_ratings(data: bytes, name: str, *, scales: Mapping[str, Scale]) -> RatingFile:
    """Read ratings or pairs from JSON Lines or CSV. ``scales`` covers every known or defined metric.

    :raises InvalidFile: with every problem."""
    problems = Problems(display_name(name))
    return rating_file(read_tree(data, problems, RATING_FORMATS), problems, scales=scales)


def read_label_studio(
    data: bytes, name: str, *, scales: Mapping[str, Scale], annotators: Mapping[str, str]
) -> RatingFile:
    """Read the annotations of a Label Studio export (JSON). ``annotators``: user id or e-mail address -> label.

    :raises InvalidFile: with every problem."""
    problems = Problems(display_name(name))
    tree = read_tree(data, problems, (FileFormat.JSON,))
    return read_annotations(tree, problems, scales=scales, annotators=annotators)


def read_tree(
    data: bytes, problems: Problems, accepted: tuple[FileFormat, ...], max_bytes: int = MAX_BYTES
) -> FileTree:
    """Parse bytes in one of the accepted formats to a tree of values with line numbers.

    :raises InvalidFile: if the bytes cannot be parsed; recoverable problems are collected in ``problems``."""
    limits = replace(Limits(), bytes=max_bytes)
    sniffed = sniff(data, problems.file, problems, limits)
    if sniffed.format is FileFormat.QRELS:
        problems.stop("shape_is_qrels", shape="TREC qrels")
    if sniffed.format not in accepted:
        problems.stop("format_not_accepted", format=sniffed.format.value, accepted=", ".join(accepted))
    readers = {
        FileFormat.YAML: read_yaml,
        FileFormat.JSON: read_json,
        FileFormat.JSONL: read_json_lines,
        FileFormat.CSV: read_csv,
        FileFormat.TOPICS: read_topics,
        FileFormat.RUN: read_run,
    }
    if sniffed.format is FileFormat.XLSX:
        root: Node | None = read_xlsx(data, problems, limits)
    elif sniffed.format in {FileFormat.PARQUET, FileFormat.ARROW}:
        root = read_columnar(data, problems, limits)
    else:
        root = readers[sniffed.format](sniffed.text, problems, limits)
    if root is None:
        problems.stop("no_rows")
    if sniffed.format is FileFormat.JSON:
        root = transpose_columns(root)
    return FileTree(root, sniffed.format.value, sniffed.encoding)
