"""The file of an SQLite database is exchanged while the site is in use: 503 until the site is restarted, and no file is
damaged."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path

import pytest

from evaluation.worker.database import mark_sqlite_file
from tests.faults.site import Site, free_port
from tests.faults.test_database_away import send_request
from tests.faults.test_restarts import site_answers
from tests.faults.test_watchdog import wait_until

pytestmark = [pytest.mark.faults, pytest.mark.parametrize("site", ["sqlite"], indirect=True)]
TOKEN = "concord_" + "t" * 43
PREPARE = f"""
import hashlib
from datetime import timedelta
from django.utils import timezone
from evaluation.models import ApiToken, Project, RoleGrant, User
project = Project.objects.first()
user = User.objects.create_user("writer", password="a good password")
RoleGrant.objects.create(user=user, project=project, role="evaluator")
ApiToken.objects.create(user=user, project=project, name="writer", scope="write",
    sha256=hashlib.sha256({TOKEN!r}.encode()).hexdigest(), expires_at=timezone.now() + timedelta(days=1))
"""


class Writers:
    """Threads that import question sets by REST, and count what was acknowledged."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.names: list[str] = []
        self.statuses: Counter[int] = Counter()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=[number]) for number in range(3)]
        for thread in self._threads:
            thread.start()

    def _write(self, number: int) -> None:
        count = 0
        while not self._stop.wait(0.02):
            count += 1
            name = f"set {self.port} {number} {count}"
            body = {"name": name, "questions": [{"id": str(row), "question": f"{name} {row}?"} for row in range(20)]}
            headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
            with suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
                with closing(connection):
                    connection.request("POST", "/api/v1/question-sets/", json.dumps(body), headers)
                    status = connection.getresponse().status
                self.statuses[status] += 1
                if status == 201:
                    self.names.append(name)

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def exchange(file: Path, other: Path) -> None:
    """Put the other file in the place of the database, and the database in its place."""
    file.rename(file.with_name("meanwhile"))
    other.rename(file)
    file.with_name("meanwhile").rename(other)


def stored_names(file: Path) -> set[str]:
    """The question sets of an undamaged file."""
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        return {name for (name,) in database.execute("SELECT name FROM evaluation_questionset")}


def start_site(site: Site) -> tuple[subprocess.Popen[bytes], int]:
    parent = site.start("manage.py", "serve", "--port", str(port := free_port()))
    wait_until(lambda: site_answers(port), seconds=120)
    return parent, port


def stop_site(parent: subprocess.Popen[bytes]) -> None:
    parent.send_signal(signal.SIGTERM)
    parent.wait(60)


@pytest.fixture
def files(site: Site) -> tuple[Path, Path]:
    """The database, and another one that may take its place."""
    site.manage("shell", "--no-imports", "-c", PREPARE)
    file = Path(site.database_url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(file)) as database:
        assert database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
    other = file.with_name("other.sqlite3")
    shutil.copy(file, other)
    return file, other


@pytest.mark.parametrize("is_copy", [False, True], ids=["another database", "a copy of the database"])
@pytest.mark.survives(
    "The SQLite file exchanged twenty times under load",
    happens="Nothing is written into the other file.",
    see="503 `database_replaced` until the site is restarted.",
)
def test_twenty_exchanges_under_load_damage_no_file(site: Site, files: tuple[Path, Path], is_copy: bool) -> None:
    file, other = files
    if not is_copy:
        with closing(sqlite3.connect(other)) as database:
            mark_sqlite_file(database)
    acknowledged: dict[str, set[str]] = {"first": set(), "second": set()}
    served, spare = "first", "second"
    for exchange_count, command in ((11, ["serve", "--port", str(free_port())]), (9, ["work", "--once"])):
        parent, port = start_site(site)
        writers = Writers(port)
        wait_until(lambda: len(writers.names) >= 10, seconds=120)  # noqa: B023
        for _ in range(exchange_count):
            exchange(file, other)
            time.sleep(0.3)
            served, spare = spare, served
        writers.stop()
        # An odd number of exchanges: the other file is in place now, and every process refuses it.
        for path in ["/question-sets/"] * 4 + ["/login/"] * 2:
            status, page, _ = send_request(port, path)
            assert (status, "deleted or replaced" in page) == (503, True)
        assert json.loads(send_request(port, "/api/v1/runs/")[1])["code"] == "database_replaced"
        wait_until(lambda: send_request(port, "/readyz")[0] == 503, seconds=15)  # noqa: B023
        assert json.loads(send_request(port, "/readyz")[1])["problems"] == ["database_replaced"]
        health = site.manage("healthcheck", check=False)
        assert ("(database_replaced)" in health, "healthy" in health) == (True, False)
        exchange(file, other)  # without a restart not even the right file is used
        assert send_request(port, "/login/")[0] == 503
        exchange(file, other)
        stop_site(parent)
        acknowledged[spare] |= set(writers.names)
        with pytest.raises(AssertionError, match="-wal belongs to an earlier database file") as refused:
            site.manage(*command)
        assert "Traceback" not in str(refused.value)
        for suffix in ("-wal", "-shm"):
            Path(f"{file}{suffix}").rename(f"{other}{suffix}")
        assert acknowledged[spare] <= stored_names(other)
    parent, port = start_site(site)
    assert send_request(port, "/login/")[0] == 200
    stop_site(parent)
    for name, path in ((served, file), (spare, other)):
        assert acknowledged[name] <= stored_names(path)
        assert not acknowledged["first" if name == "second" else "second"] & stored_names(path)


@pytest.mark.survives(
    "Another file copied over the SQLite file",
    happens="It is not used with the old file's `-wal`.",
    see="503 `database_replaced`; commands name `-wal`.",
)
def test_overwritten_file_is_noticed_and_is_not_damaged(site: Site, files: tuple[Path, Path]) -> None:
    file, other = files
    with closing(sqlite3.connect(other)) as database:
        mark_sqlite_file(database)
    parent, port = start_site(site)
    writers = Writers(port)
    wait_until(lambda: len(writers.names) >= 10, seconds=120)
    shutil.copyfile(other, file)
    time.sleep(2)
    writers.stop()
    assert send_request(port, "/login/")[0] == 503
    stop_site(parent)
    with pytest.raises(AssertionError, match="-wal belongs to an earlier database file"):
        site.manage("migrate")
    for suffix in ("-wal", "-shm"):
        Path(f"{file}{suffix}").unlink()
    assert stored_names(file) == stored_names(other) == set()
    parent, port = start_site(site)
    assert send_request(port, "/login/")[0] == 200


def test_restored_backup_takes_the_place_of_the_stopped_site(site: Site, files: tuple[Path, Path]) -> None:
    file, _ = files
    parent, port = start_site(site)
    writers = Writers(port)
    wait_until(lambda: len(writers.names) >= 10, seconds=120)
    site.manage("backup", str(backup := site.folder / "concord.backup"))
    wait_until(lambda: len(writers.names) >= 20, seconds=120)
    file.rename(file.with_name("moved"))
    with pytest.raises(AssertionError, match="restored to an empty location"):
        site.manage("restore", str(backup))
    file.with_name("moved").rename(file)
    writers.stop()
    stop_site(parent)
    file.rename(file.with_name("moved"))
    site.manage("restore", str(backup))
    parent, port = start_site(site)
    wait_until(lambda: send_request(port, "/readyz")[0] == 200, seconds=15)
    stop_site(parent)
    stored = stored_names(file.with_name("moved"))
    # A set may be stored whose answer was a 503, because the file was away when it was sent.
    assert stored_names(file) < stored >= set(writers.names)
