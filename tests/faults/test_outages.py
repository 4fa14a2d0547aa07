"""A judge that is unavailable during a run with several workers: it is called rarely, and no unit fails. Prints the
measurements (-s)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.faults.site import Site
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer, actions

ANSWERS, MAX_CONCURRENCY, RUNS = 700, 32, 2
MOST_CALLS = 30  # beyond those that are out when the first one fails
FAULTS = "('server_error', 'connection', 'unreached')"
Outage = tuple[Callable[[JudgeServer], None], Callable[[JudgeServer], JudgeServer]]


def fail_with_500(judge: JudgeServer) -> None:
    judge.behave(actions.status(500))


def end_failures(judge: JudgeServer) -> JudgeServer:
    judge.behave(actions.valid_reply())
    judge.latency = 0.05
    return judge


def restart_judge(judge: JudgeServer) -> JudgeServer:
    new_judge = JudgeServer(port=judge.port, latency=0.05, keep_log=False)
    new_judge.start()
    return new_judge


OUTAGES: dict[str, Outage] = {
    "500": (fail_with_500, end_failures),
    "refused": (JudgeServer.stop, restart_judge),
}


@pytest.mark.parametrize("kind", OUTAGES)
@pytest.mark.parametrize(
    "seconds",
    [
        pytest.param(20, marks=pytest.mark.faults),
        pytest.param(75, marks=pytest.mark.endurance),
        pytest.param(300, marks=pytest.mark.endurance),
    ],
)
@pytest.mark.survives(
    "A judge that is down for up to five minutes",
    happens="All workers stop calling and one probes; no answer fails.",
    see="`endpoint_down`; since when on the run's page.",
)
def test_workers_wait_out_judge_outage(site: Site, kind: str, seconds: int) -> None:
    site.environment |= {"CONCORD_WORKERS": "3", "SITE_HEARTBEAT_SECONDS": "5", "SITE_WORKER_TIMEOUT_SECONDS": "90"}
    start_outage, end_outage = OUTAGES[kind]
    judge = JudgeServer(latency=1.0, keep_log=False)
    judge.start()
    site.environment["CONCORD_JUDGE_ORIGINS"] = judge.origin
    arguments = (str(ANSWERS), judge.base_url, str(MAX_CONCURRENCY), str(RUNS))
    runs = [int(line) for line in site.python("-m", "tests.faults.prepare_many", *arguments).splitlines()[-RUNS:]]
    try:
        parent = site.serve()
        site.wait_for(runs[0], "running", seconds=240)
        site.start("manage.py", "work", "--once", str(runs[0]))
        wait_until(lambda: judge.calls > 100 and judge.in_flight >= MAX_CONCURRENCY / 2, seconds=120)
        in_flight = judge.in_flight
        start_outage(judge)
        workers = site.rows("SELECT COUNT(*) FROM evaluation_endpointquotalease")[0][0]
        time.sleep(seconds)
        endpoint_state = site.rows("SELECT down_since, fault, cooldown_until FROM evaluation_endpoint")[0]
        judge, outage_end = end_outage(judge), time.monotonic()
        wait_until(lambda: site.rows("SELECT down_since FROM evaluation_endpoint") == [(None,)], seconds=seconds + 120)
        recovery_seconds = time.monotonic() - outage_end
        for run in runs:
            site.wait_for(run, "completed", seconds=300)
        assert parent.poll() is None
    finally:
        judge.stop()
    failure_query = f"SELECT COUNT(*) FROM evaluation_reply WHERE outcome IN {FAULTS}"
    failed_calls = site.rows(failure_query)[0][0]
    units = site.rows("SELECT state, COUNT(*) FROM evaluation_workunit GROUP BY state")
    extra_calls = failed_calls - in_flight
    print(
        f"\n{site.database_url.split(':')[0]}, {kind} for {seconds} s, {workers} workers: {failed_calls} calls failed, "
        f"{in_flight} were out at first, {extra_calls} beyond; {units}; called again {recovery_seconds:.0f} s "
        f"after it was back"
    )
    assert endpoint_state[0] is not None
    assert endpoint_state[1] in FAULTS
    assert units == [("done", ANSWERS * RUNS)]
    assert extra_calls <= MOST_CALLS
