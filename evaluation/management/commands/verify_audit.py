"""Report changes made outside the application."""

import sys
from argparse import ArgumentTypeError
from dataclasses import asdict
from typing import Any

from django.core.management.base import CommandParser

from evaluation.accounts import audit
from evaluation.management.output import add_format_option, print_json
from evaluation.management.site_command import SiteCommand
from evaluation.messages.explanations import explain_reason


class Command(SiteCommand):
    """``verify_audit [--head NUMBER:HASH] [--seal] [--format json]``: prints what is covered, every problem, and the
    chain head to store elsewhere; exits with 1 if there is a problem."""

    help = "Check the audit log's chain, the sealed rows and the database triggers. Exit 1 if there is a problem."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--head", type=parse_head, help="head printed by an earlier call; detects a truncated log")
        parser.add_argument("--seal", action="store_true", help="seal all unsealed rows after the check")
        add_format_option(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Check the log, then seal if requested."""
        problems = list(audit.flaws(options["head"] or ""))
        sealed = audit.seal_rows() if options["seal"] else 0
        head, (tables, uncovered) = audit.chain_head(), audit.coverage()
        unsealed = sum(table.unsealed for table in tables)
        if options["format"] == "json":
            report = {
                "flaws": [{"code": problem.code, "about": problem.subject} for problem in problems],
                "sealed": sealed,
                "unsealed": unsealed,
                "covered": {table.table: asdict(table) for table in tables},
                "not_covered": uncovered,
                "head": head,
            }
            print_json(self, report)
        else:
            for table in tables:
                if table.sealed or table.unsealed:
                    fields = f" ({', '.join(table.fields)})" if table.fields else ""
                    self.stdout.write(
                        f"covered: {table.table}{fields}: {table.sealed} rows sealed, {table.unsealed} not yet"
                    )
            self.stdout.write(f"not covered: {', '.join(uncovered)}")
            for problem in problems:
                self.stdout.write(f"{explain_reason(problem.code)} ({problem.subject})")
            self.stdout.write(
                f"{sealed} rows sealed now, {unsealed} not sealed yet" if sealed else f"{unsealed} rows not sealed yet"
            )
            self.stdout.write(f"head: {head}")
            if not problems:
                self.stdout.write("no problems found")
        if problems:
            sys.exit(1)


def parse_head(text: str) -> str:
    number, _, digest = text.partition(":")
    if not number.isdecimal() or len(digest) != len(audit.GENESIS):
        raise ArgumentTypeError(f"{text} is not a head: use NUMBER:HASH as printed by verify_audit")
    return text
