"""Create a system under test, or its next version, from a settings file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import CommandError, CommandParser

from evaluation.connectors.catalogue import InvalidSettings
from evaluation.management.output import command_errors
from evaluation.management.site_command import SiteCommand
from evaluation.messages.system_settings import explain_setting_problem
from evaluation.profiles.spec import read_mapping
from evaluation.runs.selectors import get_project
from evaluation.systems.services import connectors, save_system


class Command(SiteCommand):
    """``add_system NAME --connector http --settings-file FILE``: prints the version with these settings."""

    help = "Create a system under test, or its next version, from a YAML or JSON settings file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("system", metavar="NAME")
        parser.add_argument("--connector", required=True, choices=sorted(connectors()))
        parser.add_argument("--settings-file", "-f", type=Path, required=True, metavar="FILE", help="YAML or JSON")
        parser.add_argument("--project", default="", help="name of the project; required if there are several")

    def handle(self, *args: Any, **options: Any) -> None:
        """Store the version, or print the problems by field."""
        config = read_settings_file(options["settings_file"])
        project, connector = options["project"], options["connector"]
        try:
            with command_errors(self):
                version = save_system(get_project(project), options["system"], connector, config, None)
        except CommandError as error:
            if not isinstance(error.__cause__, InvalidSettings):
                raise
            problems = error.__cause__.problems
            for problem in problems:
                self.stderr.write(
                    f"{problem.field}: {explain_setting_problem(problem)}".removeprefix(": "), self.style.ERROR
                )
            raise CommandError(f"{len(problems)} problem(s); nothing was saved") from error
        self.stdout.write(str(version))


def read_settings_file(path: Path) -> dict[str, Any]:
    """Read the settings from a file.

    :raises CommandError: if the file cannot be read or holds no mapping."""
    try:
        return read_mapping(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: {error}") from error
