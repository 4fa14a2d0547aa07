"""Serve the site: web server and background cluster under one parent."""

import logging
import sys
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from evaluation.worker import dispatch
from evaluation.worker.database import write_log_back
from evaluation.worker.dispatch import Watchdog
from evaluation.worker.serving import PORT_TAKEN, Child, Supervisor, port_taken, processes, web_command

log = logging.getLogger("concord.serve")
COPY_WITH_BACKUP = "a copy of the file alone is not whole, take one with `backup`"


class Command(BaseCommand):
    """``serve [--port N] [--host H] [--no-worker | --no-web]``: until Ctrl-C, which ends everything it started."""

    help = "Serve the site with a background worker and a watchdog, until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        """Address, and whether this host works in the background too."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=settings.PORT, help="port to listen on (PORT)")
        part = parser.add_mutually_exclusive_group()
        part.add_argument("--no-worker", action="store_true", help="only the web server")
        part.add_argument("--no-web", action="store_true", help="only the worker and its watchdog")

    def handle(self, *args: Any, **options: Any) -> None:
        """Start the children and wait.

        :raises CommandError: when the port is taken, or the files of the pages cannot be collected.
        """
        children: list[Child] = []
        told, watch = dispatch.note_restart, lambda: None
        if not options["no_web"]:
            children.append(self._web(options["host"], options["port"]))
        if not options["no_worker"] and settings.CONCORD_DISPATCHER == "django_q":
            try:
                dispatch.ring_on_schedule()
                dispatch.ring_canary()
            except DatabaseError as error:
                raise CommandError(f"The database cannot be used: {error}. New or updated? Run migrate.") from error
            cluster = Child("cluster", [sys.executable, sys.argv[0], "qcluster"])
            children.append(cluster)
            watch = Watchdog(cluster)
            told = watch.told
        elif not children:
            raise CommandError(f"No worker to start: CONCORD_DISPATCHER is {settings.CONCORD_DISPATCHER}.")
        if not options["no_web"]:
            self.stdout.write(f"http://{options['host']}:{options['port']}/  (Ctrl-C to stop)")
            self.stdout.flush()
        code = Supervisor(children, told, watch, settings.CONCORD_HEARTBEAT_SECONDS).run()
        if left := write_log_back():
            log.warning("the database's log could not be written back: %s; %s", left, COPY_WITH_BACKUP)
        sys.exit(code)

    def _web(self, host: str, port: int) -> Child:
        if port_taken(host, port):
            raise CommandError(PORT_TAKEN % port)
        if not settings.DEBUG:
            _collect_files()
        return Child("web server", web_command(host, port, processes(settings.CONCORD_WEB_PROCESSES)))


def _collect_files() -> None:
    """Where DEBUG is off, pages name their stylesheets and scripts by content, as they were collected last."""
    try:
        call_command("collectstatic", interactive=False, verbosity=0)
    except OSError as error:
        raise CommandError(f"The files of the pages cannot be collected in {settings.STATIC_ROOT}: {error}") from error
