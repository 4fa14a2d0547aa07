"""Send the reminders that are due."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.utils.translation import gettext as _

from evaluation.management.site_command import SiteCommand
from review.queues.directing import remind_all


class Command(SiteCommand):
    """``remind_reviewers``: for hosts without ``serve``, once an hour; repeating it sends nothing twice."""

    help = "Remind reviewers by e-mail of queues whose deadline is near."

    def add_arguments(self, parser: CommandParser) -> None:
        """``--format``."""
        parser.add_argument("--format", choices=["text", "json"], default="text")

    def handle(self, *args: Any, **options: Any) -> None:
        """Send them and say how many; exit code 1 without a mail server or where a mail could not be sent."""
        if not settings.CONCORD_MAIL:
            raise CommandError(_("No mail server is set: give its address in EMAIL_URL."))
        done = remind_all()
        if options["format"] == "json":
            self.stdout.write(json.dumps({"sent": done.sent, "failed": done.failed}))
        else:
            facts = {"sent": done.sent, "failed": done.failed}
            self.stdout.write(_("%(sent)d sent, %(failed)d could not be sent") % facts)
        if done.failed:
            raise CommandError(_("Some reminders could not be sent; they are tried again."))
