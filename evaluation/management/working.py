"""Doing the open units of a run in the process of a command, and saying how it ended."""

from __future__ import annotations

import sys
import time

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from evaluation.core.errors import Refused
from evaluation.management.output import as_json
from evaluation.models import Run
from evaluation.runs.draining import drain
from evaluation.runs.progress import progress
from evaluation.wording.messages import explain_reason, explain_refusal
from evaluation.work.lifecycle import pause
from evaluation.work.plugins import batch_hooks

SLICE_SECONDS = 300.0  # how long one works before the run's state is looked at from the start
SHORT_SECONDS, LONG_SECONDS = 0.5, 10.0  # how long one waits where there is nothing to do
INCOMPLETE = 100
WORKING = (Run.State.PREFLIGHT, Run.State.RUNNING)


def work_off(run: Run) -> Run:
    """Drain until the run is no longer running; workers elsewhere may help. Ctrl-C leaves it paused: what is out in
    batches is read once it goes on.

    :raises CommandError: when interrupted or the database takes no writing, naming the command that goes on.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console, batches = Console(stderr=True), batch_hooks()
    try:
        with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
            task = bar.add_task("units", total=progress(run).total)
            watched = run

            def moved() -> None:
                bar.update(task, completed=progress(watched).ended)

            while run.state in WORKING:
                before = progress(run).ended
                run = drain(run.pk, seconds=SLICE_SECONDS, tick=moved)
                ended = progress(run).ended
                out = batches.out(run) if batches else None
                bar.update(task, completed=ended, description=f"units ({out.lines} in batches)" if out else "units")
                if ended == before and run.state in WORKING:
                    # Deferred, in another worker's hands, or out in a batch.
                    time.sleep(min(max(SHORT_SECONDS, out.seconds_to_next if out else 0.0), LONG_SECONDS))
    except Refused as refused:
        raise CommandError(f"{explain_refusal(refused)} (manage.py resume {run.pk})") from refused
    except KeyboardInterrupt:
        pause(run, reason="interrupted")
        raise CommandError(f"interrupted; go on with: manage.py resume {run.pk}") from None
    return run


def report(command: BaseCommand, run: Run, form: str) -> None:
    """Print the run's state and end with 100 where it is incomplete, with 1 where it could not go on."""
    far = progress(run)
    if form == "json":
        facts = {"run": run.pk, "status": run.state, "reason": run.reason, "units": far.total, "failed": far.failed}
        as_json(command, facts)
    else:
        command.stdout.write(f"run {run.pk}: {run.state} {explain_reason(run.reason)}".rstrip())
        command.stdout.write(f"{far.ended} of {far.total} units, {far.failed} failed, {far.spent.calls} calls")
    if run.state != Run.State.COMPLETED:
        sys.exit(INCOMPLETE if run.state == Run.State.INCOMPLETE else 1)
