"""Import external ratings."""

import json
from argparse import ArgumentTypeError
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from evaluation.formats.reading import recode
from evaluation.management.commands.import_questions import add_encoding_option
from evaluation.management.site_command import SiteCommand
from evaluation.messages.explanations import explain
from review.management.options import command_errors, find_run
from review.ratings.import_files import import_ratings
from review.ratings.importing import FileSampling


class Command(SiteCommand):
    """``import_ratings FILE --run ID [--define NAME=SCALE]… [--sampled all|uniform|unknown] [--dry-run]``."""

    help = "Import a file of human ratings or judge verdicts for the answers of a run."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--run", type=int, required=True)
        parser.add_argument(
            "--define",
            action="append",
            default=[],
            metavar="NAME=SCALE",
            help="scale of an unknown metric: 1..5, 0..1:real, -2..2, bool, class:a|b",
        )
        parser.add_argument(
            "--sampled",
            choices=[str(choice) for choice in FileSampling],
            default=str(FileSampling.UNKNOWN),
            help="how the rated answers were sampled; with unknown there is no corrected score",
        )
        parser.add_argument("--label-studio", action="store_true", help="the file is a Label Studio export (JSON)")
        parser.add_argument(
            "--annotator",
            action="append",
            default=[],
            metavar="ID=LABEL",
            type=_parse_annotator,
            help="for a Label Studio export: id or e-mail address of a person, and the label to store",
        )
        add_encoding_option(parser)
        parser.add_argument("--dry-run", action="store_true", help="only preview the import")
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import the file and print the number of rows by outcome."""
        run, path = find_run(options["run"]), options["file"]
        with command_errors():
            outcome = import_ratings(
                run,
                recode(path.read_bytes(), options["encoding"], path.name),
                path.name,
                options["define"],
                options["sampled"],
                annotators=dict(options["annotator"]) if options["label_studio"] else None,
                dry_run=options["dry_run"],
            )
        if options["format"] == "json":
            document = asdict(outcome) | {"remarks": [explain(remark) for remark in outcome.remarks]}
            self.stdout.write(json.dumps(document, ensure_ascii=False))
            return
        for remark in outcome.remarks:
            self.stdout.write(explain(remark))
        self.stdout.write(
            f"{outcome.human} ratings, {outcome.judge} judge scores ({outcome.failed} failed), {outcome.unchanged} "
            f"unchanged" + (" (dry run: nothing was stored)" if options["dry_run"] else "")
        )


def _parse_annotator(text: str) -> tuple[str, str]:
    key, equals, label = text.partition("=")
    if not equals or not key.strip() or not label.strip():
        raise ArgumentTypeError(f"{text} is not written as ID=LABEL")
    return key.strip(), label.strip()
