"""A judge that is away for a while in mid run, with several workers: it is called seldom, and no unit fails of it. What
was measured is printed (-s)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.faults.site import Site
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer, actions

ANSWERS, PLACES, RUNS = 700, 32, 2
MOST_CALLS = 30  # beyond those that are out when the first one fails
FAULTS = "('server_error', 'connection', 'unreached')"
Outage = tuple[Callable[[JudgeServer], None], Callable[[JudgeServer], JudgeServer]]


def five_hundreds(judge: JudgeServer) -> None:
    judge.behave(actions.status(500))


def well_again(judge: JudgeServer) -> JudgeServer:
    judge.behave(actions.fitting())
    judge.latency = 0.05
    return judge


def begun_anew(judge: JudgeServer) -> JudgeServer:
    again = JudgeServer(port=judge.port, latency=0.05, keep_log=False)
    again.start()
    return again


OUTAGES: dict[str, Outage] = {
    "500": (five_hundreds, well_again),
    "refused": (JudgeServer.stop, begun_anew),
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
def test_an_outage_of_the_judge_is_waited_out(site: Site, kind: str, seconds: int) -> None:
    site.environment |= {"CONCORD_WORKERS": "3", "SITE_HEARTBEAT_SECONDS": "5", "SITE_WEDGED_SECONDS": "90"}
    away, back = OUTAGES[kind]
    judge = JudgeServer(latency=1.0, keep_log=False)
    judge.start()
    site.environment["CONCORD_JUDGE_ORIGINS"] = judge.origin
    many = (str(ANSWERS), judge.base_url, str(PLACES), str(RUNS))
    runs = [int(line) for line in site.python("-m", "tests.faults.prepare_many", *many).splitlines()[-RUNS:]]
    try:
        parent = site.serve()
        site.wait_for(runs[0], "running", seconds=240)
        site.start("manage.py", "work", "--once", str(runs[0]))
        wait_until(lambda: judge.calls > 100 and judge.in_flight >= PLACES / 2, seconds=120)
        out = judge.in_flight
        away(judge)
        workers = site.rows("SELECT COUNT(*) FROM evaluation_endpointquotalease")[0][0]
        time.sleep(seconds)
        down = site.rows("SELECT down_since, fault, cooldown_until FROM evaluation_endpoint")[0]
        judge, ended = back(judge), time.monotonic()
        wait_until(lambda: site.rows("SELECT down_since FROM evaluation_endpoint") == [(None,)], seconds=seconds + 120)
        waited = time.monotonic() - ended
        for run in runs:
            site.wait_for(run, "completed", seconds=300)
        assert parent.poll() is None
    finally:
        judge.stop()
    found = f"SELECT COUNT(*) FROM evaluation_reply WHERE outcome IN {FAULTS}"
    failed = site.rows(found)[0][0]
    units = site.rows("SELECT state, COUNT(*) FROM evaluation_workunit GROUP BY state")
    beyond = failed - out
    print(
        f"\n{site.database_url.split(':')[0]}, {kind} for {seconds} s, {workers} workers: {failed} calls failed, "
        f"{out} were out at first, {beyond} beyond; {units}; called again {waited:.0f} s after it was back"
    )
    assert down[0] is not None
    assert down[1] in FAULTS
    assert units == [("done", ANSWERS * RUNS)]
    assert beyond <= MOST_CALLS
