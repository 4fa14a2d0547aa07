"""The work of one, two and three clusters beside each other on one PostgreSQL (``CONCORD_TEST_POSTGRES``):
``python -m tools.bench.hosts [--seconds 40] [--places 16] [--latency 2]``.

Each cluster is a host of its own (``serve --no-web``) with two workers; the endpoint allows 16 calls at a time for each
of them, and the judge takes two seconds. Counted are calls answered in a second from the first to the last; the aim is
1.8 times those of one cluster with two, and 2.6 times with three.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from datetime import datetime
from pathlib import Path

from tests.faults.several_hosts import Host
from tests.faults.site import Site, fresh_database
from tests.faults.test_several_hosts import START
from tests.judge_server import JudgeServer


def answered(clusters: int, places: int, latency: float, seconds: float) -> float:
    """Calls a second of so many clusters, over about so many seconds."""
    count = int(clusters * places / latency * seconds)
    with (
        tempfile.TemporaryDirectory() as folder,
        JudgeServer(latency=latency, keep_log=False) as judge,
        fresh_database("postgres", Path(folder)) as url,
    ):
        site = Site(Path(folder), url, judge.origin)
        usual = {"SITE_LEASE_SECONDS": "90", "SITE_BUDGET_SECONDS": "45", "SITE_WEDGED_SECONDS": "120"}
        site.environment |= usual | {"CONCORD_CALL_SECONDS": "60"}
        site.manage("migrate", "--verbosity", "0")
        told = ("--draft", f"--places={clusters * places}")
        run = int(site.python("-m", "tests.faults.prepare", str(count), judge.base_url, *told).splitlines()[-1])
        try:
            for number in range(clusters):
                Host(site, f"host{number}")
            while len(site.rows("SELECT host FROM evaluation_heartbeat")) < clusters:
                time.sleep(1)
            site.python("manage.py", "shell", "--no-imports", "-c", START.format(run))
            site.wait_for(run, "completed", seconds=20 * seconds + 120)
        finally:
            site.stop()
        sent = "SELECT MIN(a.created_at), MAX(r.created_at), COUNT(*) FROM evaluation_reply r "
        sent += "JOIN evaluation_attempt a ON a.id = r.attempt_id WHERE r.outcome = 'ok'"
        first, last, calls = site.rows(sent)[0]
    return float(calls) / (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def main() -> None:
    """One line for each number of clusters."""
    parser = argparse.ArgumentParser()
    for name, usual in (("seconds", 40.0), ("places", 16), ("latency", 2.0)):
        parser.add_argument(f"--{name}", type=type(usual), default=usual)
    given = parser.parse_args()
    alone = 0.0
    for clusters in (1, 2, 3):
        found = answered(clusters, given.places, given.latency, given.seconds)
        alone = alone or found
        times, part = found / alone, found / (clusters * given.places / given.latency)
        print(f"{clusters} clusters: {found:.1f} calls a second, {times:.2f} times one, {part:.2f} of the ideal")


if __name__ == "__main__":
    main()
