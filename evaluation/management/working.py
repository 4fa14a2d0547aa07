"""What the commands of imports and runs share: what they print, and doing a run's open units in this process."""

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

from evaluation.core.errors import ConcordError, InvalidFile, Problem, Refused
from evaluation.extensions import batch_hooks
from evaluation.messages.sentences import advise, explain_alone, explain_reason, explain_refusal
from evaluation.models import Run
from evaluation.runs.progress import progress
from evaluation.worker.lifecycle import pause

#: What starts a command: `concord` where the product is installed as a package.
PROGRAM = "concord" if Path(sys.argv[0]).name == "concord" else "manage.py"
MOST_PROBLEMS = 1000


def add_format(parser: CommandParser) -> None:
    """``--format text|json``."""
    parser.add_argument("--format", choices=["text", "json"], default="text", help="json for programs")


def problem_line(problem: Problem) -> str:
    """``file:line field message``, as compilers write it."""
    line = "" if problem.line is None else f":{problem.line}"
    place = " ".join(part for part in (f"{problem.file}{line}", problem.field) if part)
    sentence = explain_alone(problem)
    return f"{place} {sentence}" if place else sentence


@contextmanager
def refusals(command: BaseCommand, done: str = "imported") -> Iterator[None]:
    """Says on standard error what is wrong, one line for each problem of a file, and ends with 1; of a file nothing was
    ``done``.

    :raises CommandError: for our own errors.
    """
    try:
        yield
    except InvalidFile as error:
        for problem in error.problems[:MOST_PROBLEMS]:
            command.stderr.write(problem_line(problem), command.style.ERROR)
        raise CommandError(f"{len(error.problems)} problem(s); nothing was {done}") from error
    except ConcordError as error:
        raise CommandError(explain_refusal(error) if isinstance(error, Refused) else str(error)) from error


def remarks(command: BaseCommand, found: Iterable[Problem]) -> None:
    """Remarks go to standard error, so that standard output stays what was asked for."""
    for remark in found:
        command.stderr.write(problem_line(remark), command.style.WARNING)


def table(command: BaseCommand, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table on a terminal; elsewhere one line for each row, its cells separated by tabs."""
    if not command.stdout.isatty():
        for row in rows:
            command.stdout.write("\t".join(map(str, row)))
        return
    from rich.console import Console  # costs 0.1 s at import
    from rich.table import Table
    from rich.text import Text

    shown = Table(*header)
    for row in rows:
        shown.add_row(*(Text(str(cell)) for cell in row))
    Console().print(shown)


def as_json(command: BaseCommand, value: Any) -> None:
    """One JSON document."""
    command.stdout.write(json.dumps(value, ensure_ascii=False, indent=2, default=str))


SLICE_SECONDS = 300.0  # how long one works before the run's state is looked at from the start
SHORT_SECONDS, LONG_SECONDS = 0.5, 10.0  # how long one waits where there is nothing to do
NOT_DONE, INCOMPLETE = 1, 100
WORKING = (Run.State.PREFLIGHT, Run.State.RUNNING)


def work_off(run: Run) -> Run:
    """Drain until the run is no longer running; workers elsewhere may help. Ctrl-C leaves it paused: what is out in
    batches is read once it goes on.

    :raises CommandError: when interrupted or the database takes no writing, naming the command that goes on.
    """
    from rich.console import Console  # costs 0.1 s at import
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from evaluation.runs.draining import drain  # and what calls judges, as much again

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
        raise CommandError(f"{explain_refusal(refused)} ({PROGRAM} resume {run.pk})") from refused
    except KeyboardInterrupt:
        pause(run, reason="interrupted")
        raise CommandError(f"interrupted; go on with: {PROGRAM} resume {run.pk}") from None
    return run


def run_numbered(pk: int) -> Run:
    """The run with this id.

    :raises CommandError: when there is none.
    """
    run = Run.objects.select_related("answer_set__question_set", "profile_version").filter(pk=pk).first()
    if run is None:
        raise CommandError(f"there is no run {pk}")
    return run


def exit_code(state: str) -> int:
    """0 for a completed run, 100 for one that lacks results, 1 for one that could not go on or was stopped."""
    return {Run.State.COMPLETED: 0, Run.State.INCOMPLETE: INCOMPLETE}.get(Run.State(state), NOT_DONE)


def say_why_paused(command: BaseCommand, run: Run) -> None:
    """On standard error why the run is paused, what to do about it and with what it goes on; nothing for another."""
    if run.state != Run.State.PAUSED:
        return
    advice = advise(run.reason)
    if run.reason == "key_missing" and (
        unset := sorted({name for name in _key_variables(run) if not os.environ.get(name)})
    ):
        advice = _("Set %(names)s in the environment or the file .env of web and workers.") % {
            "names": ", ".join(unset)
        }
    told = (f"run {run.pk}: {run.state}", explain_reason(run.reason), advice, f"{PROGRAM} resume {run.pk}")
    command.stderr.write("\n".join(filter(None, told)))


def _key_variables(run: Run) -> Iterable[str]:
    """The environment variables that the endpoints of the run's judges read their keys from."""
    named = "judge_version__endpoint__key_env"
    judges = run.judges.filter(judge_version__endpoint__sealed_key="")
    return judges.exclude(**{named: ""}).exclude(**{named: None}).values_list(named, flat=True)


def report(command: BaseCommand, run: Run, form: str) -> None:
    """Print the run's state and end with 100 where it is incomplete, with 1 where it could not go on."""
    far = progress(run)
    if form == "json":
        facts = {"run": run.pk, "status": run.state, "reason": run.reason, "units": far.total, "failed": far.failed}
        as_json(command, facts)
    else:
        command.stdout.write(f"run {run.pk}: {run.state} {explain_reason(run.reason)}".rstrip())
        command.stdout.write(f"{far.ended} of {far.total} units, {far.failed} failed, {far.spent.calls} calls")
        say_why_paused(command, run)
    if code := exit_code(run.state):
        sys.exit(code)
