"""Have a model write questions about the passages of a corpus, for a lead to accept."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from contrib.corpora.selectors import corpus_named
from contrib.generation.kinds import KINDS
from contrib.generation.models import Generation, GenerationResult
from contrib.generation.selectors import overview
from contrib.generation.services import Wanted, open_generation, plan_of
from contrib.generation.working import step
from evaluation.judges.shipping import judge_row
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, as_json, refusals, table
from evaluation.runs.planning import plan_sentences
from evaluation.runs.selectors import project_named
from evaluation.specs.flags import dollars


class Command(SiteCommand):
    """``generate_questions CORPUS -n NAME -q 1 -m 20``: exit 0 at its end, 1 where it stands still."""

    help = "Have a model write and check questions about passages of a corpus; a lead then accepts them on the site."

    def add_arguments(self, parser: CommandParser) -> None:
        """What to write, about what, by whom."""
        parser.add_argument("corpus", metavar="CORPUS", help="name of a corpus, or NAME@VERSION")
        parser.add_argument("-n", "--name", required=True, help="name of the question set that accepted questions make")
        parser.add_argument("-q", "--questions-per-chunk", type=int, default=1, metavar="N", help="1 to 10")
        parser.add_argument("-m", "--max-chunks", type=int, default=20, metavar="N", help="passages that are drawn")
        parser.add_argument(
            "--kinds", nargs="+", choices=[*KINDS], default=[*KINDS], metavar="KIND", help=", ".join(KINDS)
        )
        parser.add_argument("--language", choices=Generation.Language.values, default="en")
        parser.add_argument("--judge", default="", help="whose model writes and checks; the project's own without it")
        parser.add_argument("--seed", type=int, help="of the draw of passages; one is drawn without it")
        parser.add_argument("--budget", type=dollars, metavar="USD", help="what all its calls may cost")
        parser.add_argument("--dry-run", action="store_true", help="say what it takes, and do nothing")
        parser.add_argument("--project", default="", help="needed where there are several projects")
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Go on until it has ended; the same command goes on with one that was interrupted."""
        with refusals(self, done="written"):
            project = project_named(options["project"])
            corpus, judge = corpus_named(project, options["corpus"]), judge_row(project, options["judge"])
            wanted = Wanted(
                name=options["name"],
                language=options["language"],
                kinds=tuple(options["kinds"]),
                passages=options["max_chunks"],
                per_passage=options["questions_per_chunk"],
                seed=options["seed"],
                budget=options["budget"],
            )
            if options["dry_run"]:
                plan = plan_of(corpus, judge, wanted)
                if options["format"] == "json":
                    as_json(self, plan.as_json())
                for line in plan_sentences(plan) if options["format"] == "text" else ():
                    self.stdout.write(line)
                return
            generation = open_generation(corpus, judge, wanted, by=None)
            while not step(generation):
                pass
        self._tell(generation, options["format"])

    def _tell(self, generation: Generation, form: str) -> None:
        result = GenerationResult.objects.filter(generation=generation).first()
        seen = overview(generation)
        figures = result.figures if result else {}
        outcome = result.outcome if result else "elsewhere"
        if form == "json":
            told = {"generation": generation.pk, "outcome": outcome, "spent": seen.spent, "calls": seen.calls}
            as_json(self, told | figures)
            return
        rows = [["written", seen.written], *([name, many] for name, many in seen.removed.items())]
        table(self, ["questions", "n"], [*rows, ["left for a lead", seen.waiting]])
        self.stdout.write(f"generation {generation.pk}: {outcome}, {seen.calls} calls, {seen.spent:.4f} US dollars")
