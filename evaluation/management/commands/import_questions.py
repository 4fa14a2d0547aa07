"""Import a question set from a file."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import CommandError, CommandParser

from evaluation.core.errors import Problem
from evaluation.datasets.importing import import_question_set, set_name
from evaluation.datasets.uploads import Preview, preview_file
from evaluation.formats.reading import ENCODINGS, recode
from evaluation.formats.shaping import Shape, read_map
from evaluation.formats.streaming import MemorySource, Source, read_question_set
from evaluation.management.output import (
    add_format_option,
    command_errors,
    print_json,
    print_remarks,
    print_table,
    problem_line,
)
from evaluation.management.site_command import SiteCommand
from evaluation.runs.selectors import get_project


class Command(SiteCommand):
    """``import_questions FILE``: exit 0 with the version that has the content, 1 with every problem of the file."""

    help = "Import a question set from YAML, JSON, JSON Lines, CSV, XLSX, Parquet, Arrow or TREC topics."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--name", default="", help="name of the set; default: the one in the file, or the file's")
        parser.add_argument("--dry-run", action="store_true", help="only preview the import")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        help_text = "field whose equal values mark dependent questions"
        parser.add_argument("--group-by", default="", metavar="FIELD", help=help_text)
        add_map_options(parser)
        parser.add_argument("--qrels", type=Path, metavar="FILE", help="relevance judgements of expected passages")
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Read the file, then preview or import it."""
        path: Path = options["file"]
        with command_errors(self):
            source = source_from_options(options)
            qrels = read_text(options["qrels"], options) if options["qrels"] else b""
            project = get_project(options["project"])
            file = read_question_set(
                source,
                path.name,
                group_by=options["group_by"],
                shape=shape_from_options(options),
                qrels=qrels,
            )
            name = set_name(options["name"], file, path.name)
            if options["dry_run"]:
                self._print_preview(preview_file(project, name, file), options["format"])
                return
            imported = import_question_set(project, name, file, by=None)
        ignored_metadata = imported.metadata_not_taken_over
        print_remarks(self, file.remarks)
        print_remarks(
            self,
            [Problem("metadata_not_taken_over", params={"keys": ", ".join(ignored_metadata)})]
            if ignored_metadata
            else [],
        )
        question_set = imported.question_set
        if options["format"] == "json":
            facts = {
                "question_set": question_set.pk,
                "name": question_set.name,
                "version": question_set.version,
                "hash": question_set.content_hash,
            }
            print_json(self, facts | {"created": imported.created, "metadata_not_taken_over": ignored_metadata})
        else:
            self.stdout.write(problem_line(imported.note))

    def _print_preview(self, preview: Preview, output_format: str) -> None:
        print_remarks(self, preview.remarks)
        changes = preview.difference
        if output_format == "json":
            facts = {"name": preview.name, "questions": preview.questions, "categories": dict(preview.categories)}
            facts |= {"shape": preview.shape, "columns": dict(preview.columns)}
            versions = {"newest": str(preview.newest or ""), "selects": str(preview.selects or "")}
            print_json(self, facts | versions | {"difference": asdict(changes) if changes else None})
            return
        self.stdout.write(f"{preview.name}: {preview.questions}")
        print_table(self, ["category", "questions"], preview.categories)
        print_table(self, ["column", "field"], preview.columns)
        if preview.selects:
            params = {"set": str(preview.selects), "newest": str(preview.newest)}
            self.stdout.write(problem_line(Problem("set_unchanged", params=params)))
        if changes:
            lines = [("+", id_, "") for id_ in changes.added] + [("-", id_, "") for id_ in changes.removed]
            lines += [("~", change.id, ", ".join(f.field for f in change.fields)) for change in changes.changed]
            print_table(self, ["", "question", "fields"], lines)


def add_encoding_option(parser: CommandParser) -> None:
    """Add ``--encoding``, for text files that are not in UTF-8."""
    parser.add_argument("--encoding", default="", choices=sorted(ENCODINGS), help="encoding if it is not UTF-8")


def source_from_options(options: dict[str, Any]) -> Source:
    """Return the file that the command names.

    :raises CommandError: if it cannot be read (wrong usage).
    :raises InvalidFile: if it is not in the encoding of ``--encoding``."""
    path: Path = options["file"]
    return MemorySource(read_text(path, options)) if options["encoding"] else local_file(path)


def read_text(path: Path, options: dict[str, Any]) -> bytes:
    """Read a text file as UTF-8, recoded from ``--encoding`` if given.

    :raises CommandError: if it cannot be read (wrong usage).
    :raises InvalidFile: if it is not in that encoding."""
    return recode(read_bytes(path), options["encoding"], path.name)


def add_map_options(parser: CommandParser) -> None:
    """Add ``--map`` for the file that maps fields, and ``--encoding``."""
    add_encoding_option(parser)
    parser.add_argument("--map", type=Path, metavar="FILE", help="map file that locates the fields (docs/files.md)")


def shape_from_options(options: dict[str, Any]) -> Shape | None:
    """Return the field map that ``--map`` names.

    :raises CommandError: if it cannot be read (wrong usage).
    :raises InvalidFile: if it is not a valid map."""
    path: Path | None = options["map"]
    return read_map(read_bytes(path), path.name) if path else None


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of this machine."""

    path: Path
    size: int

    def open(self) -> BinaryIO:
        return self.path.open("rb")


def local_file(path: Path) -> LocalFile:
    """Return a readable file with its size.

    :raises CommandError: if it cannot be read (wrong usage)."""
    try:
        with path.open("rb") as file:
            return LocalFile(path, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", returncode=2) from error


def read_bytes(path: Path) -> bytes:
    """Return the content of a file.

    :raises CommandError: if it cannot be read (wrong usage)."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", returncode=2) from error
