"""Make a system under test, or its next version, of a file with its settings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.connectors.catalogue import BadSettings
from evaluation.management.site_command import SiteCommand
from evaluation.management.working import refusals
from evaluation.messages.system_settings import explain_setting
from evaluation.profiles.spec import read_mapping
from evaluation.runs.selectors import project_named
from evaluation.systems.services import connectors, save_system


class Command(SiteCommand):
    """``add_system NAME --connector http --settings FILE``: prints the version that has these settings."""

    help = "Make a system under test, or its next version, of a YAML or JSON file with its settings."

    def add_arguments(self, parser: CommandParser) -> None:
        """Name, connector and settings."""
        parser.add_argument("system", metavar="NAME")
        parser.add_argument("--connector", required=True, choices=sorted(connectors()))
        parser.add_argument("--settings-file", "-f", type=Path, required=True, metavar="FILE", help="YAML or JSON")
        parser.add_argument("--project", default="", help="needed where there are several projects")

    def handle(self, *args: Any, **options: Any) -> None:
        """Store the version, or say what is wrong by field."""
        given = settings_in(options["settings_file"])
        project, connector = options["project"], options["connector"]
        try:
            with refusals(self):
                made = save_system(project_named(project), options["system"], connector, given, None)
        except CommandError as error:
            if not isinstance(error.__cause__, BadSettings):
                raise
            problems = error.__cause__.problems
            for problem in problems:
                self.stderr.write(f"{problem.field}: {explain_setting(problem)}".removeprefix(": "), self.style.ERROR)
            raise CommandError(f"{len(problems)} problem(s); nothing was saved") from error
        self.stdout.write(str(made))


def settings_in(path: Path) -> dict[str, Any]:
    """The settings in a file.

    :raises CommandError: for a file that cannot be read, or holds no mapping.
    """
    try:
        return read_mapping(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: {error}") from error
