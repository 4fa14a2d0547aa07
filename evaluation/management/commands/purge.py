"""Erase a person, or delete rows that are no longer needed: unsent calls, unfinished imports, old replies and more."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError, CommandParser
from django.utils import timezone

from evaluation.accounts.erasure import erase_person, purge_replies, purge_unfinished, purge_unsent
from evaluation.accounts.login import FAILURE_RETENTION, purge_failures
from evaluation.core.errors import DomainError
from evaluation.management.site_command import SiteCommand
from evaluation.messages.explanations import explain_refusal
from evaluation.models import User
from evaluation.rest.idempotency import purge_expired
from evaluation.storage.append_only import UNFINISHED_LIMIT


class Command(SiteCommand):
    """``purge [--person NAME] [--by NAME]``: without a person, applies ``CONCORD_REPLY_RETENTION_DAYS``."""

    help = (
        "Delete unsent calls, unfinished imports, old failed log-ins, expired REST responses and, by "
        "CONCORD_REPLY_RETENTION_DAYS, old replies; or erase a person's name and texts. Figures stay."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--person", metavar="NAME", help="user name of the person to erase")
        parser.add_argument("--by", metavar="NAME", help="user name for the audit log of the person who decided this")

    def handle(self, *args: Any, **options: Any) -> None:
        """Purge and print the changed rows.

        :raises CommandError: for unknown names and for the only superuser of the site."""
        by = self._get_user(options["by"]) if options["by"] else None
        if options["person"]:
            try:
                rows = erase_person(self._get_user(options["person"]), by=by)
            except DomainError as error:
                raise CommandError(explain_refusal(error)) from error
            for table, count in rows.items():
                self.stdout.write(f"{table}: {count}")
            self.stdout.write("The person is erased here. Older backups still hold name and texts.")
            return
        count = purge_unsent(timezone.now() - timedelta(days=1), by=by)
        self.stdout.write(f"Calls planned more than a day ago and never sent: {count} deleted")
        count = purge_unfinished(timezone.now() - UNFINISHED_LIMIT, by=by)
        self.stdout.write(f"Rows of imports cancelled or interrupted more than a day ago: {count} deleted")
        self.stdout.write(f"Failed log-ins older than {FAILURE_RETENTION.days} days: {purge_failures()} deleted")
        self.stdout.write(f"Responses stored for an Idempotency-Key more than a day ago: {purge_expired()} deleted")
        if not settings.CONCORD_REPLY_RETENTION_DAYS:
            self.stdout.write("Judge replies: all kept, CONCORD_REPLY_RETENTION_DAYS is 0")
            return
        count = purge_replies(timezone.now() - timedelta(days=settings.CONCORD_REPLY_RETENTION_DAYS), by=by)
        self.stdout.write(f"Judge replies older than {settings.CONCORD_REPLY_RETENTION_DAYS} days: {count} emptied")

    def _get_user(self, name: str) -> User:
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"No user is called {name}.")
        return user
