"""Score a system's answers under a profile, with or without a judge, in this process."""

from argparse import Action
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.management.site_command import SiteCommand
from evaluation.models.run_spec import ASKING, OPTIONS
from evaluation.runs.experiments import read_experiment
from evaluation.specs.flags import add_flags, file_model
from review.management.options import add_gate_arguments, refusals

#: Options of which one takes the place of the other.
EXCLUSIVE = (("judge", "no_judge"), ("reuse_answers", "no_ask"))


class Command(SiteCommand):
    """``evaluate --questions NAME --system NAME …``: asks a system that has a connector, scores the newest answers of
    any other; exit 0 when complete, 100 when incomplete or the gate is not passed, 1 when interrupted."""

    help = "Ask a system the questions of a set, or take its newest imported answers, and score them under a profile."

    def add_arguments(self, parser: CommandParser) -> None:
        """What to score and with what."""
        parser.add_argument(
            "--config",
            type=Path,
            metavar="FILE",
            help="experiment file: any of these options as YAML; what stands on the command line wins",
        )
        actions = [*_add_options(parser), *add_gate_arguments(parser)]
        self.experiment = file_model("Experiment", actions)
        # None tells that an option was not given; what it is then stands here.
        self.usual = {action.dest: action.default for action in actions}
        parser.set_defaults(**dict.fromkeys(self.usual))

    def _with_file(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options with what the experiment file says where the command line says nothing, and as they usually are
        where neither does."""
        told = read_experiment(options["config"], self.experiment) if options["config"] else {}
        for pair in EXCLUSIVE:
            if any(options[name] is not None for name in pair):
                told |= dict.fromkeys(pair)
        whole = {name: told.get(name) if options[name] is None else options[name] for name in self.usual}
        whole = {name: self.usual[name] if value is None else value for name, value in whole.items()}
        for name in ("questions", "system"):
            if not (whole[name] or whole["reuse_answers"]):
                raise CommandError(f"--{name} is needed, here or in the file of --config", returncode=2)
        for one, other in EXCLUSIVE:
            if whole[one] and whole[other]:
                raise CommandError(f"{one} and {other} do not go together", returncode=2)
        return options | whole

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the run, do its units here, write the reports and print the figures."""
        from review.management.evaluating import evaluate  # a second at import that the help does not need

        with refusals():
            options = self._with_file(options)
        evaluate(self, options)


def _add_options(parser: CommandParser) -> Iterator[Action]:
    """Add what is scored, the options of the run and the reports; those that a file takes too are returned."""
    yield parser.add_argument("--questions", help="name of the question set, or NAME@VERSION")
    yield parser.add_argument("--system", help="name of the system")
    yield parser.add_argument("--project", default="", help="needed where there are several projects")
    answers = parser.add_mutually_exclusive_group()
    yield answers.add_argument(
        "--reuse-answers",
        type=int,
        metavar="RUN",
        help="judge the answers of that run again; no questions or system need be named",
    )
    yield answers.add_argument("--no-ask", action="store_true", help="score the newest answers, asked for or imported")
    yield from add_flags(parser, ASKING.values())
    judge = parser.add_mutually_exclusive_group()
    for one in OPTIONS.values():
        yield from add_flags(judge if one.name == "judge" else parser, [one])
        if one.name == "judge":
            yield judge.add_argument("--no-judge", "--no-llm-judge", action="store_true", help="rules only")
    yield parser.add_argument("--output", type=Path, action="append", default=[], help="report file, by its ending")
    parser.add_argument("--format", choices=["text", "json"], default="text")
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument(
        "--skip-indexing", action="store_true", help="of source 000; Concord indexes nothing, so nothing is skipped"
    )
