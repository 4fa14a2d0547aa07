"""The entry to the file readers: bytes and a name in, a typed file or every problem out. What a file is, its
content says first and its name second."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NoReturn

from evaluation.core.scales import Scale
from evaluation.formats.answer_rows import AnswerFile, answer_file
from evaluation.formats.columnar import ARROW, PARQUET, read_columnar
from evaluation.formats.label_studio import read_annotations
from evaluation.formats.question_rows import QuestionFile, question_file
from evaluation.formats.rating_rows import RatingFile, rating_file
from evaluation.formats.record_formats import record_formats
from evaluation.formats.shaping import ANSWERS, QUESTIONS, Shape, shaped
from evaluation.formats.tables import read_csv, read_xlsx, rows_of_columns
from evaluation.formats.text_trees import read_json, read_json_lines, read_yaml
from evaluation.formats.trec import QRELS, RUN, TOPICS, read_qrels, read_run, read_topics, trec_form
from evaluation.formats.tree import MAX_BYTES, FileTree, Limits, Node, Problems

_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
LONGEST = 100


def display_name(name: str) -> str:
    """The last part of the name, composed (NFC), with invisible and direction-changing characters spelled out
    (``U+202E``) and at most 100 characters, the ending kept."""
    last = re.split(r"[\\/]", name)[-1].strip() or "file"
    composed = unicodedata.normalize("NFC", last)
    seen = "".join(f"U+{ord(c):04X}" if unicodedata.category(c) in _UNSEEN else c for c in composed)
    if len(seen) <= LONGEST:
        return seen
    return seen[: LONGEST - 21] + "…" + seen[-20:]


def ending(name: str) -> str:
    """The lower-case ending without its dot, empty where there is none."""
    _, dot, last = display_name(name).rpartition(".")
    return last.lower() if dot else ""


_ENDINGS = {
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
#: The encodings that a person can choose, as Python names them.
ENCODINGS = {"utf-8": "utf-8-sig", "utf-16": "utf-16", "cp949": "cp949", "cp1252": "cp1252"}
WESTERN = "cp1252"  # Windows-1252


class FileFormat(StrEnum):
    """The formats that are read."""

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
class Sniffed:
    """``text`` without a byte order mark, empty for binary formats. ``encoding`` is ``utf-8``, ``utf-8-sig``,
    ``utf-16``, ``cp949`` (recognised, so the preview says so) or empty for binary formats."""

    format: FileFormat
    text: str
    encoding: str


def sniff(data: bytes, name: str, problems: Problems, limits: Limits) -> Sniffed:
    """Recognise format and encoding.

    :raises InvalidFile: for an empty, too large or binary file, an unknown format, a content that is not what the
        name says, and an encoding that cannot be read without guessing.
    """
    if len(data) > limits.bytes:
        problems.stop("file_too_large", size=len(data), limit=limits.bytes)
    if not data.strip():
        problems.stop("file_empty")
    given = _ENDINGS.get(ending(name), "")
    if data.startswith(PARQUET):
        return Sniffed(FileFormat.PARQUET, "", "")
    if data.startswith(ARROW):
        return Sniffed(FileFormat.ARROW, "", "")
    if given == FileFormat.XLSX and data.startswith(b"PK\x03\x04"):
        return Sniffed(FileFormat.XLSX, "", "")
    _refuse_binary(data, problems)
    if given == FileFormat.XLSX:
        problems.stop("file_not_workbook")
    if given in {FileFormat.PARQUET, FileFormat.ARROW}:
        problems.stop("file_not_columnar")
    text, encoding = decode(data, problems)
    if not text.strip():
        problems.stop("file_empty")
    if "\x00" in text:
        problems.stop("nul_character", text.count("\n", 0, text.index("\x00")) + 1)
    found = _by_content(text, given)
    if not found:
        problems.stop("format_unknown", known=", ".join(FileFormat))
    return Sniffed(FileFormat(found), text, encoding)


def is_binary(head: bytes) -> bool:
    """Whether what begins so is no text in UTF-8, or is refused for what it is."""
    signs = (b"PK\x03\x04", b"PK\x05\x06", b"\xd0\xcf\x11\xe0", PARQUET, *ARROW, *_ARCHIVES, *_UNICODE_BOMS)
    return head.startswith(signs) or b"%PDF" in head[:1024] or b"\x00" in head


def format_by_content(text: str, name: str) -> str:
    """The format of a text of that file name, empty where nothing tells it."""
    return _by_content(text, _ENDINGS.get(ending(name), ""))


def _refuse_binary(data: bytes, problems: Problems) -> None:
    if data.startswith((b"PK\x03\x04", b"PK\x05\x06", *_ARCHIVES)):
        problems.stop("file_archive")
    if data[:1024].lstrip().startswith(b"%PDF"):
        problems.stop("file_pdf")
    if data.startswith(b"\xd0\xcf\x11\xe0"):
        problems.stop("file_old_excel")


def decode(data: bytes, problems: Problems) -> tuple[str, str]:
    """UTF-16 by its mark; UTF-8, else CP949 where that gives Korean. What else there is, Windows-1252 in the first
    place, is refused until somebody says which it is; a damaged UTF-8 text is never read as another."""
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
    if data.startswith(_BOM) or _beyond_ascii(lossy) > 2 * damaged:
        problems.stop("encoding_damaged", line, byte=f"0x{byte:02X}")
    if b"\x00" in data:
        problems.stop("file_binary")
    if not _is_korean(data.decode("cp949", "replace")):
        _ask_for_encoding(data, line, byte, problems)
    try:
        text = data.decode("cp949")
    except UnicodeDecodeError as error:
        line, byte = data.count(b"\n", 0, error.start) + 1, data[error.start]
        problems.stop("encoding_unknown", line, byte=f"0x{byte:02X}")
    problems.remark("encoding_cp949")
    return text, "cp949"


def recoded(data: bytes, encoding: str, name: str) -> bytes:
    """The text as UTF-8 when it is in the encoding that somebody chose, which is empty or one of :data:`ENCODINGS`.

    :raises InvalidFile: where it is not in that encoding.
    """
    if not encoding:
        return data
    try:
        return data.decode(ENCODINGS[encoding]).encode()
    except UnicodeDecodeError as error:
        line, byte = data.count(b"\n", 0, error.start) + 1, f"0x{data[error.start]:02X}"
        Problems(display_name(name)).stop("encoding_wrong", line, encoding=encoding, byte=byte)


def _is_korean(text: str) -> bool:
    """Whether a text that was read as CP949 is Korean: syllables stand side by side, nearly all are such as the older
    standard KS X 1001 has, and they are three quarters of what is not ASCII. Windows-1252 read so gives single
    syllables among Latin letters, nearly always such as that standard lacks; Chinese and Cyrillic give Hanja."""
    syllables = _HANGUL.findall(text)
    rare = sum(min(syllable.encode("cp949")) < 0xA1 for syllable in syllables)
    common = len(syllables) - rare
    return bool(_HANGUL_PAIR.search(text)) and 4 * common >= 3 * _beyond_ascii(text) and rare * 10 <= len(syllables)


def _ask_for_encoding(data: bytes, line: int, byte: int, problems: Problems) -> NoReturn:
    """Refuse with the text as it reads in Windows-1252, where it does."""
    try:
        shown = data.split(b"\n")[line - 1].decode(WESTERN).strip()
    except UnicodeDecodeError:
        problems.stop("encoding_unknown", line, byte=f"0x{byte:02X}")
    problems.stop("encoding_western", line, text=shown[:_SHOWN_TEXT])


_SHOWN_TEXT = 80


def _beyond_ascii(text: str) -> int:
    """How many characters are not ASCII."""
    return len(text) - len(text.encode("ascii", "ignore"))


def _by_content(text: str, given: str) -> str:
    """The format; TREC's forms and JSON or JSON Lines are told by the content, elsewhere by the name where it is
    known."""
    if given in {"", FileFormat.CSV} and (form := trec_form(text)):
        return form
    if given in {FileFormat.YAML, FileFormat.CSV}:
        return given
    lines = (line.strip() for line in text.split("\n"))
    first = next(line for line in lines if line)
    if first.startswith("["):
        return FileFormat.JSON
    if first.startswith("{"):
        second = next((line for line in lines if line), "")
        if first.endswith("}") and (second.startswith("{") or (not second and given == FileFormat.JSONL)):
            return FileFormat.JSONL
        return given if given and not first.endswith("{") else FileFormat.JSON
    if given:
        return given
    if re.match(r"(-\s|---|#|%YAML|[^\s,;\t][^,;\t]*:(\s|$))", first):
        return FileFormat.YAML
    return FileFormat.CSV if re.search(r"[,;\t]", first) else ""


MOST_NAMED = 5  # ids in one message
QUESTION_FORMATS = tuple(one for one in FileFormat if one not in {FileFormat.RUN, FileFormat.QRELS})
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
    """Read a question set in any of the formats. ``group_by`` names the field whose equal values mark questions that
    are not independent; ``shape`` says where the fields stand, else a known one is recognised; ``qrels`` is a file of
    judgements that names the passages which should be found.

    :raises InvalidFile: with every problem found; nothing of the file is given back then.
    """
    problems = Problems(display_name(name))
    tree = rows_of_file(data, problems, QUESTION_FORMATS, max_bytes)
    file = question_file(shaped(tree, QUESTIONS, shape, problems), problems, group_by=group_by)
    return _with_passages(file, qrels, max_bytes) if qrels else file


def _with_passages(file: QuestionFile, qrels: bytes, max_bytes: int) -> QuestionFile:
    """The questions with the passages that the judgements call relevant, in place of those of the file itself."""
    problems, limits = Problems("qrels"), replace(Limits(), bytes=max_bytes)
    if len(qrels) > max_bytes:
        problems.stop("file_too_large", size=len(qrels), limit=max_bytes)
    grades = read_qrels(decode(qrels, problems)[0], problems, limits)
    unknown = grades.keys() - {question.id for question in file.questions}
    if len(unknown) == len(grades):
        problems.stop("qrels_unmatched")
    relevant = {topic: tuple(id_ for id_, grade in of.items() if grade > 0) for topic, of in grades.items()}
    questions = tuple(
        question.model_copy(update={"ground_truth_chunk_ids": relevant.get(question.id, ())})
        for question in file.questions
    )
    missing = sum(not question.ground_truth_chunk_ids for question in questions)
    problems.remark("qrels_added", rows=len(questions) - missing, missing=missing)
    if unknown:
        judgements = sum(len(grades[topic]) for topic in unknown)
        named = [topic for topic in grades if topic in unknown]
        shown = ", ".join(named[:MOST_NAMED]) + (", …" if len(named) > MOST_NAMED else "")
        problems.remark("qrels_of_unknown", judgements=judgements, topics=len(named), ids=shown)
    return replace(file, questions=questions, remarks=(*file.remarks, *problems.remarks))


def read_answers(data: bytes, name: str, *, shape: Shape | None = None, max_bytes: int = MAX_BYTES) -> AnswerFile:
    """Read the answers of one system in any of ``ANSWER_FORMATS``; ``shape`` says where the fields stand, else a known
    one is recognised.

    :raises InvalidFile: with every problem found.
    """
    problems = Problems(display_name(name))
    return answer_file(
        shaped(rows_of_file(data, problems, ANSWER_FORMATS, max_bytes), ANSWERS, shape, problems), problems
    )


def rows_of_file(data: bytes, problems: Problems, accepted: tuple[FileFormat, ...], max_bytes: int) -> FileTree:
    """The tree of a file; of formats of optional features a record for each row.

    :raises InvalidFile: where it cannot be read as a tree.
    """
    tree = tree_of_file(data, problems, accepted, max_bytes)
    for form in record_formats():
        tree = form.records(tree, problems)
    return tree


def tree_of_file(data: bytes, problems: Problems, accepted: tuple[FileFormat, ...], max_bytes: int) -> FileTree:
    """The tree of a file, also of one in a binary format of an optional feature.

    :raises InvalidFile: where it cannot be read as a tree.
    """
    if len(data) > max_bytes:
        problems.stop("file_too_large", size=len(data), limit=max_bytes)
    for form in record_formats():
        data = form.text(data, problems)
    # The limit is of the file; as JSON a binary one is longer, which the limits of its values bound.
    return read_tree(data, problems, accepted, max(max_bytes, len(data)))


def read_ratings(data: bytes, name: str, *, scales: Mapping[str, Scale]) -> RatingFile:
    """Read ratings or pairs from JSON Lines or CSV. ``scales``: of every metric that is known or was defined.

    :raises InvalidFile: with every problem found.
    """
    problems = Problems(display_name(name))
    return rating_file(read_tree(data, problems, RATING_FORMATS), problems, scales=scales)


def read_label_studio(
    data: bytes, name: str, *, scales: Mapping[str, Scale], annotators: Mapping[str, str]
) -> RatingFile:
    """Read the annotations of a Label Studio export (JSON). ``annotators``: its id or e-mail address of a person -> the
    label to keep.

    :raises InvalidFile: with every problem found.
    """
    problems = Problems(display_name(name))
    tree = read_tree(data, problems, (FileFormat.JSON,))
    return read_annotations(tree, problems, scales=scales, annotators=annotators)


def read_tree(
    data: bytes, problems: Problems, accepted: tuple[FileFormat, ...], max_bytes: int = MAX_BYTES
) -> FileTree:
    """Bytes to a tree of plain values with lines, in any of the accepted formats.

    :raises InvalidFile: where the bytes cannot be read as a tree; what can be collected is in ``problems``.
    """
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
        root = rows_of_columns(root)
    return FileTree(root, sniffed.format.value, sniffed.encoding)
