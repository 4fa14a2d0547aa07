"""Start-up time of commands, and the time until a fresh database has its tables.

    python -m tools.bench.starting [--turns 5]

CPU time, beside the help of a command of a bare Django project with the admin and the REST framework, in turns, so that
the ratio holds on a noisy machine. ``results 0`` finds no run: it does only what every command does before it works."""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = """
SECRET_KEY = "bench"
INSTALLED_APPS = ["django.contrib.admin", "django.contrib.auth", "django.contrib.contenttypes",
                  "django.contrib.sessions", "django.contrib.messages", "django.contrib.staticfiles",
                  "rest_framework", "bare"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
"""
COMMAND = """
from django.core.management.base import BaseCommand
from rest_framework import serializers

class Command(BaseCommand):
    pass
"""
MEASURED = (("results", "--help"), ("agreement", "--help"), ("evaluate", "--help"), ("results", "0"))


def bare_project(folder: Path) -> None:
    """A Django project with the REST framework and one command, ``hello``."""
    commands = folder / "bare" / "management" / "commands"
    commands.mkdir(parents=True)
    (folder / "bare" / "settings.py").write_text(SETTINGS)
    (commands / "hello.py").write_text(COMMAND)
    for package in (commands, commands.parent, commands.parent.parent):
        (package / "__init__.py").touch()


def seconds(folder: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> float:
    """CPU seconds of a process that Python starts with these arguments."""
    usage_before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "django", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        check=False,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    usage_after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage_after.ru_utime + usage_after.ru_stime - usage_before.ru_utime - usage_before.ru_stime


def main() -> None:
    """Print medians and ratios."""
    parser = argparse.ArgumentParser(prog="python -m tools.bench.starting")
    parser.add_argument("--turns", type=int, default=5)
    rounds = parser.parse_args().turns
    with tempfile.TemporaryDirectory() as name:
        bare_folder = Path(name) / "bare"
        bare_project(bare_folder)
        database = {"DATABASE_URL": f"sqlite:///{name}/used.sqlite3", "DJANGO_SETTINGS_MODULE": "config.settings"}
        seconds(ROOT, ["migrate"], database)
        times_by_command: dict[Sequence[str], list[float]] = {}
        for round_number in range(rounds):
            hello = seconds(bare_folder, ["hello", "--help"], {"DJANGO_SETTINGS_MODULE": "bare.settings"})
            times_by_command.setdefault(("bare",), []).append(hello)
            for arguments in MEASURED:
                times_by_command.setdefault(arguments, []).append(seconds(ROOT, arguments, database))
            fresh = database | {"DATABASE_URL": f"sqlite:///{name}/fresh{round_number}.sqlite3"}
            times_by_command.setdefault(("migrate",), []).append(seconds(ROOT, ["migrate"], fresh))
    base = median(times_by_command["bare",])
    for arguments, times in times_by_command.items():
        print(f"{' '.join(arguments):18} {median(times):5.2f} s of CPU time, times bare {median(times) / base:.2f}")


if __name__ == "__main__":
    main()
