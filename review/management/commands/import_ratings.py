"""Import ratings made elsewhere."""

import json
from argparse import ArgumentTypeError
from dataclasses import asdict
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from evaluation.formats.reading import recoded
from evaluation.management.commands.import_questions import add_encoding
from evaluation.management.site_command import SiteCommand
from evaluation.messages.sentences import explain
from review.management.options import refusals, run_named
from review.ratings.import_files import import_ratings
from review.ratings.importing import Sampled


class Command(SiteCommand):
    """``import_ratings FILE --run ID [--define NAME=SCALE]… [--sampled all|uniform|unknown] [--dry-run]``."""

    help = "Import a file of human ratings or judge verdicts for the answers of a run."

    def add_arguments(self, parser: CommandParser) -> None:
        """The file, the run, and what the file does not say itself."""
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
            choices=[str(choice) for choice in Sampled],
            default=str(Sampled.UNKNOWN),
            help="how the rated answers were chosen; unknown gives agreement but no corrected score",
        )
        parser.add_argument("--label-studio", action="store_true", help="the file is a Label Studio export (JSON)")
        parser.add_argument(
            "--annotator",
            action="append",
            default=[],
            metavar="ID=LABEL",
            type=_pair,
            help="of a Label Studio export: id or e-mail address of a person, and the label to keep",
        )
        add_encoding(parser)
        parser.add_argument("--dry-run", action="store_true", help="only say what would be imported")
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import, and say what became of the rows."""
        run, path = run_named(options["run"]), options["file"]
        with refusals():
            done = import_ratings(
                run,
                recoded(path.read_bytes(), options["encoding"], path.name),
                path.name,
                options["define"],
                options["sampled"],
                annotators=dict(options["annotator"]) if options["label_studio"] else None,
                dry_run=options["dry_run"],
            )
        if options["format"] == "json":
            said = asdict(done) | {"remarks": [explain(remark) for remark in done.remarks]}
            self.stdout.write(json.dumps(said, ensure_ascii=False))
            return
        for remark in done.remarks:
            self.stdout.write(explain(remark))
        self.stdout.write(
            f"{done.human} ratings, {done.judge} judge scores ({done.failed} failed), {done.unchanged} unchanged"
            + (" (dry run: nothing was stored)" if options["dry_run"] else "")
        )


def _pair(text: str) -> tuple[str, str]:
    key, equals, label = text.partition("=")
    if not equals or not key.strip() or not label.strip():
        raise ArgumentTypeError(f"{text} is not written as ID=LABEL")
    return key.strip(), label.strip()
