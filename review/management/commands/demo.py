"""Load the demo, evaluate it and, with ``--serve``, serve it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import CommandError, CommandParser

from evaluation.core.errors import DomainError
from evaluation.management.site_command import SiteCommand
from evaluation.messages.explanations import explain_refusal
from evaluation.models import User
from evaluation.specs.flags import whole_number
from evaluation.worker.serving import Child, is_port_in_use
from review.management.demo.calibration import TOY_JUDGE, TOY_ORIGIN, TOY_PORT, load_calibration
from review.management.demo.loader import DemoUser, create_demo_users, demo_project, load_demo


class Command(SiteCommand):
    """``demo [--serve] [--port N]``: creates what is missing; safe to repeat."""

    help = "Load and evaluate the demo; with --serve, serve it with a worker until Ctrl-C."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--serve", action="store_true", help="then serve the site")
        parser.add_argument("--port", type=whole_number(65_535), default=settings.PORT, help="port to serve on (PORT)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Migrate, load the demo, print the users, and serve.

        :raises CommandError: if the port is taken; passwords then stay unchanged."""
        if options["serve"] and is_port_in_use("127.0.0.1", options["port"]):
            raise CommandError(explain_refusal(DomainError("port_in_use", port=options["port"])))
        call_command("migrate", verbosity=0)
        project = demo_project()
        people = create_demo_users(project)
        for language, _ in reversed(settings.LANGUAGES):
            if TOY_JUDGE.exists():
                load_calibration(project, User.objects.get(username="lead"), language)
            for run in load_demo(project, language):
                self.stdout.write(f"run {run.pk}  {run.name}  {run.get_state_display()}")
        self._print_accounts(people, options["port"])
        if options["serve"]:
            with self._toy_judge():
                call_command("serve", port=options["port"])

    def _print_accounts(self, people: list[DemoUser], port: int) -> None:
        self.stdout.write(f"\nConcord is at http://127.0.0.1:{port}/  Log in as:")
        for person in people:
            self.stdout.write(f"  {person.username:<10} {person.password:<14} ({person.role})")
        self.stdout.write("")
        self.stdout.flush()

    @contextmanager
    def _toy_judge(self) -> Iterator[None]:
        """Run the toy judge beside the site and allow calls to it, or print why it is not available."""
        problem = ""
        if not TOY_JUDGE.exists():
            problem = "This installed package has no examples"
        elif is_port_in_use("127.0.0.1", TOY_PORT):
            problem = f"Port {TOY_PORT} is in use"
        if problem:
            self.stderr.write(f"{problem}, so the toy judge and calibration are not available.")
            yield
            return
        os.environ["CONCORD_JUDGE_ORIGINS"] = ",".join([*settings.CONCORD_JUDGE_ORIGINS, TOY_ORIGIN])
        child = Child("toy judge", [sys.executable, str(TOY_JUDGE)])
        try:
            yield
        finally:
            child.request_stop()
            child.wait_for_end()
