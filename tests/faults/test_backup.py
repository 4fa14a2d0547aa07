"""Backups taken in mid run with reviewers at work: whole, of one moment, and the run goes on from there."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.faults.site import Site, fresh_database
from tests.faults.test_kills import assert_each_score_once, prepared
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer
from tests.review.people import empty_queues

pytestmark = [pytest.mark.faults]
ANSWERS = 200


@contextmanager
def empty_site(site: Site, folder: Path, judge: JudgeServer) -> Iterator[Site]:
    """Another place of the same kind, with nothing in it and the same signing key."""
    folder.mkdir()
    with fresh_database("postgres" if site.is_postgres else "sqlite", folder) as url:
        made = Site(folder, url, judge.origin)
        key = site.environment.get("SECRET_KEY") or (site.folder / "secret_key").read_text()
        made.environment["SECRET_KEY"] = key
        try:
            yield made
        finally:
            made.stop()


def test_a_backup_of_a_run_in_work_is_restored_and_goes_on(site: Site, judge: JudgeServer, tmp_path: Path) -> None:
    judge.latency = 1.5
    run = prepared(site, judge, ANSWERS)
    site.serve()
    wait_until(lambda: judge.stats()["calls"] > 10, seconds=120)
    file = tmp_path / "concord.backup"
    printed = site.manage("backup", str(file))
    assert "read again: whole" in printed
    assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(AssertionError, match="There is a file"):
        site.manage("backup", str(file))
    with empty_site(site, tmp_path / "elsewhere", judge) as other:
        printed = other.manage("restore", str(file))
        assert f"run {run} (running): " in printed
        assert "calls were out at that moment" in printed
        assert "SECRET_KEY" not in printed
        done = other.rows(f"SELECT COUNT(*) FROM evaluation_workunit WHERE run_id = {run} AND state = 'done'")[0][0]
        assert 0 < done < 2 * ANSWERS
        judge.latency = 0.01
        other.manage("work", "--once", str(run))
        other.wait_for(run, "completed", seconds=60)
        assert_each_score_once(other, run, ANSWERS)
        with pytest.raises(AssertionError, match="an empty place only"):
            other.manage("restore", str(file))


def test_every_rating_acknowledged_before_a_backup_is_in_it(site: Site, judge: JudgeServer, tmp_path: Path) -> None:
    files: list[Path] = []
    with ThreadPoolExecutor(1) as pool:
        people = pool.submit(empty_queues, site, 4, {1: 180, 2: 60})
        while not people.done():
            files.append(tmp_path / f"{len(files)}.backup")
            site.manage("backup", str(files[-1]))
        people.result()
    asked = "SELECT id, created_at FROM review_rating ORDER BY id"
    kept = site.rows(asked)
    made = {file: made_at(file) for file in files}
    during = [file for file in files if kept[0][1] < made[file] < kept[-1][1]]
    assert during, "no backup was made while people were at work"
    for file in {during[len(during) // 2], files[-1]}:
        with empty_site(site, tmp_path / f"{file.stem}-place", judge) as other:
            other.manage("restore", str(file))
            held = other.rows(asked)
        assert set(held) <= set(kept)
        assert {row for row in kept if row[1] < made[file]} <= set(held)


def made_at(file: Path) -> str:
    """When a backup was begun, as the database writes times."""
    with zipfile.ZipFile(file) as archive:
        return str(json.loads(archive.read("manifest.json"))["made_at"]).replace("T", " ").removesuffix("Z")


def test_a_damaged_backup_and_a_stranger_are_refused_and_the_place_stays_empty(
    site: Site, judge: JudgeServer, tmp_path: Path
) -> None:
    site.manage("backup", str(file := tmp_path / "concord.backup"))
    with zipfile.ZipFile(file) as archive:
        manifest, content = archive.read("manifest.json"), archive.read("database")
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("manifest.json", manifest)
        archive.writestr("database", content[:-1] + bytes([content[-1] ^ 1]))
    (stranger := tmp_path / "stranger").write_text("no archive")
    with empty_site(site, tmp_path / "elsewhere", judge) as other:
        for wrong, message in ((file, "is damaged"), (stranger, "is no backup that can be read")):
            with pytest.raises(AssertionError, match=message):
                other.manage("restore", str(wrong))
        assert not (tmp_path / "elsewhere" / "site.sqlite3").exists()


@pytest.mark.parametrize("held", [False, True])
def test_serve_writes_the_log_back_when_it_stops_or_says_that_it_could_not(
    site: Site, judge: JudgeServer, held: bool
) -> None:
    if site.is_postgres:
        pytest.skip("a server's log is its own")
    site.environment["SITE_HEARTBEAT_SECONDS"] = "30"
    file = Path(site.database_url.removeprefix("sqlite:///"))
    parent = site.serve()
    wait_until(lambda: Path(f"{file}-wal").exists() and Path(f"{file}-wal").stat().st_size > 0)
    prepared(site, judge, 5, "--draft")
    with closing(sqlite3.connect(file)) as reader:
        if held:
            reader.execute("BEGIN")
            reader.execute("SELECT COUNT(*) FROM evaluation_run").fetchone()
            site.manage("shell", "--no-imports", "-c", "from evaluation.worker.database import *; try_writing()")
        os.kill(parent.pid, signal.SIGTERM)
        assert parent.wait(60) == 0
    said = "could not be written back" in (site.folder / "log").read_text()
    assert said is held
    if not held:
        assert not Path(f"{file}-wal").exists() or Path(f"{file}-wal").stat().st_size == 0
