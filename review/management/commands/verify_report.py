"""Say whether what pages show of a run is what its scores and ratings give."""

import sys
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _

from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, as_json
from review.figure_cache.making import differing
from review.management.options import run_named


class Command(SiteCommand):
    """``verify_report RUN [--format json]``: makes the run's figures from nothing and compares; 1 where one differs."""

    help = "Compare what pages show of a run with figures made from its scores and ratings; exit 1 where one differs."

    def add_arguments(self, parser: CommandParser) -> None:
        """The run, and how to print it."""
        parser.add_argument("run", type=int)
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare and tell."""
        found = differing(run_named(options["run"]))
        if options["format"] == "json":
            as_json(self, {"run": options["run"], "differs": found})
        elif found:
            self.stdout.write(_("differs from its scores and ratings: %(kinds)s") % {"kinds": ", ".join(found)})
        else:
            self.stdout.write(_("what is kept of the run is what its scores and ratings give"))
        if found:
            sys.exit(1)
