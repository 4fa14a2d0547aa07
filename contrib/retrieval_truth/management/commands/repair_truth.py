"""Create a repair: pool the passages that several runs retrieved, and draw a sample for experts to rate."""

from typing import Any

from django.core.management.base import CommandParser

from contrib.retrieval_truth.pooling import make_repair
from evaluation.management.site_command import SiteCommand
from evaluation.specs.flags import whole_number
from review.management.options import command_errors, find_reviewers, find_run


class Command(SiteCommand):
    """``repair_truth RUN RUN… --name NAME [--size 200] [--k 10] [--reviewers …]``: prints ``repair ID``."""

    help = "Sample unlabelled retrieved passages for experts to rate, to correct retrieval figures."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int, nargs="+", help="two to eight runs of one version of a question set")
        parser.add_argument("--name", required=True, help="name that reviewers see; don't mention a system")
        parser.add_argument("--size", type=int, default=200, help="passages to rate")
        parser.add_argument("--k", type=int, default=10, help="depth of the pool and of the figures, 1 to 50")
        parser.add_argument("--partly-counts", action="store_true", help="“partly relevant” counts as relevant")
        parser.add_argument("--first-relevant", action="store_true", help="also sample passages needed for hit and MRR")
        parser.add_argument("--reviewers", nargs="+", default=[], metavar="USER", help="default: all of the project")
        parser.add_argument("--guideline", default="", help="guideline shown with the passages")
        parser.add_argument("--seed", type=whole_number(), help="random seed; default: random")

    def handle(self, *args: Any, **options: Any) -> None:
        with command_errors():
            runs = [find_run(pk) for pk in options["run"]]
            names = ("name", "size", "k", "partly_counts", "first_relevant", "guideline", "seed")
            arguments = {name: options[name] for name in names}
            repair = make_repair(runs, reviewers=find_reviewers(runs[0], options["reviewers"]), **arguments)
        self.stdout.write(f"repair {repair.pk}: {repair.passages.filter(sampled=True).count()} passages to rate")
