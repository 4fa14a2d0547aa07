"""Throughput of one, two and three clusters on one PostgreSQL (``CONCORD_TEST_POSTGRES``): ``python -m
tools.bench.hosts [--seconds 40] [--places 16] [--latency 2]``.

Each cluster is a host of its own (``serve --no-web``) with two workers; the endpoint allows 16 concurrent calls for
each cluster, and the judge takes two seconds. Measured are answered calls per second from the first to the last; the
goal is 1.8 times one cluster with two clusters, and 2.6 times with three."""

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


def calls_per_second(clusters: int, max_concurrency: int, latency: float, seconds: float) -> float:
    """Calls a second of so many clusters, over about so many seconds."""
    count = int(clusters * max_concurrency / latency * seconds)
    with (
        tempfile.TemporaryDirectory() as folder,
        JudgeServer(latency=latency, keep_log=False) as judge,
        fresh_database("postgres", Path(folder)) as url,
    ):
        site = Site(Path(folder), url, judge.origin)
        default_settings = {"SITE_LEASE_SECONDS": "90", "SITE_TASK_SECONDS": "45", "SITE_WORKER_TIMEOUT_SECONDS": "120"}
        site.environment |= default_settings | {"CONCORD_CALL_SECONDS": "60"}
        site.manage("migrate", "--verbosity", "0")
        options = ("--draft", f"--places={clusters * max_concurrency}")
        run = int(site.python("-m", "tests.faults.prepare", str(count), judge.base_url, *options).splitlines()[-1])
        try:
            for number in range(clusters):
                Host(site, f"host{number}")
            while len(site.rows("SELECT host FROM evaluation_heartbeat")) < clusters:
                time.sleep(1)
            site.python("manage.py", "shell", "--no-imports", "-c", START.format(run))
            site.wait_for(run, "completed", seconds=20 * seconds + 120)
        finally:
            site.stop()
        time_query = "SELECT MIN(a.created_at), MAX(r.created_at), COUNT(*) FROM evaluation_reply r "
        time_query += "JOIN evaluation_attempt a ON a.id = r.attempt_id WHERE r.outcome = 'ok'"
        first_call, last_reply, calls = site.rows(time_query)[0]
    return float(calls) / (datetime.fromisoformat(last_reply) - datetime.fromisoformat(first_call)).total_seconds()


def main() -> None:
    """Print one line for each number of clusters."""
    parser = argparse.ArgumentParser()
    for name, default in (("seconds", 40.0), ("places", 16), ("latency", 2.0)):
        parser.add_argument(f"--{name}", type=type(default), default=default)
    options = parser.parse_args()
    single_rate = 0.0
    for clusters in (1, 2, 3):
        rate = calls_per_second(clusters, options.places, options.latency, options.seconds)
        single_rate = single_rate or rate
        times, ideal_share = rate / single_rate, rate / (clusters * options.places / options.latency)
        print(f"{clusters} clusters: {rate:.1f} calls a second, {times:.2f} times one, {ideal_share:.2f} of the ideal")


if __name__ == "__main__":
    main()
