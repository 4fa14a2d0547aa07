"""Import preferences between pairs of answers."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from contrib.pairs.making import import_pairs
from evaluation.formats.reading import recoded
from evaluation.management.commands.import_questions import add_encoding
from evaluation.management.site_command import SiteCommand
from evaluation.runs.selectors import project_named
from review.management.options import refusals


class Command(SiteCommand):
    """``import_pairs FILE --name NAME``."""

    help = "Import a file of preferences between two answers to a question (rows with pair_id)."

    def add_arguments(self, parser: CommandParser) -> None:
        """The file and the comparison it belongs to."""
        parser.add_argument("file", type=Path)
        parser.add_argument("--name", required=True, help="name of the comparison, made where it is not there")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        add_encoding(parser)
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import, and say what became of the rows."""
        path = options["file"]
        with refusals():
            project = project_named(options["project"])
            data = recoded(path.read_bytes(), options["encoding"], path.name)
            done = import_pairs(project, data, path.name, options["name"])
        if options["format"] == "json":
            self.stdout.write(json.dumps(done._asdict()))
            return
        self.stdout.write(
            f"comparison {done.pair_set}: {done.pairs} new pairs, {done.human} preferences of people, "
            f"{done.judge} of judges ({done.failed} without a value), {done.unchanged} unchanged"
        )
