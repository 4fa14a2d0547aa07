"""Check that the cached figures of a run match its scores and ratings."""

import sys
from typing import Any

from django.core.management.base import CommandParser
from django.utils.translation import gettext as _

from evaluation.management.output import add_format_option, print_json
from evaluation.management.site_command import SiteCommand
from review.figure_cache.builders import differing_kinds
from review.management.options import find_run


class Command(SiteCommand):
    """``verify_report RUN [--format json]``: recompute the figures and compare; exit 1 if any differs."""

    help = "Compare a run's cached figures with its scores and ratings. Exit 1 if any differs."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("run", type=int)
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Compare and print the differences."""
        differences = differing_kinds(find_run(options["run"]))
        if options["format"] == "json":
            print_json(self, {"run": options["run"], "differs": differences})
        elif differences:
            self.stdout.write(
                _("cached figures differ from its scores and ratings: %(kinds)s") % {"kinds": ", ".join(differences)}
            )
        else:
            self.stdout.write(_("cached figures match the run's scores and ratings"))
        if differences:
            sys.exit(1)
