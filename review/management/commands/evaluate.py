"""Score a system's answers under a profile, with or without a judge, in this process."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from evaluation.errors import Refused, UnknownName
from evaluation.messages import explain_refusal
from evaluation.runs.draining import drain
from evaluation.runs.lifecycle import pause, start
from evaluation.runs.making import prepare_run
from evaluation.runs.models import Run
from evaluation.runs.planning import planned_units
from evaluation.runs.progress import progress
from evaluation.runs.selecting import (
    QuestionFilter,
    answers_of_run,
    newest_answers,
    project_named,
    question_set_named,
)
from evaluation.shipping import judge_row, profile_row

SLICE_SECONDS = 2.0  # how long one works before the progress bar moves
OPEN = {Run.State.RUNNING, Run.State.PREFLIGHT}


class Command(BaseCommand):
    """``evaluate --questions NAME --system NAME …``: exit 0 when complete, 100 when incomplete, 1 when interrupted."""

    help = "Score a system's newest answers to a question set under a profile."

    def add_arguments(self, parser: CommandParser) -> None:
        """What to score and with what."""
        parser.add_argument("--questions", required=True, help="name of the question set, or NAME@VERSION")
        parser.add_argument("--system", required=True, help="name of the system")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        parser.add_argument("--profile", default="graphrag")
        judge = parser.add_mutually_exclusive_group()
        judge.add_argument("--judge", default="", help="name of a judge; the project's own, else the offline baseline")
        judge.add_argument("--no-judge", action="store_true", help="rules only")
        parser.add_argument("--reuse-answers", type=int, metavar="RUN", help="judge the answers of that run again")
        parser.add_argument("--limit", type=_positive, help="only the first so many questions")
        parser.add_argument("--category", action="append", default=[])
        parser.add_argument("--tag", action="append", default=[])
        parser.add_argument("--ids", nargs="+", default=[])
        parser.add_argument("--max-concurrency", type=_positive, default=32)
        parser.add_argument("--repeat", type=_positive, default=1, help="judgements of each answer")
        parser.add_argument("--name", default="", help="name of the run")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
        parser.add_argument("--output", type=Path, action="append", default=[], help="report file, by its ending")
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the run, drain it and show its results."""
        try:
            with transaction.atomic():
                run = _draft(options)
                if options["dry_run"]:
                    units = list(planned_units(run))
                    self.stdout.write(f"{len(units)} units, {sum(u.kind == 'judge' for u in units)} judge calls")
                    transaction.set_rollback(True)
                    return
        except (UnknownName, Refused) as error:
            raise CommandError(explain_refusal(error) if isinstance(error, Refused) else str(error)) from error
        start(run)
        print(f"run {run.pk}", file=sys.stderr if options["format"] == "json" else sys.stdout, flush=True)
        try:
            run = _work(run)
        except KeyboardInterrupt:
            pause(run, reason="interrupted")
            raise CommandError(f"interrupted; go on with: manage.py resume {run.pk}") from None
        show(run, options)


def _draft(options: dict[str, Any]) -> Run:
    project = project_named(options["project"])
    questions = question_set_named(project, options["questions"])
    reused = options["reuse_answers"]
    answers = answers_of_run(reused, questions) if reused else newest_answers(questions, options["system"])
    wanted = QuestionFilter(options["category"], options["tag"], options["ids"], options["limit"])
    return prepare_run(
        answers,
        profile_row(project, options["profile"]),
        judge=None if options["no_judge"] else judge_row(project, options["judge"]),
        name=options["name"],
        repeat=options["repeat"],
        max_concurrency=options["max_concurrency"],
        question_ids=wanted.select(questions),
    )


def _work(run: Run) -> Run:
    """Drain until the run is no longer open; workers elsewhere may help."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("units", total=progress(run).total)
        while run.state in OPEN:
            before = progress(run).ended
            run = drain(run.pk, seconds=SLICE_SECONDS)
            ended = progress(run).ended
            bar.update(task, completed=ended)
            if ended == before and run.state in OPEN:
                time.sleep(0.5)  # deferred, or in another worker's hands
    return run
