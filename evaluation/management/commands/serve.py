"""Run web server and background cluster under one parent process."""

import logging
import sys
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError

from evaluation.worker import dispatch
from evaluation.worker.database import checkpoint_wal
from evaluation.worker.dispatch import Watchdog
from evaluation.worker.serving import PORT_IN_USE, Child, Supervisor, is_port_in_use, web_command, web_processes

log = logging.getLogger("concord.serve")
COPY_WITH_BACKUP = "a copy of the file alone is not whole, take one with `backup`"


class Command(BaseCommand):
    """``serve [--port N] [--host H] [--no-worker | --no-web]``: until Ctrl-C, which stops all processes."""

    help = "Serve the site with a background worker and a watchdog, until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=settings.PORT, help="port to listen on (PORT)")
        group = parser.add_mutually_exclusive_group()
        group.add_argument("--no-worker", action="store_true", help="only the web server")
        group.add_argument("--no-web", action="store_true", help="only the worker and its watchdog")

    def handle(self, *args: Any, **options: Any) -> None:
        """Start the processes and wait.

        :raises CommandError: if the port is taken, or static files cannot be collected."""
        children: list[Child] = []
        on_restart, check_cluster = dispatch.record_restart, lambda: None
        if not options["no_web"]:
            children.append(self._web(options["host"], options["port"]))
        if not options["no_worker"] and settings.CONCORD_DISPATCHER == "django_q":
            try:
                dispatch.schedule_requeueing()
                dispatch.enqueue_heartbeat()
            except DatabaseError as error:
                raise CommandError(f"The database cannot be used: {error}. New or updated? Run migrate.") from error
            cluster = Child("cluster", [sys.executable, sys.argv[0], "qcluster"])
            children.append(cluster)
            check_cluster = Watchdog(cluster)
            on_restart = check_cluster.on_restart
        elif not children:
            raise CommandError(f"No worker to start: CONCORD_DISPATCHER is {settings.CONCORD_DISPATCHER}.")
        if not options["no_web"]:
            self.stdout.write(f"http://{options['host']}:{options['port']}/  (Ctrl-C to stop)")
            self.stdout.flush()
        code = Supervisor(children, on_restart, check_cluster, settings.CONCORD_HEARTBEAT_SECONDS).run()
        if failure := checkpoint_wal():
            log.warning("the database's log could not be written back: %s; %s", failure, COPY_WITH_BACKUP)
        sys.exit(code)

    def _web(self, host: str, port: int) -> Child:
        if is_port_in_use(host, port):
            raise CommandError(PORT_IN_USE % port)
        if not settings.WHITENOISE_USE_FINDERS:
            _collect_static_files()
        return Child("web server", web_command(host, port, web_processes(settings.CONCORD_WEB_PROCESSES)))


def _collect_static_files() -> None:
    """Collect static files, to which pages refer by content hash."""
    try:
        call_command("collectstatic", interactive=False, verbosity=0)
    except OSError as error:
        raise CommandError(f"The files of the pages cannot be collected in {settings.STATIC_ROOT}: {error}") from error
