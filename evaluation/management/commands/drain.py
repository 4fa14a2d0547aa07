"""Do the open units of runs in this process, without a queue."""

import time
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Exists, OuterRef, Q

from evaluation.extensions import batch_hooks, features
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import WORKING, refusals
from evaluation.models import Run
from evaluation.runs.draining import drain


class Command(SiteCommand):
    """``drain [RUN]``: works until no unit of the run (or of any running run) can be claimed. What is out in batches
    is asked about once where it is due, and not waited for."""

    help = "Do the open units of a run, or of all running runs, in this process."

    def add_arguments(self, parser: CommandParser) -> None:
        """The run, and how long to work."""
        parser.add_argument("run", type=int, nargs="?", help="id of the run; all running runs without it")
        parser.add_argument("--seconds", type=float, default=3600, help="stop after so long")

    def handle(self, *args: Any, **options: Any) -> None:
        """Drain, and print the state of each run afterwards."""
        deadline = time.monotonic() + options["seconds"]
        asked = Q(pk=options["run"]) if options["run"] else Q(state__in=WORKING)
        if not options["run"] and (batches := batch_hooks()):
            # Those of a cancelled run have to be cancelled, and read.
            out = Exists(batches.open().filter(run_id=OuterRef("pk")))
            asked |= Q(state=Run.State.CANCELLED) & Q(out)
        wanted = Run.objects.filter(asked)
        for run_id in wanted.order_by("id").values_list("pk", flat=True):
            with refusals(self):
                run = drain(run_id, seconds=max(0.0, deadline - time.monotonic()))
            self.stdout.write(f"run {run.pk}: {run.state} {run.reason}".rstrip())
        for feature in features():
            for task in feature.after_drain:
                task()
