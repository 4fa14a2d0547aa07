"""Generates ``docs/commands.md`` from the help of the commands: ``python -m tools.commands_page``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import django
from django.apps import apps
from django.core.management import get_commands, load_command_class

PAGE = Path(__file__).resolve().parents[1] / "docs" / "commands.md"
HEAD = """# Commands

For evaluation engineers and operators: look up the commands and their options.

Write `.venv/bin/python manage.py` before a command in a checkout, and `concord` where the package is installed.

This page is generated from the help of the commands (`python -m tools.commands_page`).
"""


def commands_page() -> str:
    own_apps = {config.name for config in apps.get_app_configs() if (Path(config.path) / "feature.py").exists()}
    commands = sorted((name, app) for name, app in get_commands().items() if app in own_apps)
    return "\n".join([HEAD, *(line for name, app in commands for line in _section(name, app))]).rstrip() + "\n"


def _section(name: str, app: str) -> Iterator[str]:
    os.environ["COLUMNS"] = "100"
    parser = load_command_class(app, name).create_parser("", name)
    yield f"## {name}\n"
    yield f"{parser.description}\n"
    # Django lists the options that all commands share last, followed by the command's own groups.
    own_options, _, shared_options = parser.format_help().partition("\n  --version ")
    yield from _options([*own_options.split("\n\n")[2:], *shared_options.split("\n\n")[1:]])
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, verb_parser in action.choices.items():
                yield f"### {name} {verb}\n"
                yield from _options(verb_parser.format_help().split("\n\n")[1:])


def _options(groups: Iterable[str]) -> Iterator[str]:
    lines = "\n\n".join(groups).splitlines()
    if own_lines := [line for line in lines if "show this help message" not in line and line != "options:"]:
        yield "```text\n" + "\n".join(own_lines).strip("\n") + "\n```\n"


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    PAGE.write_text(commands_page(), encoding="utf-8")
