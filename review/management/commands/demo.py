"""Load the demo, evaluate it and, with ``--serve``, serve it."""

from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from evaluation.management.site_command import SiteCommand
from evaluation.worker.serving import PORT_TAKEN, port_taken
from review.management.demo.loading import DemoUser, demo_project, load_demo, set_people


class Command(SiteCommand):
    """``demo [--serve] [--port N]``: makes what it needs; safe to repeat."""

    help = "Load and evaluate the demo; with --serve, serve it with a worker until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        """Whether and where to serve."""
        parser.add_argument("--serve", action="store_true", help="serve the site afterwards")
        parser.add_argument("--port", type=int, default=settings.PORT, help="port to serve on (PORT)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, load, print the people, serve.

        :raises CommandError: when it is to be served and the port is taken; the people keep their passwords then.
        """
        if options["serve"] and port_taken("127.0.0.1", options["port"]):
            raise CommandError(PORT_TAKEN % options["port"])
        call_command("migrate", verbosity=0)
        project = demo_project()
        people = set_people(project)
        for run in load_demo(project):
            self.stdout.write(f"run {run.pk}  {run.name}  {run.get_state_display()}")
        self._introduce(people, options["port"])
        if options["serve"]:
            call_command("serve", port=options["port"])

    def _introduce(self, people: list[DemoUser], port: int) -> None:
        self.stdout.write(f"\nConcord is at http://127.0.0.1:{port}/  Log in as:")
        for person in people:
            self.stdout.write(f"  {person.username:<10} {person.password:<14} ({person.role})")
        self.stdout.write("")
        self.stdout.flush()
