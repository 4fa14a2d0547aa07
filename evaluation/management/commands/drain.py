"""Process open units of runs in the current process, without a queue."""

import time
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Exists, OuterRef, Q

from evaluation.extensions import batch_hooks, features
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import ACTIVE_STATES, command_errors
from evaluation.models import Run
from evaluation.runs.draining import drain


class Command(SiteCommand):
    """``drain [RUN]``: processes units until none of the run (or of any running run) can be claimed.

    Batches that are due are polled once, not awaited."""

    help = "Do the open units of a run, or of all running runs, in this process."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int, nargs="?", help="id of the run; all running runs without it")
        parser.add_argument("--seconds", type=float, default=3600, help="stop after so long")

    def handle(self, *args: Any, **options: Any) -> None:
        """Process the units and print the state of each run."""
        deadline = time.monotonic() + options["seconds"]
        condition = Q(pk=options["run"]) if options["run"] else Q(state__in=ACTIVE_STATES)
        if not options["run"] and (batches := batch_hooks()):
            # Batches of a cancelled run must still be cancelled and read.
            has_open_batch = Exists(batches.open().filter(run_id=OuterRef("pk")))
            condition |= Q(state=Run.State.CANCELLED) & Q(has_open_batch)
        runs = Run.objects.filter(condition)
        for run_id in runs.order_by("id").values_list("pk", flat=True):
            with command_errors(self):
                run = drain(run_id, seconds=max(0.0, deadline - time.monotonic()))
            self.stdout.write(f"run {run.pk}: {run.state} {run.reason}".rstrip())
        for feature in features():
            for task in feature.after_drain:
                task()
