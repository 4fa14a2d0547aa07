"""The parent: a wedged cluster recovers without a person, and nothing is left behind (T2, T3, T10)."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.faults.site import Site, command_line, descendants, free_port, kill
from tests.faults.test_kills import assert_each_score_once, cluster_processes, prepare_run
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.faults]


@pytest.mark.survives(
    "A cluster that hangs",
    happens="The watchdog restarts it.",
    see="`restarted` in `healthcheck`.",
)
def test_watchdog_restarts_cluster_wedged_by_killed_workers(site: Site, judge: JudgeServer) -> None:
    parent = site.serve()
    wait_until(lambda: len(cluster_processes(parent.pid)) >= 5)
    for _ in range(3):  # killing the workers that wait for work takes the queue's lock with them
        for pid in cluster_processes(parent.pid)[2:]:
            kill(pid)
        time.sleep(1)
    run = prepare_run(site, judge, 40)
    site.wait_for(run, "completed", seconds=120)
    assert_each_score_once(site, run, 40)


def test_killed_cluster_leader_leaves_no_working_orphan(site: Site, judge: JudgeServer) -> None:
    parent = site.serve()
    wait_until(lambda: len(cluster_processes(parent.pid)) >= 5)
    old_processes = cluster_processes(parent.pid)
    kill(old_processes[0])
    wait_until(lambda: not any("qcluster" in command_line(pid) for pid in old_processes))
    wait_until(lambda: len(cluster_processes(parent.pid)) >= 5)
    run = prepare_run(site, judge, 10)
    site.wait_for(run, "completed", seconds=60)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.survives(
    "Ctrl-C or SIGTERM in mid run",
    happens="All processes end; the run continues at the next start.",
    see="Exit 0.",
)
def test_signal_ends_all_processes_within_grace_and_run_resumes(site: Site, judge: JudgeServer, number: int) -> None:
    judge.latency = 0.3
    run = prepare_run(site, judge, 240)
    parent = site.serve()
    wait_until(lambda: judge.stats()["calls"] > 10)
    child_pids = descendants(parent.pid)
    os.kill(parent.pid, number)
    assert parent.wait(20) == 0
    assert not [pid for pid in child_pids if "qcluster" in command_line(pid) or "granian" in command_line(pid)]
    assert site.state(run) == "running"
    judge.latency = 0.01
    site.serve()
    site.wait_for(run, "completed", seconds=90)
    assert_each_score_once(site, run, 240)


def test_idle_site_stops_on_signal_without_kills(site: Site) -> None:
    parent = site.serve()
    wait_until(lambda: len(cluster_processes(parent.pid)) >= 5)
    time.sleep(3)  # until the cluster waits for work
    os.kill(parent.pid, signal.SIGINT)
    assert parent.wait(20) == 0
    assert "killing it" not in (site.folder / "log").read_text()


@pytest.mark.survives(
    "`serve` itself killed",
    happens="Its processes end with it.",
    see="No orphans; a supervisor can start it again.",
)
def test_children_end_with_killed_parent(site: Site) -> None:
    parent = site.serve()
    wait_until(lambda: len(cluster_processes(parent.pid)) >= 5)
    child_pids = descendants(parent.pid)
    kill(parent.pid)
    parent.wait()
    wait_until(
        lambda: not [pid for pid in child_pids if "qcluster" in command_line(pid) or "granian" in command_line(pid)]
    )


def test_loading_web_processes_end_with_killed_parent(site: Site) -> None:
    parent = site.start("manage.py", "serve", "--no-worker", "--port", str(free_port()))
    wait_until(lambda: len(web_processes(descendants(parent.pid))) >= 2)
    child_pids = descendants(parent.pid)
    time.sleep(0.2)  # within the second or two that loading takes, signals to these processes are lost
    kill(parent.pid)
    parent.wait()
    wait_until(lambda: not web_processes(child_pids))


def web_processes(child_pids: list[int]) -> list[int]:
    return [pid for pid in child_pids if "granian" in command_line(pid)]


def wait_until(condition: object, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():  # type: ignore[operator]
            return
        time.sleep(0.2)
    raise AssertionError("it did not happen in time")
