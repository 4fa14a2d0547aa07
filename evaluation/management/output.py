"""Shared output of commands, and processing of a run's open units in the current process."""

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.translation import gettext as _

from evaluation.core.errors import ConcordError, DomainError, InvalidFile, Problem
from evaluation.extensions import batch_hooks
from evaluation.messages.explanations import advise, explain_reason, explain_refusal, explain_without_location
from evaluation.models import Run
from evaluation.runs.progress import progress
from evaluation.worker.lifecycle import pause

#: Program name in messages: `concord` if the product is installed as a package.
PROGRAM = "concord" if Path(sys.argv[0]).name == "concord" else "manage.py"
MAX_PROBLEMS = 1000


def add_format_option(parser: CommandParser) -> None:
    """Add ``--format text|json``."""
    parser.add_argument("--format", choices=["text", "json"], default="text", help="output format (json for programs)")


def problem_line(problem: Problem) -> str:
    """Format a problem as ``file:line field message``, like a compiler."""
    line = "" if problem.line is None else f":{problem.line}"
    place = " ".join(part for part in (f"{problem.file}{line}", problem.field) if part)
    sentence = explain_without_location(problem)
    return f"{place} {sentence}" if place else sentence


@contextmanager
def command_errors(command: BaseCommand, verb: str = "imported") -> Iterator[None]:
    """Print errors on standard error, one line for each problem of a file, and exit with 1.

    ``verb`` completes "nothing was …" for a file with problems.

    :raises CommandError: for errors of this application."""
    try:
        yield
    except InvalidFile as error:
        for problem in error.problems[:MAX_PROBLEMS]:
            command.stderr.write(problem_line(problem), command.style.ERROR)
            if "map" in problem.params:
                # On a line of its own, to be saved as a file.
                command.stderr.write(str(problem.params["map"]))
        raise CommandError(f"{len(error.problems)} problem(s); nothing was {verb}") from error
    except ConcordError as error:
        raise CommandError(explain_refusal(error) if isinstance(error, DomainError) else str(error)) from error


def print_remarks(command: BaseCommand, problems: Iterable[Problem]) -> None:
    """Print remarks on standard error, so that standard output holds the result only."""
    for problem in problems:
        command.stderr.write(problem_line(problem), command.style.WARNING)


def print_table(command: BaseCommand, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a table on a terminal; otherwise one line a row with tab-separated cells."""
    if not command.stdout.isatty():
        for row in rows:
            command.stdout.write("\t".join(map(str, row)))
        return
    # Imported here because the import takes 0.1 s.
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rich_table = Table(*header)
    for row in rows:
        rich_table.add_row(*(Text(str(cell)) for cell in row))
    Console().print(rich_table)


def print_json(command: BaseCommand, value: Any) -> None:
    command.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str))


# Duration of one call of `work`, before the run's state is read again.
SLICE_SECONDS = 300.0
# Pause if nothing is claimable.
MIN_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.5, 10.0
NOT_FINISHED, INCOMPLETE = 1, 100
ACTIVE_STATES = (Run.State.PREFLIGHT, Run.State.RUNNING)


def finish_run(run: Run) -> Run:
    """Process units until the run is no longer running; other workers may help.

    Ctrl-C pauses the run. Calls in batches are read after it is resumed.

    :raises CommandError: if interrupted or if the database accepts no writes; names the command to resume."""
    # Imported here because the import takes 0.1 s.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    # Imported here because the calls to judges take 0.1 s to import.
    from evaluation.runs.execution import drain

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console, batches = Console(stderr=True), batch_hooks()
    try:
        with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
            task = bar.add_task("units", total=progress(run).total)
            initial_run = run

            def update_progress() -> None:
                bar.update(task, completed=progress(initial_run).ended)

            while run.state in ACTIVE_STATES:
                before = progress(run).ended
                run = drain(run.pk, seconds=SLICE_SECONDS, tick=update_progress)
                ended = progress(run).ended
                open_batches = batches.summarize_open(run) if batches else None
                bar.update(
                    task,
                    completed=ended,
                    description=f"units ({open_batches.lines} in batches)" if open_batches else "units",
                )
                if ended == before and run.state in ACTIVE_STATES:
                    # The units are deferred, claimed by another worker, or in a batch.
                    time.sleep(
                        min(
                            max(MIN_PAUSE_SECONDS, open_batches.seconds_to_next if open_batches else 0.0),
                            MAX_PAUSE_SECONDS,
                        )
                    )
    except DomainError as error:
        raise CommandError(f"{explain_refusal(error)} ({PROGRAM} resume_run {run.pk})") from error
    except KeyboardInterrupt:
        pause(run, reason="interrupted")
        raise CommandError(f"Interrupted. Resume with: {PROGRAM} resume_run {run.pk}") from None
    return run


def get_run(pk: int) -> Run:
    """Return the run with this id.

    :raises CommandError: if it does not exist."""
    run = Run.objects.select_related("answer_set__question_set", "profile_version").filter(pk=pk).first()
    if run is None:
        raise CommandError(f"Run {pk} does not exist.")
    return run


def exit_code(state: str) -> int:
    """Return 0 for a completed run, 100 for an incomplete one, 1 for one that was stopped or cannot continue."""
    return {Run.State.COMPLETED: 0, Run.State.INCOMPLETE: INCOMPLETE}.get(Run.State(state), NOT_FINISHED)


def print_pause_reason(command: BaseCommand, run: Run) -> None:
    """Print on standard error why a paused run stopped, the remedy, and the command that resumes it."""
    if run.state != Run.State.PAUSED:
        return
    advice = advise(run.reason)
    if run.reason == "key_missing" and (
        unset_names := sorted({name for name in _key_variables(run) if not os.environ.get(name)})
    ):
        advice = _("Set %(names)s in the environment or the .env file of web and workers.") % {
            "names": ", ".join(unset_names)
        }
    lines = (f"run {run.pk}: {run.state}", explain_reason(run.reason), advice, f"{PROGRAM} resume_run {run.pk}")
    command.stderr.write("\n".join(filter(None, lines)))


def _key_variables(run: Run) -> Iterable[str]:
    """Return the environment variables that hold the keys of the run's endpoints."""
    key_field = "judge_version__endpoint__key_env"
    judges = run.judges.filter(judge_version__endpoint__sealed_key="")
    return judges.exclude(**{key_field: ""}).exclude(**{key_field: None}).values_list(key_field, flat=True)


def print_run_report(command: BaseCommand, run: Run, output_format: str) -> None:
    """Print the run's state and exit with :func:`exit_code` unless it is completed."""
    counts = progress(run)
    if output_format == "json":
        facts = {
            "run": run.pk,
            "status": run.state,
            "reason": run.reason,
            "units": counts.total,
            "failed": counts.failed,
        }
        print_json(command, facts)
    else:
        command.stdout.write(f"run {run.pk}: {run.state} {explain_reason(run.reason)}".rstrip())
        command.stdout.write(
            f"{counts.ended} of {counts.total} units, {counts.failed} failed, {counts.spent.calls} calls"
        )
        print_pause_reason(command, run)
    if code := exit_code(run.state):
        sys.exit(code)
