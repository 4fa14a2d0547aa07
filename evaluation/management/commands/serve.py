"""Run web server and background cluster under one parent process."""

import logging
import os
import signal
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, connection

from evaluation.core.errors import DomainError
from evaluation.messages.explanations import explain_refusal
from evaluation.specs.flags import whole_number
from evaluation.worker import dispatch
from evaluation.worker.database import AWAY, checkpoint_wal, claimed, unavailable_reason
from evaluation.worker.dispatch import Watchdog
from evaluation.worker.serving import Child, Supervisor, reserved_port, web_command, web_processes

log = logging.getLogger("concord.serve")
COPY_WITH_BACKUP = "a copy of the database file is incomplete; use `backup` to copy the database"


class Command(BaseCommand):
    """``serve [--port N] [--host H] [--no-worker | --no-web]``: until Ctrl-C, which stops all processes."""

    help = "Serve the site with a background worker and a watchdog, until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", type=_host_name, default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=whole_number(65_535), default=settings.PORT, help="port to listen on (PORT)")
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--no-worker", action="store_true", help="start only the web server")
        group.add_argument("--no-web", action="store_true", help="start only the worker and its watchdog")

    def handle(self, *args: Any, **options: Any) -> None:
        """Start the processes and wait.

        :raises CommandError: if the port or the database is served already, or static files cannot be collected.
        :raises DatabaseError: if the database must not be used. Pages report one that is away, until it is back."""
        parts = ["web"] * (not options["no_web"])
        if not options["no_worker"] and settings.CONCORD_DISPATCHER == "django_q":
            parts.append("worker")
        if not parts:
            raise CommandError(f"No worker to start: CONCORD_DISPATCHER is {settings.CONCORD_DISPATCHER}.")
        try:
            port = reserved_port(options["host"], options["port"]) if "web" in parts else nullcontext()
            with port, claimed(*parts) as renew_claims:
                code = self._serve(parts, renew_claims, **options)
        except DomainError as error:
            raise CommandError(explain_refusal(error)) from error
        except OSError as error:
            raise CommandError(f"The site cannot be served: {error}") from error
        if failure := checkpoint_wal():
            log.warning("cannot write SQLite's log into the database file: %s; %s", failure, COPY_WITH_BACKUP)
        sys.exit(code)

    def _serve(self, parts: list[str], renew_claims: Callable[[], None], **options: Any) -> int:
        try:
            connection.ensure_connection()
        except DatabaseError as error:
            if unavailable_reason(error) != AWAY:
                raise
        children: list[Child] = []
        on_restart = dispatch.record_restart
        check_cluster: Watchdog | None = None
        if "web" in parts:
            if not settings.WHITENOISE_USE_FINDERS:
                _collect_static_files()
            web_count = web_processes(settings.CONCORD_WEB_PROCESSES)
            children.append(Child("web server", web_command(options["host"], options["port"], web_count)))
        if "worker" in parts:
            try:
                dispatch.schedule_requeueing()
                dispatch.enqueue_heartbeat()
            except DatabaseError as error:
                message = f"Cannot use the database: {error}. Run migrate if it is new or Concord was updated."
                raise CommandError(message) from error
            cluster = Child("cluster", [sys.executable, sys.argv[0], "qcluster"])
            children.append(cluster)
            check_cluster = Watchdog(cluster)
            on_restart = check_cluster.on_restart
        if "web" in parts:
            self.stdout.write(f"http://{options['host']}:{options['port']}/  (Ctrl-C to stop)")
            self.stdout.flush()

        def check() -> None:
            if check_cluster:
                check_cluster()
            try:
                renew_claims()
            except DatabaseError as error:
                log.warning("cannot reserve the database: %s", error)
            except DomainError as error:
                log.error("%s", explain_refusal(error))
                os.kill(os.getpid(), signal.SIGTERM)

        return Supervisor(children, on_restart, check, settings.CONCORD_HEARTBEAT_SECONDS).run()


def _host_name(text: str) -> str:
    """Check that a name can be looked up.

    :raises UnicodeError: if it cannot."""
    text.encode("idna")
    return text


def _collect_static_files() -> None:
    """Collect static files, to which pages refer by content hash."""
    try:
        call_command("collectstatic", interactive=False, verbosity=0)
    except OSError as error:
        raise CommandError(f"Cannot collect static files in {settings.STATIC_ROOT}: {error}") from error
