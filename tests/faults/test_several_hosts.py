"""Two web hosts and three clusters on one PostgreSQL, in working folders of their own, killed in turn (17.9)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.faults.several_hosts import Host
from tests.faults.site import Site, command_line, descendants, kill
from tests.faults.test_kills import assert_each_score_once, prepared
from tests.judge_server import JudgeServer

pytestmark = [pytest.mark.faults, pytest.mark.parametrize("site", ["postgres"], indirect=True)]
ANSWERS = 300
START = (
    "from evaluation.models import Run; from evaluation.worker.lifecycle import start; start(Run.objects.get(pk={}))"
)


def wait_until(what: Callable[[], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.3)


def whole(host: Host) -> list[int]:
    """All processes of a host, as when it loses its power."""
    return [host.process.pid, *descendants(host.process.pid)]


def leader(host: Host) -> list[int]:
    """The leader of its cluster, which ``serve`` starts again."""
    return [pid for pid in descendants(host.process.pid) if "qcluster" in command_line(pid)][:1]


@pytest.mark.parametrize(
    ("clusters", "webs"),
    [
        ((leader, whole), (whole,)),
        pytest.param((whole, whole), (whole,), marks=pytest.mark.endurance),
        pytest.param((leader, leader, leader), (), marks=pytest.mark.endurance),
    ],
    ids=["a leader, a host and a web host", "two hosts and a web host", "every leader"],
)
def test_whichever_of_several_hosts_die_the_rest_ends_the_run(
    site: Site,
    judge: JudgeServer,
    clusters: tuple[Callable[[Host], list[int]], ...],
    webs: tuple[Callable[[Host], list[int]], ...],
) -> None:
    judge.latency = 0.3
    run = prepared(site, judge, ANSWERS, "--draft")
    workers = [Host(site, f"worker{number}") for number in range(3)]
    web = [Host(site, f"web{number}", web=True) for number in range(2)]
    wait_until(lambda: all(host.is_ready() for host in web), seconds=120)
    beats = "SELECT host FROM evaluation_heartbeat WHERE host LIKE 'worker%' ORDER BY host"
    wait_until(lambda: len(site.rows(beats)) == 3, seconds=120)  # by their names, though it is one machine
    site.python("manage.py", "shell", "--no-imports", "-c", START.format(run))
    for number, of in enumerate(clusters):
        wait_until(lambda: judge.calls >= 30 * (number + 1), seconds=120)  # noqa: B023
        killed = of(workers[number])
        assert killed
        for pid in killed:
            kill(pid)
    for number, of in enumerate(webs):
        for pid in of(web[number]):
            kill(pid)
        assert web[1].is_ready()
    site.wait_for(run, "completed", seconds=120)
    assert_each_score_once(site, run, ANSWERS)
    assert web[1].is_ready()
