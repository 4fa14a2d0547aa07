"""Score a system's answers under a profile, with or without a judge, in this process."""

from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.connectors.protocol import FULL_RAG, RETRIEVAL_ONLY
from evaluation.judging.formulas import JuryRule
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import dollars
from evaluation.runs.experiments import Experiment, read_experiment
from review.management.options import add_gate_arguments, refusals
from review.reports.gate import GateOn

#: What stands on the command line in place of something else in a file.
ALONE = (("judge", "no_judge"), ("no_judge", "judge"), ("reuse_answers", "no_ask"), ("no_ask", "reuse_answers"))


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
        parser.add_argument("--questions", help="name of the question set, or NAME@VERSION")
        parser.add_argument("--system", help="name of the system")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        parser.add_argument("--profile", default="", help="name of a profile; else the project's default")
        judge = parser.add_mutually_exclusive_group()
        judge.add_argument(
            "--judge",
            action="append",
            default=[],
            help="name of a judge; else the project's default or only one, else the offline baseline. "
            "Named again: judges to compare with",
        )
        judge.add_argument("--no-judge", "--no-llm-judge", action="store_true", help="rules only")
        parser.add_argument(
            "--embeddings",
            default="",
            metavar="NAME",
            help="endpoint to embed with, 'local' or 'none'; the judge's own endpoint, else the first that embeds",
        )
        _add_asking(parser)
        parser.add_argument(
            "--metrics", nargs="+", default=[], metavar="NAME", help="metrics and criteria beside the profile's"
        )
        _add_selection(parser)
        parser.add_argument(
            "--rubric",
            action="append",
            default=[],
            metavar="FAMILY@V",
            help="version to judge by, else the one in force. Named again: versions to compare with the first",
        )
        parser.add_argument(
            "--language", choices=["en", "ko"], default="", help="of the judges' prompts and reasons; else each its own"
        )
        parser.add_argument("--max-concurrency", type=_positive, default=32)
        parser.add_argument("--repeat", type=_positive, default=1, help="judgements of each answer")
        parser.add_argument("--budget", type=dollars, metavar="USD", help="pause when judges' calls have cost so much")
        parser.add_argument("--jury", choices=[*JuryRule], default="", help="let all judges named count, joined so")
        parser.add_argument("--no-cache", action="store_true", help="make every call, paid for before or not")
        parser.add_argument("--batch", action="store_true", help="hand calls over in batches: cheaper, within a day")
        parser.add_argument("--no-baseline", action="store_true", help="without the offline baseline beside the judge")
        parser.add_argument("--name", default="", help="name of the run")
        parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
        parser.add_argument("--output", type=Path, action="append", default=[], help="report file, by its ending")
        parser.add_argument("--format", choices=["text", "json"], default="text")
        add_gate_arguments(parser)
        # None tells that an option was not given; what it is then stands here.
        self.usual = {name: parser.get_default(name) for name in Experiment.model_fields}
        parser.set_defaults(**dict.fromkeys(self.usual))

    def _with_file(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options with what the experiment file says where the command line says nothing, and as they usually are
        where neither does."""
        told = read_experiment(options["config"]).options() if options["config"] else {}
        for given, other in ALONE:
            if options[given] is not None:
                told.pop(other, None)
        said = {name: options[name] if options[name] is not None else told.get(name) for name in self.usual}
        whole = {name: self.usual[name] if value is None else value for name, value in said.items()}
        for name in ("questions", "system"):
            if not (whole[name] or whole["reuse_answers"]):
                raise CommandError(f"--{name} is needed, here or in the file of --config", returncode=2)
        if whole["gate_on"] not in {"", *GateOn}:
            raise CommandError(f"gate_on is one of {', '.join(GateOn)}", returncode=2)
        if whole["judge"] and whole["no_judge"]:
            raise CommandError("judge and no_judge do not go together", returncode=2)
        if whole["reuse_answers"] and whole["no_ask"]:
            raise CommandError("reuse_answers and no_ask do not go together", returncode=2)
        return options | whole

    def handle(self, *args: Any, **options: Any) -> None:
        """Make the run, do its units here, write the reports and print the figures."""
        from review.management.evaluating import evaluate  # a second at import that the help does not need

        with refusals():
            options = self._with_file(options)
        evaluate(self, options)


def _add_asking(parser: CommandParser) -> None:
    answers = parser.add_mutually_exclusive_group()
    answers.add_argument(
        "--reuse-answers",
        type=int,
        metavar="RUN",
        help="judge the answers of that run again; no questions or system need be named",
    )
    answers.add_argument("--no-ask", action="store_true", help="score the newest answers, asked for or imported")
    parser.add_argument(
        "-k", "--k", type=int, choices=range(1, 51), default=5, metavar="1..50", help="passages to ask for"
    )
    parser.add_argument("-t", "--type", choices=[FULL_RAG, RETRIEVAL_ONLY], default=FULL_RAG, help="what to ask for")


def _add_selection(parser: CommandParser) -> None:
    parser.add_argument(
        "--skip-indexing", action="store_true", help="of source 000; Concord indexes nothing, so nothing is skipped"
    )
    parser.add_argument("--limit", type=_positive, help="only the first so many questions")
    parser.add_argument("--category", action="append", default=[], help="only questions of it; named again: or of that")
    parser.add_argument("--tag", action="append", default=[], help="only questions with it; named again: or with that")
    parser.add_argument("--ids", nargs="+", default=[], help="only these questions, by their ids")


def _positive(text: str) -> int:
    if not (text.isdigit() and int(text) > 0):
        raise ArgumentTypeError(f"{text} is no whole number above 0")
    return int(text)
