"""Generate questions about the passages of a corpus, for a lead to accept."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from contrib.corpora.selectors import get_corpus
from contrib.generation.kinds import KINDS
from contrib.generation.models import Generation, GenerationResult
from contrib.generation.runner import process_generation
from contrib.generation.selectors import overview
from contrib.generation.services import GenerationSpec, open_generation, plan_generation
from evaluation.judges.shipped import judge_row
from evaluation.management.output import add_format_option, command_errors, print_json, print_table
from evaluation.management.site_command import SiteCommand
from evaluation.runs.planning import plan_sentences
from evaluation.runs.selectors import get_project
from evaluation.specs.flags import dollars, whole_number


class Command(SiteCommand):
    """``generate_questions CORPUS -n NAME -q 1 -m 20``: exit 0 at its end, 1 if it is blocked."""

    help = "Generate questions about passages of a corpus and check them; a lead then accepts them on the site."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("corpus", metavar="CORPUS", help="name of a corpus, or NAME@VERSION")
        parser.add_argument("-n", "--name", required=True, help="name of the question set of accepted questions")
        parser.add_argument("-q", "--questions-per-chunk", type=int, default=1, metavar="N", help="1 to 10 per passage")
        parser.add_argument("-m", "--max-chunks", type=int, default=20, metavar="N", help="passages to sample")
        parser.add_argument(
            "--kinds", nargs="+", choices=[*KINDS], default=[*KINDS], metavar="KIND", help=", ".join(KINDS)
        )
        parser.add_argument("--language", choices=Generation.Language.values, default="en")
        parser.add_argument("--judge", default="", help="judge whose model writes and checks; default: the project's")
        parser.add_argument("--seed", type=whole_number(), help="random seed of the passage sample; default: random")
        parser.add_argument("--budget", type=dollars, metavar="USD", help="limit for the total cost of its calls")
        parser.add_argument("--dry-run", action="store_true", help="only print the estimate")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Process the generation to its end. The same command resumes an interrupted one."""
        with command_errors(self, verb="written"):
            project = get_project(options["project"])
            corpus, judge = get_corpus(project, options["corpus"]), judge_row(project, options["judge"])
            spec = GenerationSpec(
                name=options["name"],
                language=options["language"],
                kinds=tuple(options["kinds"]),
                passages=options["max_chunks"],
                per_passage=options["questions_per_chunk"],
                seed=options["seed"],
                budget=options["budget"],
            )
            if options["dry_run"]:
                plan = plan_generation(corpus, judge, spec)
                if options["format"] == "json":
                    print_json(self, plan.as_json())
                for line in plan_sentences(plan) if options["format"] == "text" else ():
                    self.stdout.write(line)
                return
            generation = open_generation(corpus, judge, spec, by=None)
            while not process_generation(generation):
                pass
        self._print_result(generation, options["format"])

    def _print_result(self, generation: Generation, output_format: str) -> None:
        result = GenerationResult.objects.filter(generation=generation).first()
        summary = overview(generation)
        figures = result.figures if result else {}
        outcome = result.outcome if result else "elsewhere"
        if output_format == "json":
            facts = {"generation": generation.pk, "outcome": outcome, "spent": summary.spent, "calls": summary.calls}
            print_json(self, facts | figures)
            return
        rows = [["written", summary.written], *([name, count] for name, count in summary.removed.items())]
        print_table(self, ["questions", "n"], [*rows, ["waiting for a lead", summary.waiting]])
        self.stdout.write(
            f"generation {generation.pk}: {outcome}, {summary.calls} calls, {summary.spent:.4f} US dollars"
        )
