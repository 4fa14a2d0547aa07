"""Go on with a paused run."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evaluation.core.errors import Refused
from evaluation.management.working import add_format, refuse, report, work_off
from evaluation.models import Run
from evaluation.runs.making import resume_run
from evaluation.runs.results import drift


class Command(BaseCommand):
    """``resume RUN``: exit 0 when complete, 100 when incomplete, 1 when it is neither paused nor running."""

    help = "Go on with a paused run under the configuration it was made with, in this process."

    def add_arguments(self, parser: CommandParser) -> None:
        """The run."""
        parser.add_argument("run", type=int, metavar="RUN")
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Say what has changed since, then work."""
        run = run_numbered(options["run"])
        for part in drift(run):
            line = f"{part.part} {part.name}: the run keeps version {part.used}; the newest is {part.newest}"
            self.stderr.write(line, self.style.WARNING)
        try:
            run = resume_run(run, None)
        except Refused as error:
            refuse(self, error)
        report(self, work_off(run), options["format"])


def run_numbered(pk: int) -> Run:
    """The run with this id.

    :raises CommandError: when there is none.
    """
    run = Run.objects.select_related("answer_set__question_set", "profile_version").filter(pk=pk).first()
    if run is None:
        raise CommandError(f"there is no run {pk}")
    return run
