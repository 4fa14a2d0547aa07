"""Import a question set from a file."""

import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from django.core.management.base import CommandError, CommandParser

from evaluation.core.errors import Problem
from evaluation.datasets.importing import import_question_set, set_name
from evaluation.datasets.uploads import Preview, preview_file
from evaluation.formats.reading import ENCODINGS, recoded
from evaluation.formats.shaping import Shape, read_map
from evaluation.formats.streaming import Content, Source, read_question_set
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, as_json, problem_line, refusals, remarks, table
from evaluation.runs.selectors import project_named


class Command(SiteCommand):
    """``import_questions FILE``: exit 0 with the version that has the content now, 1 with every problem of the file."""

    help = "Import a question set from YAML, JSON, JSON Lines, CSV, XLSX, Parquet, Arrow or TREC topics."

    def add_arguments(self, parser: CommandParser) -> None:
        """The file, and where it belongs."""
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--name", default="", help="name of the set; else the one in the file, else the file's")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be imported")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        parser.add_argument("--group-by", default="", metavar="FIELD", help="equal values mark dependent questions")
        add_map(parser)
        parser.add_argument("--qrels", type=Path, metavar="FILE", help="judgements: which passages should be found")
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Read, then preview or import."""
        path: Path = options["file"]
        with refusals(self):
            source = source_in(options)
            qrels = text_at(options["qrels"], options) if options["qrels"] else b""
            project = project_named(options["project"])
            file = read_question_set(
                source,
                path.name,
                group_by=options["group_by"],
                shape=map_in(options),
                qrels=qrels,
            )
            name = set_name(options["name"], file, path.name)
            if options["dry_run"]:
                self._preview(preview_file(project, name, file), options["format"])
                return
            imported = import_question_set(project, name, file, by=None)
        left = imported.metadata_not_taken_over
        remarks(self, file.remarks)
        remarks(self, [Problem("metadata_not_taken_over", params={"keys": ", ".join(left)})] if left else [])
        made = imported.question_set
        if options["format"] == "json":
            facts = {"question_set": made.pk, "name": made.name, "version": made.version, "hash": made.content_hash}
            as_json(self, facts | {"created": imported.created, "metadata_not_taken_over": left})
        else:
            self.stdout.write(problem_line(imported.note))

    def _preview(self, shown: Preview, form: str) -> None:
        remarks(self, shown.remarks)
        changes = shown.difference
        if form == "json":
            facts = {"name": shown.name, "questions": shown.questions, "categories": dict(shown.categories)}
            facts |= {"shape": shown.shape, "columns": dict(shown.columns)}
            versions = {"newest": str(shown.newest or ""), "selects": str(shown.selects or "")}
            as_json(self, facts | versions | {"difference": asdict(changes) if changes else None})
            return
        self.stdout.write(f"{shown.name}: {shown.questions}")
        table(self, ["category", "questions"], shown.categories)
        table(self, ["column", "became"], shown.columns)
        if shown.selects:
            same = {"set": str(shown.selects), "newest": str(shown.newest)}
            self.stdout.write(problem_line(Problem("set_unchanged", params=same)))
        if changes:
            lines = [("+", id_, "") for id_ in changes.added] + [("-", id_, "") for id_ in changes.removed]
            lines += [("~", change.id, ", ".join(f.field for f in change.fields)) for change in changes.changed]
            table(self, ["", "question", "fields"], lines)


def add_encoding(parser: CommandParser) -> None:
    """``--encoding``: how a text is written that is not in UTF-8."""
    parser.add_argument("--encoding", default="", choices=sorted(ENCODINGS), help="of a text that is not in UTF-8")


def source_in(options: dict[str, Any]) -> Source:
    """The file that the command is about.

    :raises CommandError: wrong usage where it is none that can be read.
    :raises InvalidFile: where it is not in the encoding that ``--encoding`` names.
    """
    path: Path = options["file"]
    return Content(text_at(path, options)) if options["encoding"] else file_at(path)


def text_at(path: Path, options: dict[str, Any]) -> bytes:
    """The content of a text, in UTF-8 where ``--encoding`` names another encoding.

    :raises CommandError: wrong usage where it is no file that can be read.
    :raises InvalidFile: where it is not in that encoding.
    """
    return recoded(read_bytes(path), options["encoding"], path.name)


def add_map(parser: CommandParser) -> None:
    """``--map``: the file that says where the fields stand, and ``--encoding``."""
    add_encoding(parser)
    parser.add_argument("--map", type=Path, metavar="FILE", help="where the fields stand, as JMESPath (docs/files.md)")


def map_in(options: dict[str, Any]) -> Shape | None:
    """The map that ``--map`` names.

    :raises CommandError: wrong usage where it is no file that can be read.
    :raises InvalidFile: where it is no map.
    """
    path: Path | None = options["map"]
    return read_map(read_bytes(path), path.name) if path else None


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of this machine."""

    path: Path
    size: int

    def open(self) -> BinaryIO:
        """The content from its start."""
        return self.path.open("rb")


def file_at(path: Path) -> LocalFile:
    """The file.

    :raises CommandError: wrong usage where it is none that can be read.
    """
    try:
        with path.open("rb") as file:
            return LocalFile(path, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", returncode=2) from error


def read_bytes(path: Path) -> bytes:
    """The file's content.

    :raises CommandError: wrong usage where it is no file that can be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", returncode=2) from error
