"""Retrieval figures corrected by what experts said of a sample of the pool."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from contrib.retrieval_truth.models import RetrievalRepair
from contrib.retrieval_truth.results import REPAIR_EXPORTS, export_repair, results
from evaluation.management.site_command import SiteCommand
from evaluation.messages.sentences import explain_reason
from review.management.sheets import Sheet, number, write

HEADER = ("metric", "system", "corrected", "low", "high", "labels alone")


class Command(SiteCommand):
    """``retrieval_truth REPAIR [--format text|json|csv]``."""

    help = "Print corrected precision, recall and nDCG of a repair, or its pool as a file."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which repair, and in which form."""
        parser.add_argument("repair", type=int)
        parser.add_argument("--format", choices=["text", *REPAIR_EXPORTS.names], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Compute and print."""
        found = RetrievalRepair.objects.filter(pk=options["repair"]).first()
        if found is None:
            raise CommandError(f"there is no repair {options['repair']}", returncode=2)
        if options["format"] != "text":
            for chunk in export_repair(found, options["format"]).chunks:
                self.stdout.write(chunk.decode(), ending="")
            return
        said = results(found)
        rows = [
            (
                one.metric,
                f"{one.system} - {one.minus}" if one.minus else one.system,
                *(number(value) for value in (one.value, one.low, one.high, one.before)),
            )
            for one in said.figures
        ]
        title = f"{found.name}: {said.rated} of {said.drawn} rated, {said.unlabelled} without a label"
        write(self.stdout, [Sheet(title, HEADER, rows, numbers_from=2)])
        for code in sorted({one.withheld for one in said.figures if one.withheld}):
            self.stdout.write(explain_reason(code))
