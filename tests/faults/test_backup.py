"""Backups of a running run with active reviewers: complete, consistent, and the run can be resumed from them."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

import psycopg
import pytest

from tests.faults.site import Site, fresh_database
from tests.faults.test_kills import assert_each_score_once, prepare_run
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
        new_site = Site(folder, url, judge.origin)
        key = site.environment.get("SECRET_KEY") or (site.folder / "secret_key").read_text()
        new_site.environment["SECRET_KEY"] = key
        try:
            yield new_site
        finally:
            new_site.stop()


@pytest.mark.survives(
    "A backup restored in the middle of a run",
    happens="The run continues; calls made after the backup are paid again.",
    see="`restore` names the runs and the open calls.",
)
def test_backup_of_running_run_is_restored_and_resumes(site: Site, judge: JudgeServer, tmp_path: Path) -> None:
    judge.latency = 1.5
    run = prepare_run(site, judge, ANSWERS)
    site.serve()
    wait_until(lambda: judge.stats()["calls"] > 10, seconds=120)
    file = tmp_path / "concord.backup"
    printed = site.manage("backup", str(file))
    assert "read back and verified" in printed
    assert file.stat().st_mode & 0o077 == 0
    with pytest.raises(AssertionError, match="already exists and"):
        site.manage("backup", str(file))
    with empty_site(site, tmp_path / "elsewhere", judge) as restored_site:
        printed = restored_site.manage("restore", str(file))
        assert f"run {run} (running): " in printed
        assert "calls were in flight at that time" in printed
        assert "SECRET_KEY" not in printed
        done_count = restored_site.rows(
            f"SELECT COUNT(*) FROM evaluation_workunit WHERE run_id = {run} AND state = 'done'"
        )[0][0]
        assert 0 < done_count < 2 * ANSWERS
        judge.latency = 0.01
        restored_site.manage("work", "--once", str(run))
        restored_site.wait_for(run, "completed", seconds=60)
        assert_each_score_once(restored_site, run, ANSWERS)
        with pytest.raises(AssertionError, match="an empty location"):
            restored_site.manage("restore", str(file))


@pytest.mark.survives(
    "A backup while people rate",
    happens="It holds every rating acknowledged before it began.",
    see="`backup` prints its hash after reading it again.",
)
def test_backup_contains_every_rating_acknowledged_before_it(site: Site, judge: JudgeServer, tmp_path: Path) -> None:
    files: list[Path] = []
    with ThreadPoolExecutor(1) as pool:
        reviews = pool.submit(empty_queues, site, 4, {1: 180, 2: 60})
        while not reviews.done():
            files.append(tmp_path / f"{len(files)}.backup")
            site.manage("backup", str(files[-1]))
        reviews.result()
    rating_query = "SELECT id, created_at FROM review_rating ORDER BY id"
    ratings = site.rows(rating_query)
    backup_times = {file: backup_time(file) for file in files}
    during = [file for file in files if ratings[0][1] < backup_times[file] < ratings[-1][1]]
    assert during, "no backup was made while people were at work"
    for file in {during[len(during) // 2], files[-1]}:
        with empty_site(site, tmp_path / f"{file.stem}-place", judge) as restored_site:
            restored_site.manage("restore", str(file))
            restored_ratings = restored_site.rows(rating_query)
        assert set(restored_ratings) <= set(ratings)
        assert {row for row in ratings if row[1] < backup_times[file]} <= set(restored_ratings)


def backup_time(file: Path) -> str:
    """When a backup was begun, as the database writes times."""
    with zipfile.ZipFile(file) as archive:
        return str(json.loads(archive.read("manifest.json"))["made_at"]).replace("T", " ").removesuffix("Z")


@pytest.mark.survives(
    "A damaged or foreign backup",
    happens="`restore` refuses it; the database stays empty.",
    see="A sentence that names the file and its fault.",
)
def test_damaged_or_foreign_backup_is_refused_and_target_stays_empty(
    site: Site, judge: JudgeServer, tmp_path: Path
) -> None:
    site.manage("backup", str(file := tmp_path / "concord.backup"))
    with zipfile.ZipFile(file) as archive:
        manifest, content = archive.read("manifest.json"), archive.read("database")
    foreign_content = foreign_database(site, tmp_path)
    foreign_hash = {"sha256": sha256(foreign_content).hexdigest(), "bytes": len(foreign_content)}
    archives = {
        "is damaged": [{"database": content[:-1] + bytes([content[-1] ^ 1])}, {"database": None}],
        "doesn't match its manifest": [
            {"database": foreign_content, "manifest.json": json.dumps(json.loads(manifest) | foreign_hash).encode()}
        ],
        "isn't a readable backup": [{"manifest.json": None}],
    }
    with empty_site(site, tmp_path / "elsewhere", judge) as target_site:
        for message, changes in archives.items():
            for change in changes:
                with zipfile.ZipFile(file, "w") as archive:
                    for name, data in ({"manifest.json": manifest, "database": content} | change).items():
                        if data is not None:
                            archive.writestr(name, data)
                with pytest.raises(AssertionError, match=message) as refusal:
                    target_site.manage("restore", str(file))
                assert "Traceback" not in str(refusal.value)
        assert target_site.is_postgres or not (tmp_path / "elsewhere" / "site.sqlite3").exists()
        (tmp_path / "whole").mkdir()
        site.manage("backup", str(whole := tmp_path / "whole" / "concord.backup"))
        assert "Restored as of" in target_site.manage("restore", str(whole))


def foreign_database(site: Site, folder: Path) -> bytes:
    """A database of another program, as a backup of this kind of database holds it."""
    file = folder / "foreign"
    if site.is_postgres:
        with fresh_database("postgres", folder) as url:
            with psycopg.connect(url) as database:
                database.execute("CREATE TABLE recipes (name text)")
            subprocess.run(["pg_dump", "--format=custom", f"--file={file}", url], check=True)
    else:
        with closing(sqlite3.connect(file)) as database:
            database.execute("CREATE TABLE recipes (name text)")
    return file.read_bytes()


@pytest.mark.survives(
    "`serve` stopped before the file is copied",
    happens="SQLite's log is written into the file.",
    see="A line of the log where that failed.",
)
@pytest.mark.parametrize("reader_open", [False, True])
def test_serve_checkpoints_wal_on_stop_or_reports_failure(site: Site, judge: JudgeServer, reader_open: bool) -> None:
    if site.is_postgres:
        pytest.skip("a server's log is its own")
    site.environment["SITE_HEARTBEAT_SECONDS"] = "30"
    file = Path(site.database_url.removeprefix("sqlite:///"))
    parent = site.serve()
    wait_until(lambda: Path(f"{file}-wal").exists() and Path(f"{file}-wal").stat().st_size > 0)
    prepare_run(site, judge, 5, "--draft")
    with closing(sqlite3.connect(file)) as reader:
        if reader_open:
            reader.execute("BEGIN")
            reader.execute("SELECT COUNT(*) FROM evaluation_run").fetchone()
            site.manage("shell", "--no-imports", "-c", "from evaluation.worker.database import *; probe_write()")
        os.kill(parent.pid, signal.SIGTERM)
        assert parent.wait(60) == 0
    failure_reported = "cannot write SQLite's log into the database file" in (site.folder / "log").read_text()
    assert failure_reported is reader_open
    if not reader_open:
        assert not Path(f"{file}-wal").exists() or Path(f"{file}-wal").stat().st_size == 0
