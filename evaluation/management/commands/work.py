"""Work on open runs in the current process, without a queue."""

import math
import time
from typing import Any

from django.core.management.base import CommandParser
from django.db.models import Exists, OuterRef, Q

from evaluation.extensions import batch_hooks, features
from evaluation.management.output import ACTIVE_STATES, command_errors
from evaluation.management.site_command import SiteCommand
from evaluation.models import Run
from evaluation.runs.execution import drain
from evaluation.specs.flags import number

# A run is handed back after so long, and claimed again.
MAX_SECONDS = 3600
POLL_SECONDS = 2


class Command(SiteCommand):
    """``work [RUN] [--once]``: processes a run until it ends or pauses, or all running runs until it is stopped.

    ``--once`` ends when no unit can be claimed. Batches that are due are polled once, not awaited."""

    help = "Process a run until it ends or pauses, or all running runs until stopped."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int, nargs="?", help="id of the run; default: all running runs")
        parser.add_argument("--once", action="store_true", help="stop when no unit can be processed now")
        parser.add_argument("--seconds", type=number, default=math.inf, help="stop after this many seconds")

    def handle(self, *args: Any, **options: Any) -> None:
        """Process the units and print the state of each run when it changes."""
        deadline = time.monotonic() + options["seconds"]
        states: dict[int, str] = {}
        while True:
            self._work(options["run"], deadline, states)
            has_ended = options["run"] and not Run.objects.filter(pk=options["run"], state__in=ACTIVE_STATES).exists()
            remaining_seconds = deadline - time.monotonic()
            if options["once"] or has_ended or remaining_seconds <= 0:
                return
            time.sleep(min(POLL_SECONDS, remaining_seconds))

    def _work(self, run_id: int | None, deadline: float, states: dict[int, str]) -> None:
        condition = Q(pk=run_id) if run_id else Q(state__in=ACTIVE_STATES)
        if not run_id and (batches := batch_hooks()):
            # Batches of a cancelled run must still be cancelled and read.
            has_open_batch = Exists(batches.open().filter(run_id=OuterRef("pk")))
            condition |= Q(state=Run.State.CANCELLED) & Q(has_open_batch)
        for pk in Run.objects.filter(condition).order_by("id").values_list("pk", flat=True):
            with command_errors(self):
                run = drain(pk, seconds=min(MAX_SECONDS, max(0.0, deadline - time.monotonic())))
            state = f"run {run.pk}: {run.state} {run.reason}".rstrip()
            if states.get(pk) != state:
                self.stdout.write(state)
            states[pk] = state
        for feature in features():
            for task in feature.after_drain:
                task()
