"""Say whether all is well; made for supervisors and monitoring."""

import sys
from typing import Any

from django.core.checks import WARNING, Tags, run_checks
from django.core.management.base import CommandParser

from evaluation.accounts import audit
from evaluation.management.site_command import SiteCommand
from evaluation.messages.sentences import explain_reason
from evaluation.worker.database import limit_waits
from evaluation.worker.health import Finding, Weight, examine


class Command(SiteCommand):
    """``healthcheck``: exit code 0 when healthy, 1 with the problems listed otherwise."""

    help = "Exit with 1 when the database takes no writing, the cluster gives no sign of life or a run stands still."

    def add_arguments(self, parser: CommandParser) -> None:
        """Which host's cluster to look for."""
        parser.add_argument("--host", default="", help="only count heartbeats of this host")
        parser.add_argument("--audit", action="store_true", help="check the audit log too, as verify_audit does")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print what is found, or that all is well; what is only good to know makes nothing unhealthy."""
        limit_waits()
        found = examine(options["host"])
        if not any(finding.serious for finding in found):
            checked = run_checks(tags=[Tags.database], databases=["default"])
            found += [Finding("check", f"{one.msg}. {one.hint}") for one in checked if one.level == WARNING]
            if options["audit"]:
                found += [Finding("audit", f"{explain_reason(one.code)} ({one.about})") for one in audit.flaws()]
        for finding in found:
            self.stdout.write(f"{'note: ' if finding.weight is Weight.NOTE else ''}{finding.text}")
        if any(finding.weight is not Weight.NOTE for finding in found):
            sys.exit(1)
        self.stdout.write("healthy")
