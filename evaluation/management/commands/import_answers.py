"""Import the answers of one system from a file and score them by rules."""

import sys
from argparse import ArgumentTypeError
from pathlib import Path
from shlex import quote
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _

from evaluation.formats.streaming import AnswerStream
from evaluation.management.commands.import_questions import (
    add_map_options,
    local_file,
    shape_from_options,
    source_from_options,
)
from evaluation.management.output import (
    PROGRAM,
    add_format_option,
    command_errors,
    exit_code,
    finish_run,
    print_json,
    print_pause_reason,
    print_remarks,
)
from evaluation.management.site_command import SiteCommand
from evaluation.models import Run
from evaluation.runs.answer_files import import_answers
from evaluation.runs.selectors import get_project, get_question_set


class Command(SiteCommand):
    """``import_answers FILE --questions NAME --system NAME``: prints ``run ID``, and on standard error the next steps.

    Exits with 1 and every problem of an invalid file."""

    help = "Import answers (JSON Lines, JSON, CSV, Parquet, Arrow, TREC run) as an answer set and score it by rules."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--questions", required=True, help="name of the question set, or NAME@VERSION")
        parser.add_argument("--system", required=True, help="name of the system; created on first use")
        parser.add_argument("--k", type=parse_k, default=5, help="number of retrieved passages that count, 1 to 50")
        parser.add_argument("--name", default="", help="name of the run")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        parser.add_argument(
            "--accept-unknown-passages",
            action="store_true",
            help="import even if none of the passages is an expected one",
        )
        add_map_options(parser)
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Import the answers, print the run's id, and compute its rule metrics."""
        path: Path = options["file"]
        with command_errors(self):
            source = source_from_options(options)
            question_set = get_question_set(get_project(options["project"]), options["questions"])
            imported = import_answers(
                question_set,
                options["system"],
                AnswerStream(source, path.name, shape=shape_from_options(options)),
                data=local_file(path),
                file_name=path.name,
                by=None,
                name=options["name"],
                k=options["k"],
                refuse_unknown_passages=not options["accept_unknown_passages"],
            )
        print_remarks(self, imported.remarks)
        run = imported.run
        if options["format"] == "text":
            self.stdout.write(f"run {run.pk}")
            self.stdout.flush()
        run = finish_run(run)
        print_pause_reason(self, run)
        if options["format"] == "json":
            facts = {"run": run.pk, "answer_set": run.answer_set_id, "status": run.state}
            print_json(self, facts | {"created": imported.created, "missing": imported.missing})
        elif run.state == Run.State.COMPLETED:
            questions, system = quote(f"{question_set.name}@{question_set.version}"), quote(options["system"])
            self.stderr.write(
                "\n".join(
                    (
                        _("This run contains the answers and rule-based scores. No judge has scored them yet."),
                        _("View results: %(command)s") % {"command": f"{PROGRAM} results {run.pk}"},
                        _("Score with a judge: %(command)s")
                        % {"command": f"{PROGRAM} evaluate --questions {questions} --system {system}"},
                    )
                )
            )
        if code := exit_code(run.state):
            sys.exit(code)


def parse_k(text: str) -> int:
    if not (text.isdigit() and 1 <= int(text) <= 50):
        raise ArgumentTypeError(f"{text} is not a whole number from 1 to 50")
    return int(text)
