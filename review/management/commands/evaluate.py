"""Score a system's answers under a profile, with or without a judge, in this process."""

from argparse import Action
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.management.site_command import SiteCommand
from evaluation.models.run_spec import ASK_OPTIONS, RUN_OPTIONS
from evaluation.runs.experiments import read_experiment
from evaluation.specs.flags import add_flags, file_model
from review.management.options import add_gate_arguments, command_errors

# Mutually exclusive options.
EXCLUSIVE = (("judge", "no_judge"), ("reuse_answers", "no_ask"))


class Command(SiteCommand):
    """``evaluate --questions NAME --system NAME …``.

    Asks a system with a connector, or scores the newest answers of any other. Exit 0 when complete, 100 when incomplete
    or the gate is not passed, 1 when interrupted."""

    help = "Ask a system the questions of a set, or use its newest imported answers, and score them with a profile."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--config",
            type=Path,
            metavar="FILE",
            help="experiment file: any of these options as YAML; the command line takes precedence",
        )
        actions = [*_add_options(parser), *add_gate_arguments(parser)]
        self.experiment = file_model("Experiment", actions)
        # Options default to None, which means not given; the real defaults are kept here.
        self.defaults = {action.dest: action.default for action in actions}
        parser.set_defaults(**dict.fromkeys(self.defaults))

    def _merge_file(self, options: dict[str, Any]) -> dict[str, Any]:
        """Merge options: command line first, then the experiment file, then defaults."""
        file_options = read_experiment(options["config"], self.experiment) if options["config"] else {}
        for pair in EXCLUSIVE:
            if any(options[name] is not None for name in pair):
                file_options |= dict.fromkeys(pair)
        merged = {name: file_options.get(name) if options[name] is None else options[name] for name in self.defaults}
        merged = {name: self.defaults[name] if value is None else value for name, value in merged.items()}
        for name in ("questions", "system"):
            if not (merged[name] or merged["reuse_answers"]):
                raise CommandError(f"Set --{name}, on the command line or in the --config file.", returncode=2)
        for option, alternative in EXCLUSIVE:
            if merged[option] and merged[alternative]:
                raise CommandError(f"{option} and {alternative} cannot be combined.", returncode=2)
        return options | merged

    def handle(self, *args: Any, **options: Any) -> None:
        """Create and complete the run, write the reports and print the figures."""
        # Importing it takes a second that the help does not need.
        from review.management.evaluate_run import evaluate

        with command_errors():
            options = self._merge_file(options)
        evaluate(self, options)


def _add_options(parser: CommandParser) -> Iterator[Action]:
    """Add options for answers, run and reports; return those that an experiment file accepts too."""
    yield parser.add_argument("--questions", help="name of the question set, or NAME@VERSION")
    yield parser.add_argument("--system", help="name of the system")
    yield parser.add_argument("--project", default="", help="name of the project; required if there are several")
    answers = parser.add_mutually_exclusive_group()
    yield answers.add_argument(
        "--reuse-answers",
        type=int,
        metavar="RUN",
        help="score the answers of this run again; --questions and --system are optional",
    )
    yield answers.add_argument("--no-ask", action="store_true", help="score the newest stored answers")
    yield from add_flags(parser, ASK_OPTIONS.values())
    judge = parser.add_mutually_exclusive_group()
    for option in RUN_OPTIONS.values():
        yield from add_flags(judge if option.name == "judge" else parser, [option])
        if option.name == "judge":
            yield judge.add_argument("--no-judge", "--no-llm-judge", action="store_true", help="score by rules only")
    help_text = "report file; its extension selects the format"
    yield parser.add_argument("--output", type=Path, action="append", default=[], help=help_text)
    parser.add_argument("--format", choices=["text", "json"], default="text")
    parser.add_argument("--dry-run", action="store_true", help="only print the plan")
    parser.add_argument(
        "--skip-indexing",
        action="store_true",
        help="accepted for compatibility with experiment files; has no effect",
    )
