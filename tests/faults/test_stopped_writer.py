"""A command that stops in the middle of a transaction: other commands name it and end with a sentence."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.faults.site import Site, free_port
from tests.faults.test_database_away import send_request
from tests.faults.test_restarts import site_answers
from tests.faults.test_watchdog import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.parametrize("site", ["sqlite"], indirect=True)]
STOP_IN_TRANSACTION = """
import os, signal
from django.db import transaction
from evaluation.models import Project
with transaction.atomic():
    Project.objects.update(name="renamed")
    os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.mark.survives(
    "A command stopped in the middle of writing (SQLite)",
    happens="Other writers wait for a limited time and name it.",
    see="Its process number and command, in a sentence.",
)
def test_stopped_writer_is_named_to_those_who_wait(site: Site) -> None:
    site.start("manage.py", "serve", "--no-worker", "--port", str(port := free_port()))
    wait_until(lambda: site_answers(port), seconds=120)
    writer = site.start("manage.py", "shell", "--no-imports", "-c", STOP_IN_TRANSACTION)
    wait_until(lambda: is_stopped(writer.pid))
    waiting = [
        site.start("manage.py", *command)
        for command in (
            ["import_questions", str(question_file(site))],
            ["provision", str(provision_file(site))],
            ["purge"],
        )
    ]
    holder = f"by process {writer.pid} (manage.py shell, since 2"
    health = site.manage("healthcheck", check=False)
    assert ("(database_locked)" in health, holder in health, "Traceback" in health) == (True, True, False)
    assert [process.wait(120) for process in waiting] == [1, 1, 1]
    log = (site.folder / "log").read_text()
    assert log.count(holder) >= 3, log
    assert "Traceback" not in log
    assert "The database was busy for too long" in log
    status, page, _ = send_request(port, "/login/", "POST", "username=somebody&password=wrong")
    assert (status, "busy for too long" in page, "manage.py" in page) == (503, True, False)
    os.kill(writer.pid, signal.SIGCONT)
    assert writer.wait(60) == 0
    assert site.rows("SELECT DISTINCT name FROM evaluation_project") == [("renamed",)]
    assert send_request(port, "/login/", "POST", "username=somebody&password=wrong")[0] == 200


def provision_file(site: Site) -> Path:
    """A file that makes one person."""
    path = site.folder / "team.yaml"
    path.write_text("people:\n- {username: kim, roles: [lead]}\n")
    return path


def question_file(site: Site) -> Path:
    """A file with one question."""
    path = site.folder / "questions.csv"
    path.write_text("id,question\n1,How long is leave?\n")
    return path


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"
