"""A database that newer code has migrated is refused by every command and by the site."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.faults.site import ROOT, Site, free_port
from tests.faults.test_database_away import send_request
from tests.faults.test_restarts import site_answers
from tests.faults.test_watchdog import wait_until

pytestmark = [pytest.mark.faults]
# As the `migrate` of a later version leaves it.
MIGRATE_BY_NEWER_CODE = """
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder
recorder = MigrationRecorder(connection)
recorder.record_applied("review", "0999_later")
recorder.record_applied("concord", "9.1.0")
"""
COMMANDS = (
    ["results", "1"], ["work", "--once"], ["resume_run", "1"], ["provision", "pyproject.toml", "--check"],
    ["verify_audit"], ["purge"], ["backup", "{folder}/newer.backup"], ["migrate"],
    ["migrate", "--plan"], ["serve", "--port", "{port}"], ["serve", "--no-worker", "--port", "{port}"],
    ["serve", "--no-web"], ["createsuperuser", "--noinput", "--username", "x", "--email", "x@y.z"],
    ["shell", "-c", "from evaluation.models import Run; print(Run.objects.count())"],
)  # fmt: skip
# Runs each command in a process of its own, without loading Django each time.
RUN_COMMANDS = """
import json, os, sys, tempfile, traceback
import django
django.setup()
from evaluation.management.command_line import run_command
results = []
for command in json.load(sys.stdin):
    with tempfile.TemporaryFile("w+") as output:
        if not (pid := os.fork()):
            os.dup2(output.fileno(), 1)
            os.dup2(output.fileno(), 2)
            sys.argv = ["manage.py", *command]
            code = 0
            try:
                run_command()
            except SystemExit as ending:
                code = ending.code
            except BaseException:
                traceback.print_exc()
                code = 2
            if isinstance(code, str):
                print(code, file=sys.stderr)
                code = 1
            sys.stdout.flush()
            os._exit(code or 0)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        output.seek(0)
        results.append([status, output.read()])
print(json.dumps(results))
"""


def run_commands(site: Site, commands: Sequence[Sequence[str]]) -> list[tuple[int, str]]:
    """Exit codes and outputs of commands."""
    completed = subprocess.run(
        [sys.executable, "-c", RUN_COMMANDS], cwd=ROOT, env=site.environment, input=json.dumps(commands),
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    return [(code, output) for code, output in json.loads(completed.stdout)]


@pytest.mark.survives(
    "Older code on a database that newer code migrated",
    happens="Commands and `serve` refuse it; a running site answers 503.",
    see="A sentence with both versions; `database_newer`.",
)
def test_older_code_refuses_the_database_and_names_the_version(site: Site) -> None:
    parent = site.start("manage.py", "serve", "--no-worker", "--port", str(port := free_port()))
    wait_until(lambda: site_answers(port), seconds=120)
    recorded = site.rows("SELECT name FROM django_migrations WHERE app = 'concord'")
    assert len(recorded) == 1
    site.manage("shell", "--no-imports", "-c", MIGRATE_BY_NEWER_CODE)
    wait_until(lambda: send_request(port, "/readyz")[0] == 503, seconds=15)
    assert json.loads(send_request(port, "/readyz")[1])["problems"] == ["database_newer"]
    parent.terminate()
    parent.wait(60)
    commands = [[part.format(folder=site.folder, port=free_port()) for part in command] for command in COMMANDS]
    *refusals, (code, health) = run_commands(site, [*commands, ["healthcheck"]])
    sentence = f"Concord 9.1.0 migrated the database. Concord {recorded[0][0]} does not know review.0999_later."
    for command, (exit_code, output) in zip(COMMANDS, refusals, strict=True):
        assert sentence in output, (command, output)
        assert (exit_code, "Traceback" in output) == (1, False), (command, output)
    assert code == 1
    assert ("(database_newer)" in health, "Concord 9.1.0" in health, "Traceback" in health) == (True, True, False)
