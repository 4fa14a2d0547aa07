"""Import traces, from a file or sent by a system, as a question set with its answers."""

from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _

from contrib.traces.importing import QUIET_SECONDS, Sampling, import_received, import_traces
from contrib.traces.otlp import PERSONAL
from evaluation.management.commands.import_questions import read_bytes
from evaluation.management.output import (
    add_format_option,
    command_errors,
    finish_run,
    print_json,
    print_pause_reason,
    print_remarks,
)
from evaluation.management.site_command import SiteCommand
from evaluation.runs.selectors import get_project


class Command(SiteCommand):
    """``import_traces [FILE] --system NAME``: prints ``run ID``; exits with 1 and every problem of the file, or if no
    trace is selected."""

    help = "Import OpenTelemetry traces from a file (OTLP as JSON or protobuf), or those that a system has sent."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, metavar="FILE", nargs="?", help="default: traces sent to api/v1/otlp")
        parser.add_argument("--system", required=True, help="name of the system; for sent traces their service.name")
        parser.add_argument("--questions", default="", metavar="NAME", help="question set; default: “SYSTEM traces”")
        parser.add_argument(
            "--rate", type=parse_share, default=1.0, help="share of the traces that no rule selects, 0 to 1"
        )
        parser.add_argument(
            "--rule", action="append", default=[], metavar="JMESPATH", help="import all traces for which it is true"
        )
        parser.add_argument(
            "--mask",
            action="append",
            default=[],
            metavar="WHAT",
            help=f"mask in addition to secrets: {', '.join(PERSONAL)}, or a pattern (#: digit, *: rest of a word)",
        )
        parser.add_argument(
            "--quiet",
            type=float,
            default=QUIET_SECONDS,
            metavar="SECONDS",
            help="time after its last span at which a trace is complete",
        )
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Import the traces, print the run's id, and compute its rule metrics."""
        path, system, name = options["file"], options["system"], options["questions"]
        with command_errors(self):
            project = get_project(options["project"])
            sampling = Sampling(options["rate"], tuple(options["rule"]), tuple(options["mask"]))
            if path is None:
                imported = import_received(
                    project, system, name=name, sampling=sampling, quiet_seconds=options["quiet"]
                )
            else:
                data = read_bytes(path)
                imported = import_traces(project, system, data, name=name, sampling=sampling, file_name=path.name)
        print_remarks(self, imported.answers.remarks)
        run = finish_run(imported.answers.run)
        print_pause_reason(self, run)
        if options["format"] == "json":
            print_json(
                self, {"run": run.pk, "answer_set": run.answer_set_id, "read": imported.read, "status": run.state}
            )
        else:
            self.stdout.write(f"run {run.pk}")
            message = _("Traces read: %(read)s, imported: %(taken)s")
            counts = {"read": imported.read, "taken": run.answer_set.answers.count()}
            self.stderr.write(message % counts)


def parse_share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ArgumentTypeError(_("a number from 0 to 1"))
    return share
