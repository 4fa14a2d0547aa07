"""Two web hosts and three clusters on one PostgreSQL, in working folders of their own, killed in turn (17.9)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.faults.several_hosts import Host
from tests.faults.site import Site, command_line, descendants, kill
from tests.faults.test_kills import assert_each_score_once, prepare_run
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.faults, pytest.mark.parametrize("site", ["postgres"], indirect=True)]
ANSWERS = 300
START = (
    "from evaluation.models import Run; from evaluation.worker.lifecycle import start; start(Run.objects.get(pk={}))"
)


def wait_until(condition: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.3)


def all_processes(host: Host) -> list[int]:
    """Return all processes of a host, as lost in a power failure."""
    return [host.process.pid, *descendants(host.process.pid)]


def cluster_leader(host: Host) -> list[int]:
    """The leader of its cluster, which ``serve`` starts again."""
    return [pid for pid in descendants(host.process.pid) if "qcluster" in command_line(pid)][:1]


@pytest.mark.parametrize(
    ("clusters", "webs"),
    [
        ((cluster_leader, all_processes), (all_processes,)),
        pytest.param((all_processes, all_processes), (all_processes,), marks=pytest.mark.endurance),
        pytest.param((cluster_leader, cluster_leader, cluster_leader), (), marks=pytest.mark.endurance),
    ],
    ids=["a leader, a host and a web host", "two hosts and a web host", "every leader"],
)
@pytest.mark.survives(
    "Whole hosts that die (PostgreSQL)",
    happens="The remaining hosts complete the run.",
    see="No heartbeat of the dead host.",
)
def test_surviving_hosts_complete_the_run_whichever_hosts_die(
    site: Site,
    judge: JudgeServer,
    clusters: tuple[Callable[[Host], list[int]], ...],
    webs: tuple[Callable[[Host], list[int]], ...],
) -> None:
    judge.latency = 0.3
    run = prepare_run(site, judge, ANSWERS, "--draft")
    workers = [Host(site, f"worker{number}") for number in range(3)]
    web = [Host(site, f"web{number}", web=True) for number in range(2)]
    wait_until(lambda: all(host.is_ready() for host in web), seconds=120)
    beats = "SELECT host FROM evaluation_heartbeat WHERE host LIKE 'worker%' ORDER BY host"
    wait_until(lambda: len(site.rows(beats)) == 3, seconds=120)  # by their names, though it is one machine
    site.python("manage.py", "shell", "--no-imports", "-c", START.format(run))
    for number, list_victims in enumerate(clusters):
        wait_until(lambda: judge.calls >= 30 * (number + 1), seconds=120)  # noqa: B023
        killed = list_victims(workers[number])
        assert killed
        for pid in killed:
            kill(pid)
    for number, list_victims in enumerate(webs):
        for pid in list_victims(web[number]):
            kill(pid)
        assert web[1].is_ready()
    site.wait_for(run, "completed", seconds=120)
    assert_each_score_once(site, run, ANSWERS)
    assert web[1].is_ready()
