"""Print retrieval figures corrected by experts' ratings of the pool."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from contrib.retrieval_truth.models import RetrievalRepair
from contrib.retrieval_truth.results import REPAIR_EXPORTS, compute_results, export_repair
from evaluation.management.site_command import SiteCommand
from evaluation.messages.explanations import explain_reason
from review.management.sheets import Sheet, number, write

HEADER = ("metric", "system", "corrected", "low", "high", "labels only")


class Command(SiteCommand):
    """``retrieval_truth REPAIR [--format text|json|csv]``."""

    help = "Print corrected precision, recall and nDCG of a repair, or its pool as a file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("repair", type=int)
        parser.add_argument("--format", choices=["text", *REPAIR_EXPORTS.names], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        repair = RetrievalRepair.objects.filter(pk=options["repair"]).first()
        if repair is None:
            raise CommandError(f"Repair {options['repair']} does not exist.", returncode=2)
        if options["format"] != "text":
            for chunk in export_repair(repair, options["format"]).chunks:
                self.stdout.write(chunk.decode(), ending="")
            return
        result = compute_results(repair)
        rows = [
            (
                figure.metric,
                f"{figure.system} - {figure.minus}" if figure.minus else figure.system,
                *(number(value) for value in (figure.value, figure.low, figure.high, figure.before)),
            )
            for figure in result.figures
        ]
        title = f"{repair.name}: {result.rated} of {result.drawn} rated, {result.unlabelled} without a label"
        write(self.stdout, [Sheet(title, HEADER, rows, numbers_from=2)])
        for code in sorted({figure.withheld for figure in result.figures if figure.withheld}):
            self.stdout.write(explain_reason(code))
