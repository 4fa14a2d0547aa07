"""``serve`` restarts a killed process, and its claimed work is taken up at once."""

from __future__ import annotations

import os
import signal
import time
import urllib.request

import pytest

from tests.faults.site import Site, command_line, descendants, free_port, kill
from tests.faults.test_kills import assert_each_score_once, cluster_processes, prepare_run
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.faults]
BACK_SECONDS = 15  # in which the site answers again after a kill
LEASE_SECONDS = 90  # as by default; nothing below waits for it


def site_answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/login/", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def web_processes(parent: int) -> list[int]:
    """The web server's processes below ``serve``, its parent first; Python's own tracker of resources is none."""
    return [pid for pid in descendants(parent) if is_web(pid)]


def is_web(pid: int) -> bool:
    return "granian" in command_line(pid) or "spawn_main" in command_line(pid)


@pytest.mark.parametrize("victim", ["a web process", "the web server's parent"])
@pytest.mark.survives(
    "A killed web process",
    happens="It is replaced; the cluster keeps running.",
    see="`restarted` in `healthcheck`.",
)
def test_killed_web_process_restarts_and_cluster_stays_up(site: Site, judge: JudgeServer, victim: str) -> None:
    # Only the web server is to be restarted, however slowly the cluster starts.
    site.environment["SITE_WORKER_TIMEOUT_SECONDS"] = "120"
    parent = site.start("manage.py", "serve", "--port", str(port := free_port()))
    wait_until(lambda: site_answers(port) and len(cluster_processes(parent.pid)) >= 5)
    cluster = set(cluster_processes(parent.pid))
    for _ in range(2):
        leader, *web_workers = web_processes(parent.pid)
        kill(leader if victim == "the web server's parent" else web_workers[0])
        time.sleep(0.5)
        wait_until(lambda: site_answers(port), seconds=BACK_SECONDS)
        time.sleep(6)  # what ends again within 5.5 s is a failing start to granian
    assert parent.poll() is None
    assert cluster <= set(cluster_processes(parent.pid))
    assert site.rows("SELECT part, count FROM evaluation_processrestart") == [("web server", 2)]


@pytest.mark.parametrize("victim", ["the leader", "both workers"])
@pytest.mark.survives(
    "A killed cluster or its workers",
    happens="The next sweep on that machine takes over their units.",
    see="Calls continue before leases end.",
)
def test_units_of_killed_cluster_do_not_wait_for_lease_expiry(site: Site, judge: JudgeServer, victim: str) -> None:
    site.environment["SITE_LEASE_SECONDS"] = str(LEASE_SECONDS)
    run = prepare_run(site, judge, 200)
    parent = site.serve()
    wait_until(lambda: judge.stats()["calls"] > 20)
    killed = time.monotonic()
    cluster = cluster_processes(parent.pid)
    for pid in cluster[:1] if victim == "the leader" else cluster[2:]:
        kill(pid)
    site.wait_for(run, "completed", seconds=60)
    assert time.monotonic() - killed < LEASE_SECONDS * 2 / 3
    assert_each_score_once(site, run, 200)


@pytest.mark.survives(
    "A web server that keeps ending at its start",
    happens="`serve` gives up.",
    see="Exit 1 with “giving up”.",
)
@pytest.mark.slow
def test_permanently_failing_server_ends_serve_with_message(site: Site) -> None:
    site.environment["DJANGO_SETTINGS_MODULE"] = "config.settings"
    with_occupied = site.start("-c", OCCUPIED, str(port := free_port()))
    parent = site.start("-c", QUICKLY_HOPELESS, str(port))
    assert parent.wait(60) == 1
    os.kill(with_occupied.pid, signal.SIGKILL)
    assert "ended 3 times in a row soon after its start; giving up" in (site.folder / "log").read_text()


OCCUPIED = "import socket, sys, time; s = socket.socket(); s.bind(('127.0.0.1', int(sys.argv[1]))); time.sleep(60)"
QUICKLY_HOPELESS = """
import sys
from evaluation.worker import serving
serving.MAX_QUICK_EXITS = 2
child = serving.Child("the server", serving.web_command("127.0.0.1", int(sys.argv[1]), 1))
sys.exit(serving.Supervisor([child], lambda name, why: None, lambda: None, 60).run())
"""
