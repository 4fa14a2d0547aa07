"""Print the agreement of judges and experts."""

import json
from typing import Any

from django.core.management.base import CommandParser

from evaluation.management.site_command import SiteCommand
from review.management.options import add_resampling_arguments, find_run
from review.management.sheets import write


class Command(SiteCommand):
    """``agreement RUN [--format json] [--by category|period] [--seed N] [--resamples N]``."""

    help = "Print the agreement of every judge with the experts, and of the experts among themselves."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int)
        parser.add_argument("--format", choices=["text", "json"], default="text")
        parser.add_argument("--by", choices=["category", "period"], default="")
        add_resampling_arguments(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Compute and print the agreement."""
        from review.agreement.run_agreement import Breakdown, compute_agreement
        from review.management.agreement_sheets import (
            # Importing it takes a second that the help does not need.
            agreement_sheets,
        )
        from review.statistics.agreement.bootstrap import Resampling

        resampling = Resampling(options["resamples"], options["seed"]) if options["resamples"] > 0 else None
        agreement = compute_agreement(find_run(options["run"]), resampling=resampling, by=Breakdown(options["by"]))
        if options["format"] == "json":
            self.stdout.write(json.dumps(agreement.to_dict(), ensure_ascii=False, allow_nan=False))
        elif not agreement.judges and not agreement.experts:
            self.stdout.write("no blind expert ratings yet")
        else:
            write(self.stdout, agreement_sheets(agreement))
