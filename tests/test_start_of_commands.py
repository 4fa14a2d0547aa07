"""Modules and system checks that commands load before they work."""

import subprocess
import sys

import pytest
from django.core.management import get_commands, load_command_class

from evaluation.management.site_command import SiteCommand
from tests.examples import first_fast

HEAVY = ("aiohttp", "kiwipiepy", "markdown_it", "openai", "openpyxl", "rest_framework.serializers", "rich", "scipy")
LAZY_MODULES = (
    "config.urls",
    "evaluation.runs.execution",
    "review.comparisons.difference",
    "review.agreement.run_agreement",
)
OWN_APPS = {"contrib", "evaluation", "review"}
#: They migrate or serve, and check more.
CHECK_ALL = {"serve", "restore", "migrate"}


@pytest.mark.parametrize("command", first_fast(["evaluate", "results", "agreement"], 1))
def test_command_help_does_not_load_working_modules(command: str) -> None:
    program = (
        "import sys; from django.core.management import execute_from_command_line as execute\n"
        f"try: execute(['manage.py', {command!r}, '--help'])\n"
        f"finally: print(*(name for name in {HEAVY + LAZY_MODULES} if name in sys.modules), file=sys.stderr)"
    )
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"{command} [-h]" in completed.stdout
    assert completed.stderr.split() == []


def test_commands_check_operator_settings_but_not_urls() -> None:
    project_commands = {name for name, app in get_commands().items() if app.partition(".")[0] in OWN_APPS}
    commands = {name: load_command_class(get_commands()[name], name) for name in project_commands - CHECK_ALL}
    assert [name for name, command in commands.items() if not isinstance(command, SiteCommand)] == []
