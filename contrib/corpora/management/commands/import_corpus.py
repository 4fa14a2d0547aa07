"""Import documents as a corpus, or as its next version."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from contrib.corpora.documents import ENDINGS, read_documents
from contrib.corpora.importing import SourceDocument, difference, import_corpus
from contrib.corpora.splitting import Splitting
from evaluation.core.errors import InvalidFile, Problem
from evaluation.formats.reading import ending, recoded
from evaluation.management.commands.import_questions import add_encoding, read_bytes
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, as_json, problem_line, refusals, remarks, table
from evaluation.runs.selectors import project_named


class Command(SiteCommand):
    """``import_corpus FILE|FOLDER``: exit 0 with the version that has the content now, 1 with every problem."""

    help = "Import documents (text, Markdown, HTML, PDF, DOCX, JSON Lines, Parquet) or a folder of them as a corpus."

    def add_arguments(self, parser: CommandParser) -> None:
        """The documents, and how they are split."""
        parser.add_argument("path", type=Path, metavar="FILE|FOLDER")
        parser.add_argument("--name", default="", help="name of the corpus; else the file's or folder's")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        add_encoding(parser)
        add_splitting(parser)
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Read everything, then import it as a whole."""
        path: Path = options["path"]
        with refusals(self):
            project = project_named(options["project"])
            splitting = splitting_in(options)
            documents, left_out = documents_in(path, options["encoding"])
            made = import_corpus(project, options["name"] or path.stem, documents, splitting=splitting, by=None)
        remarks(self, left_out)
        corpus, before = made.corpus, made.corpus.predecessor
        changes = difference(before, corpus) if made.created and before else None
        if options["format"] == "json":
            facts = {"corpus": corpus.pk, "name": corpus.name, "version": corpus.version, "hash": corpus.content_hash}
            facts |= {"created": made.created, "documents": corpus.documents.count(), "chunks": corpus.chunks.count()}
            as_json(self, facts | {"difference": asdict(changes) if changes else None})
            return
        self.stdout.write(problem_line(made.note))
        if changes:
            signs = (("+", changes.added), ("-", changes.removed), ("~", changes.changed))
            table(self, ["", "document"], [(sign, id_) for sign, ids in signs for id_ in ids])


def add_splitting(parser: CommandParser) -> None:
    """``--characters`` and ``--overlap``, as ``Splitting`` declares them."""
    for name, info in Splitting.model_fields.items():
        parser.add_argument(f"--{name}", type=int, default=info.default, help=str(info.description))


def splitting_in(options: dict[str, Any]) -> Splitting:
    """What was asked for.

    :raises CommandError: wrong usage for a value out of range.
    """
    try:
        return Splitting(**{name: options[name] for name in Splitting.model_fields})
    except ValueError as error:
        raise CommandError(str(error), returncode=2) from error


def documents_in(path: Path, encoding: str = "") -> tuple[list[SourceDocument], list[Problem]]:
    """The documents of a file, or of all files of a folder that are of a kind that is read; the others are remarked.
    Hidden ones are not looked at, links are not followed out of the folder. ``encoding`` is of texts that are not in
    UTF-8.

    :raises InvalidFile: with the problems of all files.
    """
    if path.is_file():
        return _read(path, path.name, encoding), []
    if not path.is_dir():
        raise CommandError(f"{path}: no such file or folder", returncode=2)
    documents: list[SourceDocument] = []
    left_out: list[Problem] = []
    problems: list[Problem] = []
    for file in _files(path):
        name = file.relative_to(path).as_posix()
        if ending(name) not in ENDINGS:
            left_out.append(Problem("document_unknown", name, params={"known": ", ".join(sorted(ENDINGS))}))
            continue
        try:
            documents += _read(file, name, encoding)
        except InvalidFile as refused:
            problems += refused.problems
    if problems:
        raise InvalidFile(problems)
    return documents, left_out


def _read(path: Path, name: str, encoding: str) -> list[SourceDocument]:
    data = read_bytes(path)
    try:
        return list(read_documents(data, name, max_bytes=settings.CONCORD_UPLOAD_BYTES))
    except InvalidFile as refused:
        # Other files of a folder may be in UTF-8, and would be read wrongly in another encoding without an error.
        if not encoding or refused.problems[0].code not in {"encoding_western", "encoding_unknown"}:
            raise
    return list(read_documents(recoded(data, encoding, name), name, max_bytes=settings.CONCORD_UPLOAD_BYTES))


def _files(folder: Path) -> Iterator[Path]:
    root = folder.resolve()
    for file in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
        if file.is_file() and not hidden and file.resolve().is_relative_to(root):
            yield file
