"""A second ``serve`` on the same port or database ends at once with a sentence."""

from __future__ import annotations

import subprocess
import sys
import time

import psycopg
import pytest

from tests.faults.site import ROOT, Site, free_port, kill
from tests.faults.test_restarts import site_answers
from tests.faults.test_watchdog import wait_until

pytestmark = [pytest.mark.faults]
HOLDERS = """SELECT pid FROM pg_locks JOIN pg_stat_activity USING (pid)
WHERE locktype = 'advisory' AND classid = 20711 AND granted AND datname = current_database()"""
AT_ONCE_SECONDS = 120  # to start Django on a busy machine


def serve(site: Site, *options: str, **environment: str) -> subprocess.Popen[str]:
    """Start ``serve`` with its output in a pipe."""
    process = subprocess.Popen(
        [sys.executable, "manage.py", "serve", *options],
        cwd=ROOT, env=site.environment | environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    site.processes.append(process)  # type: ignore[arg-type]  # its output is text
    return process


def refusal(process: subprocess.Popen[str]) -> str:
    """The output of a server that ended by itself."""
    output = process.communicate(timeout=AT_ONCE_SECONDS)[0]
    assert (process.returncode, "Traceback" in output) == (1, False), output
    return output


@pytest.mark.survives(
    "Two `serve` started at once on one port",
    happens="One of them serves.",
    see="The other ends with a sentence.",
)
def test_of_two_servers_started_together_one_gets_the_port(site: Site) -> None:
    port = free_port()
    # Two sites, as far as the processes can see.
    servers = [serve(site, "--no-worker", "--port", str(port), DATABASE_URL=f"sqlite:///{site.folder}/{name}.sqlite3")
               for name in "ab"]  # fmt: skip
    wait_until(lambda: any(server.poll() is not None for server in servers), seconds=AT_ONCE_SECONDS)
    time.sleep(3)
    loser, winner = sorted(servers, key=lambda server: server.poll() is None)
    assert f"Port {port} is in use" in refusal(loser)
    assert winner.poll() is None
    late = serve(site, "--no-worker", "--port", str(port))
    assert f"Port {port} is in use" in refusal(late)


@pytest.mark.survives(
    "Two `serve` on one database",
    happens="One of them serves.",
    see="The other ends with a sentence.",
)
def test_database_has_one_server_of_each_part(site: Site) -> None:
    first = site.start("manage.py", "serve", "--port", str(port := free_port()))
    wait_until(lambda: site_answers(port), seconds=120)
    if site.is_postgres:
        # Any number of hosts serve pages, and workers of any other name help.
        assert "is already served by a process on" in refusal(serve(site, "--no-web"))
        others = [serve(site, "--no-worker", "--port", str(free_port())), serve(site, "--no-web", CONCORD_HOST="other")]
        time.sleep(6)
        assert [other.poll() for other in others] == [None, None]
    else:
        for options in (["--port", str(free_port())], ["--no-worker", "--port", str(free_port())], ["--no-web"]):
            assert f"is already served by process {first.pid} (manage.py serve, since 2" in refusal(
                serve(site, *options)
            )
    assert first.poll() is None
    kill(first.pid)
    first.wait()
    wait_until(lambda: not site_answers(port))
    site.start("manage.py", "serve", "--port", str(port))
    wait_until(lambda: site_answers(port), seconds=120)


def test_worker_reserves_its_name_again_after_a_restart_of_postgresql(site: Site) -> None:
    if not site.is_postgres:
        pytest.skip("SQLite's reservation is a lock of a file")
    first = site.serve()

    def holders() -> set[int]:
        with psycopg.connect(site.database_url) as server:
            return {pid for (pid,) in server.execute(HOLDERS)}

    wait_until(lambda: len(holders()) == 1, seconds=120)
    with psycopg.connect(site.database_url) as server:
        (old,) = holders()
        server.execute("SELECT pg_terminate_backend(%s)", [old])
    wait_until(lambda: holders() and old not in holders())
    assert "is already served" in refusal(serve(site, "--no-web"))
    assert first.poll() is None
