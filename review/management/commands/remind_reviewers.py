"""Send due reminders."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _

from evaluation.management.site_command import SiteCommand
from review.queues.reassignment import remind_all


class Command(SiteCommand):
    """``remind_reviewers``: for hosts without ``serve``, hourly; repeating it sends nothing twice."""

    help = "Remind reviewers by e-mail of queues whose deadline is near."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Send reminders and print their number; exit 1 without a mail server or if a mail failed."""
        if not settings.CONCORD_MAIL:
            raise CommandError(_("No mail server is configured. Set its address in EMAIL_URL."))
        outcome = remind_all()
        if options["format"] == "json":
            self.stdout.write(json.dumps({"sent": outcome.sent, "failed": outcome.failed}))
        else:
            facts = {"sent": outcome.sent, "failed": outcome.failed}
            self.stdout.write(_("%(sent)d sent, %(failed)d could not be sent") % facts)
        if outcome.failed:
            raise CommandError(_("Some reminders couldn't be sent. They will be retried."))
