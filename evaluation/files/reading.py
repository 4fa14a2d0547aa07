"""The entry to the file readers: bytes and a name in, a typed file or every problem out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from evaluation.core.scales import Scale
from evaluation.files.answer_rows import AnswerFile, answer_file
from evaluation.files.json_tree import read_json, read_json_lines
from evaluation.files.label_studio import read_annotations
from evaluation.files.problems import MAX_BYTES, Limits, Problems
from evaluation.files.question_rows import QuestionFile, question_file
from evaluation.files.rating_rows import RatingFile, rating_file
from evaluation.files.sniff import FileFormat, display_name, sniff
from evaluation.files.tables import read_csv, read_xlsx
from evaluation.files.tree import FileTree, Node
from evaluation.files.yaml_tree import read_yaml

QUESTION_FORMATS = tuple(FileFormat)
ANSWER_FORMATS = (FileFormat.JSONL, FileFormat.JSON, FileFormat.CSV)
RATING_FORMATS = (FileFormat.JSONL, FileFormat.CSV)


def read_questions(data: bytes, name: str, *, group_by: str = "", max_bytes: int = MAX_BYTES) -> QuestionFile:
    """Read a question set from YAML, JSON, JSON Lines, CSV or XLSX. ``group_by`` names the field whose equal values
    mark questions that are not independent.

    :raises InvalidFile: with every problem found; nothing of the file is given back then.
    """
    problems = Problems(display_name(name))
    tree = read_tree(data, problems, QUESTION_FORMATS, max_bytes)
    return question_file(tree, problems, group_by=group_by)


def read_answers(data: bytes, name: str, *, max_bytes: int = MAX_BYTES) -> AnswerFile:
    """Read the answers of one system from JSON Lines, JSON or CSV.

    :raises InvalidFile: with every problem found.
    """
    problems = Problems(display_name(name))
    tree = read_tree(data, problems, ANSWER_FORMATS, max_bytes)
    return answer_file(tree, problems)


def read_ratings(data: bytes, name: str, *, scales: Mapping[str, Scale], max_bytes: int = MAX_BYTES) -> RatingFile:
    """Read ratings or pairs from JSON Lines or CSV. ``scales``: of every metric that is known or was defined.

    :raises InvalidFile: with every problem found.
    """
    problems = Problems(display_name(name))
    tree = read_tree(data, problems, RATING_FORMATS, max_bytes)
    return rating_file(tree, problems, scales=scales)


def read_label_studio(
    data: bytes,
    name: str,
    *,
    scales: Mapping[str, Scale],
    annotators: Mapping[str, str],
    max_bytes: int = MAX_BYTES,
) -> RatingFile:
    """Read the annotations of a Label Studio export (JSON). ``annotators``: its id or e-mail address of a person -> the
    label to keep.

    :raises InvalidFile: with every problem found.
    """
    problems = Problems(display_name(name))
    tree = read_tree(data, problems, (FileFormat.JSON,), max_bytes)
    return read_annotations(tree, problems, scales=scales, annotators=annotators)


def read_tree(
    data: bytes, problems: Problems, accepted: tuple[FileFormat, ...], max_bytes: int = MAX_BYTES
) -> FileTree:
    """Bytes to a tree of plain values with lines, in any of the accepted formats.

    :raises InvalidFile: where the bytes cannot be read as a tree; what can be collected is in ``problems``.
    """
    limits = replace(Limits(), bytes=max_bytes)
    sniffed = sniff(data, problems.file, problems, limits)
    if sniffed.format not in accepted:
        problems.stop("format_not_accepted", format=sniffed.format.value, accepted=", ".join(accepted))
    readers = {
        FileFormat.YAML: read_yaml,
        FileFormat.JSON: read_json,
        FileFormat.JSONL: read_json_lines,
        FileFormat.CSV: read_csv,
    }
    if sniffed.format is FileFormat.XLSX:
        root: Node | None = read_xlsx(data, problems, limits)
    else:
        root = readers[sniffed.format](sniffed.text, problems, limits)
    if root is None:
        problems.stop("no_rows")
    return FileTree(root, sniffed.format.value, sniffed.encoding)
