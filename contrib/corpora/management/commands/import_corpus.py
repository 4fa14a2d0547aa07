"""Import documents as a corpus or its next version."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from contrib.corpora.documents import MEDIA_BY_ENDING, SourceDocument, read_documents
from contrib.corpora.importing import difference, import_corpus
from contrib.corpora.splitting import Splitting
from evaluation.core.errors import InvalidFile, Problem
from evaluation.formats.reading import file_extension, recode
from evaluation.management.commands.import_questions import add_encoding_option, read_bytes
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
    """``import_corpus FILE|FOLDER``: exit 0 with the version that has the content, 1 with every problem."""

    help = "Import documents (text, Markdown, HTML, PDF, DOCX, JSON Lines, Parquet) or a folder of them as a corpus."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, metavar="FILE|FOLDER")
        parser.add_argument("--name", default="", help="name of the corpus; default: that of the file or folder")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        add_encoding_option(parser)
        add_splitting_options(parser)
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Read all files, then import them in one transaction."""
        path: Path = options["path"]
        with command_errors(self):
            project = get_project(options["project"])
            splitting = splitting_from_options(options)
            documents, skipped = read_path(path, options["encoding"])
            imported = import_corpus(project, options["name"] or path.stem, documents, splitting=splitting, by=None)
        print_remarks(self, skipped)
        corpus, predecessor = imported.corpus, imported.corpus.predecessor
        changes = difference(predecessor, corpus) if imported.created and predecessor else None
        if options["format"] == "json":
            facts = {"corpus": corpus.pk, "name": corpus.name, "version": corpus.version, "hash": corpus.content_hash}
            facts |= {
                "created": imported.created,
                "documents": corpus.documents.count(),
                "chunks": corpus.chunks.count(),
            }
            print_json(self, facts | {"difference": asdict(changes) if changes else None})
            return
        self.stdout.write(problem_line(imported.note))
        if changes:
            signs = (("+", changes.added), ("-", changes.removed), ("~", changes.changed))
            print_table(self, ["", "document"], [(sign, id_) for sign, ids in signs for id_ in ids])


def add_splitting_options(parser: CommandParser) -> None:
    """Add ``--characters`` and ``--overlap`` with the defaults of ``Splitting``."""
    for name, info in Splitting.model_fields.items():
        parser.add_argument(f"--{name}", type=int, default=info.default, help=str(info.description))


def splitting_from_options(options: dict[str, Any]) -> Splitting:
    """Return the splitting that the options request.

    :raises CommandError: for a value out of range (wrong usage)."""
    try:
        return Splitting(**{name: options[name] for name in Splitting.model_fields})
    except ValueError as error:
        raise CommandError(str(error), returncode=2) from error


def read_path(path: Path, encoding: str = "") -> tuple[list[SourceDocument], list[Problem]]:
    """Read the documents of a file or of all supported files of a folder; unsupported ones become remarks.

    Hidden files and links that leave the folder are skipped. ``encoding`` applies to texts that are not in UTF-8.

    :raises InvalidFile: with the problems of all files."""
    if path.is_file():
        return _read_file(path, path.name, encoding), []
    if not path.is_dir():
        raise CommandError(f"{path}: no such file or folder", returncode=2)
    documents: list[SourceDocument] = []
    skipped: list[Problem] = []
    problems: list[Problem] = []
    for file in _files(path):
        name = file.relative_to(path).as_posix()
        if file_extension(name) not in MEDIA_BY_ENDING:
            skipped.append(Problem("document_unknown", name, params={"known": ", ".join(sorted(MEDIA_BY_ENDING))}))
            continue
        try:
            documents += _read_file(file, name, encoding)
        except InvalidFile as error:
            problems += error.problems
    if problems:
        raise InvalidFile(problems)
    return documents, skipped


def _read_file(path: Path, name: str, encoding: str) -> list[SourceDocument]:
    data = read_bytes(path)
    try:
        return list(read_documents(data, name, max_bytes=settings.CONCORD_UPLOAD_BYTES))
    except InvalidFile as error:
        # Files in UTF-8 would be read wrongly in the other encoding without an error.
        if not encoding or error.problems[0].code not in {"encoding_western", "encoding_unknown"}:
            raise
    return list(read_documents(recode(data, encoding, name), name, max_bytes=settings.CONCORD_UPLOAD_BYTES))


def _files(folder: Path) -> Iterator[Path]:
    root = folder.resolve()
    for file in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if file.is_file() and not hidden and file.resolve().is_relative_to(root):
            yield file
