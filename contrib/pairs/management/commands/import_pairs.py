"""Import preferences between pairs of answers."""

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from contrib.pairs.services import import_pairs
from evaluation.formats.reading import recode
from evaluation.management.commands.import_questions import add_encoding_option
from evaluation.management.site_command import SiteCommand
from evaluation.runs.selectors import get_project
from review.management.options import command_errors


class Command(SiteCommand):
    """``import_pairs FILE --name NAME``."""

    help = "Import a file of preferences between two answers to a question (rows with pair_id)."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--name", required=True, help="name of the comparison; created if missing")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        add_encoding_option(parser)
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        path = options["file"]
        with command_errors():
            project = get_project(options["project"])
            data = recode(path.read_bytes(), options["encoding"], path.name)
            result = import_pairs(project, data, path.name, options["name"])
        if options["format"] == "json":
            self.stdout.write(json.dumps(result._asdict()))
            return
        self.stdout.write(
            f"comparison {result.pair_set}: {result.pairs} new pairs, {result.human} preferences of people, "
            f"{result.judge} of judges ({result.failed} without a value), {result.unchanged} unchanged"
        )
