"""Pool what several runs' systems retrieved and have experts rate a sample of it."""

from typing import Any

from django.core.management.base import CommandParser

from contrib.retrieval_truth.pooling import make_repair
from evaluation.management.site_command import SiteCommand
from review.management.options import refusals, reviewers_of, run_named


class Command(SiteCommand):
    """``repair_truth RUN RUN… --name NAME [--size 200] [--k 10] [--reviewers …]``: prints ``repair ID``."""

    help = "Draw retrieved passages without a label for experts to rate, so that retrieval figures can be corrected."

    def add_arguments(self, parser: CommandParser) -> None:
        """What is pooled, and who rates how much of it."""
        parser.add_argument("run", type=int, nargs="+", help="two to eight, over one version of a question set")
        parser.add_argument("--name", required=True, help="reviewers see it; name no system")
        parser.add_argument("--size", type=int, default=200, help="passages to rate")
        parser.add_argument("--k", type=int, default=10, help="depth of the pool and of the figures, 1 to 50")
        parser.add_argument("--partly-counts", action="store_true", help="“partly relevant” counts as relevant")
        parser.add_argument("--first-relevant", action="store_true", help="also what hit and MRR need")
        parser.add_argument("--reviewers", nargs="+", default=[], metavar="USER", help="else all of the project")
        parser.add_argument("--guideline", default="", help="shown beside the passages")
        parser.add_argument("--seed", type=int, help="else by chance")

    def handle(self, *args: Any, **options: Any) -> None:
        """Make it."""
        with refusals():
            runs = [run_named(pk) for pk in options["run"]]
            wanted = ("name", "size", "k", "partly_counts", "first_relevant", "guideline", "seed")
            given = {name: options[name] for name in wanted}
            made = make_repair(runs, reviewers=reviewers_of(runs[0], options["reviewers"]), **given)
        self.stdout.write(f"repair {made.pk}: {made.passages.filter(sampled=True).count()} passages to rate")
