"""A site of its own for one test: a database, the settings that make faults show quickly, and its processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg

ROOT = Path(__file__).resolve().parents[2]


class Site:
    """Runs ``manage.py`` and cluster processes against one database; ``rows`` reads it."""

    def __init__(self, folder: Path, database_url: str, judge_origin: str) -> None:
        self.folder = folder
        self.database_url = database_url
        self.processes: list[subprocess.Popen[bytes]] = []
        self.environment = {
            **os.environ,
            "DATABASE_URL": database_url,
            "CONCORD_VAR": str(folder),
            "CONCORD_JUDGE_ORIGINS": judge_origin,
            "SITE_LEASE_SECONDS": "4",
            "SITE_TASK_SECONDS": "10",
            "CONCORD_CALL_SECONDS": "5",
            "SITE_HEARTBEAT_SECONDS": "1",
            "SITE_WORKER_TIMEOUT_SECONDS": "8",
            "CONCORD_WORKERS": "2",
            "CONCORD_DISPATCHER": "django_q",
            "DJANGO_SETTINGS_MODULE": "tests.faults.settings",
        }

    @property
    def is_postgres(self) -> bool:
        """Return whether the site's database is PostgreSQL."""
        return self.database_url.startswith("postgres")

    def manage(self, *arguments: str, check: bool = True) -> str:
        """Run ``manage.py`` to its end and return its output."""
        return self.python("manage.py", *arguments, check=check)

    def python(self, *arguments: str, check: bool = True) -> str:
        """Run Python to its end and return its output."""
        completed = subprocess.run(
            [sys.executable, *arguments], cwd=ROOT, env=self.environment, capture_output=True, text=True, check=False
        )
        if check and completed.returncode:
            raise AssertionError(
                f"{arguments} ended with {completed.returncode}:\n{completed.stdout}\n{completed.stderr}"
            )
        return completed.stdout.strip()

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a process that is killed with the site, output into ``log`` of its folder."""
        log = (self.folder / "log").open("ab")
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env=self.environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def serve(self) -> subprocess.Popen[bytes]:
        """Start web server, cluster and watchdog."""
        return self.start("manage.py", "serve", "--port", str(free_port()))

    def stop(self) -> None:
        """End every process of the site, whatever its state."""
        for process in self.processes:
            for pid in [*descendants(process.pid), process.pid]:
                kill(pid)
            process.wait()

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a query, by the shell of Django so that both databases read alike."""
        code = (
            "import json; from django.db import connection as c; k = c.cursor(); "
            f"k.execute({sql!r}); print(json.dumps([list(r) for r in k.fetchall()], default=str))"
        )
        return [tuple(row) for row in json.loads(self.python("manage.py", "shell", "--no-imports", "-c", code))]

    def state(self, run: int) -> str:
        """The run's state."""
        return str(self.rows(f"SELECT state FROM evaluation_run WHERE id = {run}")[0][0])

    def wait_for(self, run: int, *states: str, seconds: float) -> str:
        """Wait until the run is in one of the states.

        :raises AssertionError: with the units by state and the end of the log when it does not get there in time.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if (state := self.state(run)) in states:
                return state
            time.sleep(0.5)
        units = self.rows(f"SELECT state, kind, COUNT(*) FROM evaluation_workunit WHERE run_id = {run} GROUP BY 1, 2")
        log = (self.folder / "log").read_text(errors="replace")[-3000:] if (self.folder / "log").exists() else ""
        raise AssertionError(f"run {run} is {self.state(run)} after {seconds} s; units {units}\n{log}")


def free_port() -> int:
    """Return an unused port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Signal a process that may be gone already."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def descendants(pid: int) -> list[int]:
    """Return all processes below one, from /proc, children before grandchildren."""
    parents: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it ended while we looked
            continue
        if fields[0] != "Z":
            parents.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    pids, queue = [], [pid]
    while queue:
        children = parents.get(queue.pop(0), [])
        pids += children
        queue += children
    return pids


def command_line(pid: int) -> str:
    """Return the command line of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@contextmanager
def fresh_database(kind: str, folder: Path, template_url: str = "") -> Iterator[str]:
    """Provide the address of a database of the kind, removed afterwards: empty, or a copy of the one at
    ``template_url``, which must be unused meanwhile."""
    if kind == "sqlite":
        if template_url:
            shutil.copy(template_url.removeprefix("sqlite:///"), folder / "site.sqlite3")
        yield f"sqlite:///{folder}/site.sqlite3"
        return
    server = os.environ["CONCORD_TEST_POSTGRES"]
    name = f"concord_faults_{os.getpid()}_{free_port()}"
    template = urlsplit(template_url).path.removeprefix("/") or "template1"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')
        try:
            yield urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
        finally:
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
