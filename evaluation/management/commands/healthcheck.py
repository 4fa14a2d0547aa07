"""Check the health of the site, for supervisors and monitoring."""

import sys
from typing import Any

from django.core.checks import WARNING, Tags, run_checks
from django.core.management.base import CommandParser

from evaluation.accounts import audit
from evaluation.management.site_command import SiteCommand
from evaluation.messages.explanations import explain_reason
from evaluation.worker.database import set_statement_timeouts
from evaluation.worker.health import HealthIssue, Severity, find_issues


class Command(SiteCommand):
    """``healthcheck``: exit 0 if healthy, else 1 with the list of problems."""

    help = "Check the database, workers, runs, jobs and backups. Exit 1 if there is a problem."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="", help="count only heartbeats of this host")
        parser.add_argument("--audit", action="store_true", help="also check the audit log, as verify_audit does")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the findings; notes do not affect the exit code."""
        set_statement_timeouts()
        findings = find_issues(options["host"])
        if not any(finding.serious for finding in findings):
            check_messages = run_checks(tags=[Tags.database], databases=["default"])
            findings += [
                HealthIssue("check", f"{message.msg}. {message.hint}")
                for message in check_messages
                if message.level == WARNING
            ]
            if options["audit"]:
                findings += [
                    HealthIssue("audit", f"{explain_reason(flaw.code)} ({flaw.subject})") for flaw in audit.flaws()
                ]
        for finding in findings:
            self.stdout.write(f"{'note: ' if finding.severity is Severity.NOTE else ''}{finding.text}")
        if any(finding.severity is not Severity.NOTE for finding in findings):
            sys.exit(1)
        self.stdout.write("healthy")
