"""Say whether anything was changed behind the product's back."""

import sys
from argparse import ArgumentTypeError
from typing import Any

from django.core.management.base import CommandParser

from evaluation.accounts import audit
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import add_format, as_json
from evaluation.messages.sentences import explain_reason


class Command(SiteCommand):
    """``verify_audit [--head NUMBER:HASH] [--seal] [--format json]``: every flaw, and the head to keep elsewhere; 1
    with any flaw."""

    help = (
        "Check the audit log's chain, the rows that its seals cover and the database's triggers; exit 1 with any flaw."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """The head that was kept, and whether to seal first."""
        parser.add_argument("--head", type=_head, help="head that an earlier call printed (a cut tail shows)")
        parser.add_argument(
            "--seal", action="store_true", help="seal all rows that are not sealed yet, after the check"
        )
        add_format(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Check, seal where asked, and tell."""
        found = list(audit.flaws(options["head"] or ""))
        sealed = audit.seal() if options["seal"] else 0
        head, waiting = audit.head(), audit.unsealed_rows()
        if options["format"] == "json":
            flaws = [{"code": one.code, "about": one.about} for one in found]
            as_json(self, {"flaws": flaws, "sealed": sealed, "unsealed": waiting, "head": head})
        else:
            for one in found:
                self.stdout.write(f"{explain_reason(one.code)} ({one.about})")
            self.stdout.write(
                f"{sealed} rows sealed now, {waiting} not sealed yet" if sealed else f"{waiting} rows not sealed yet"
            )
            self.stdout.write(f"head: {head}")
            if not found:
                self.stdout.write("nothing was changed")
        if found:
            sys.exit(1)


def _head(text: str) -> str:
    number, _, digest = text.partition(":")
    if not number.isdecimal() or len(digest) != len(audit.GENESIS):
        raise ArgumentTypeError(f"{text} is no head: give NUMBER:HASH as an earlier verify_audit printed it")
    return text
