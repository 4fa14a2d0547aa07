"""Judges that misbehave, met by real worker processes (C1, C2, C4, C5, C6, C7, J1, J7)."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import web

from tests.faults.site import Site
from tests.faults.test_kills import prepared
from tests.faults.test_watchdog import wait_until
from tests.judge_server import JudgeServer, actions
from tests.judge_server.received import Received

pytestmark = [pytest.mark.faults]
ANSWERS = 20


def drained(site: Site, run: int) -> str:
    """The run's state after a worker process has drained it."""
    site.manage("work", "--once", str(run), "--seconds", "60")
    return site.state(run)


def outcomes(site: Site) -> dict[str, int]:
    return dict(site.rows("SELECT outcome, COUNT(*) FROM evaluation_reply GROUP BY outcome"))


def test_c1_a_wait_of_300_seconds_frees_the_worker_and_the_unit_keeps_it(site: Site, judge: JudgeServer) -> None:
    judge.enqueue(actions.status(429, retry_after="300"))
    run = prepared(site, judge, ANSWERS)
    started = time.monotonic()
    site.manage("work", "--once", str(run), "--seconds", "5")
    assert time.monotonic() - started < 60  # it did not sit the wait out
    assert site.state(run) == "running"
    assert outcomes(site)["rate_limited"] == 1


@pytest.mark.parametrize("header", ["1", "date", "soon"])
def test_c1_short_dated_and_senseless_waits_end_complete(site: Site, judge: JudgeServer, header: str) -> None:
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True) if header == "date" else header
    judge.enqueue(actions.status(429, retry_after=when))
    run = prepared(site, judge, ANSWERS)
    assert drained(site, run) == "completed"
    assert outcomes(site) == {"ok": ANSWERS, "rate_limited": 1}


@pytest.mark.parametrize(("fault", "outcome"), [(actions.hang(), "timeout"), (actions.drip(), "timeout")])
def test_c2_a_hang_and_a_drip_end_by_the_deadline(
    site: Site, judge: JudgeServer, fault: actions.Action, outcome: str
) -> None:
    judge.enqueue(fault)
    run = prepared(site, judge, ANSWERS)
    assert drained(site, run) == "completed"
    assert outcomes(site) == {"ok": ANSWERS, outcome: 1}


def test_c4_a_key_that_expires_pauses_the_run_at_once_and_it_goes_on_after_a_person_acted(
    site: Site, judge: JudgeServer
) -> None:
    judge.enqueue(actions.fitting(), actions.status(401))
    run = prepared(site, judge, 200)
    assert drained(site, run) == "paused"
    assert site.rows(f"SELECT reason FROM evaluation_run WHERE id = {run}") == [("unauthorised",)]
    assert judge.calls < 60  # not five tries for each of two hundred answers
    site.manage("resume_run", str(run))
    assert site.state(run) == "completed"


def test_c5_a_server_without_schemas_and_tools_is_asked_for_json(site: Site, judge: JudgeServer) -> None:
    judge.behave(actions.without("json_schema", "tool"))
    run = prepared(site, judge, ANSWERS)
    assert drained(site, run) == "completed"
    assert outcomes(site) == {"ok": ANSWERS}
    assert site.rows("SELECT rung, calls FROM evaluation_preflight") == [("json_object", 5)]


def test_c6_missing_usage_leaves_the_cost_unknown_and_says_so(site: Site, judge: JudgeServer) -> None:
    judge.behave(actions.fitting(usage=None))
    run = prepared(site, judge, ANSWERS)
    assert drained(site, run) == "completed"
    assert site.rows("SELECT COUNT(*) FROM evaluation_reply WHERE cost IS NULL AND tokens_in IS NULL") == [(ANSWERS,)]
    assert "does not tell how many tokens" in site.manage("results", str(run))


def test_c7_a_changed_model_name_is_told(site: Site, judge: JudgeServer) -> None:
    judge.enqueue(*[actions.fitting(model="another-model")] * 5)
    run = prepared(site, judge, ANSWERS)
    assert drained(site, run) == "completed"
    told = site.manage("results", str(run))
    assert "Several models answered under the name of remote@1" in told
    assert f"another-model (5), test-model ({ANSWERS - 5})" in told


def test_j1_j7_a_judge_that_answers_mostly_with_prose_leaves_the_run_incomplete(site: Site, judge: JudgeServer) -> None:
    judge.when(lambda r: not r.is_preflight and r.block["question"].split()[-1][:-1] <= "20", actions.text("Fine."))
    run = prepared(site, judge, ANSWERS)
    assert drained(site, run) == "incomplete"
    found = outcomes(site)
    assert found["parse"] == 2 * (ANSWERS - found["ok"])  # one repair try each
    assert found["parse"] / 2 >= 0.6 * ANSWERS
    raw = site.rows("SELECT DISTINCT raw FROM evaluation_reply WHERE outcome = 'parse'")
    assert raw == [("Fine.",)]
    site.manage("results", str(run), check=False)
    judge.reset()
    site.manage("retry_failed", str(run))
    assert site.state(run) == "completed"


SHARES = "SELECT COUNT(*) FROM evaluation_endpointquotalease WHERE requested > 1"  # a preflight wants one place


def held(until: threading.Event) -> actions.Action:
    """A fitting answer, but not before that."""

    async def act(request: Received, http: web.Request) -> web.StreamResponse:
        await asyncio.to_thread(until.wait, 90)
        return await actions.fitting()(request, http)

    return act


@pytest.mark.parametrize("workers", ["drains", "clusters"])
def test_a_budget_stops_three_workers_with_at_most_the_calls_in_flight_beyond_it(
    site: Site, judge: JudgeServer, workers: str
) -> None:
    (site.folder / "prices.yaml").write_text(
        "prices:\n- {model: test-model, since: 2025-01-01, input: '1', output: '1'}\n"
    )
    more = {"PRICES": str(site.folder / "prices.yaml"), "WORKERS": "1", "CALL_SECONDS": "90", "BUDGET_SECONDS": "90"}
    site.environment |= {f"CONCORD_{name}": value for name, value in more.items()}
    call = 0.00096  # dollars: 960 tokens at one a million
    run = prepared(site, judge, 400, "--budget=0.1920")  # 200 calls
    all_at_work = threading.Event()
    judge.when(lambda request: not request.is_preflight, held(all_at_work))
    if workers == "clusters":
        rings = f"from evaluation.worker.dispatch import enqueue_run; [enqueue_run({run}) for _ in range(9)]"
        site.manage("shell", "--no-imports", "-c", rings)
    arguments = ["qcluster"] if workers == "clusters" else ["work", "--once", str(run), "--seconds", "90"]
    for _ in range(3):
        site.start("manage.py", *arguments)
    wait_until(lambda: site.rows(SHARES) == [(3,)], 80)
    judge.latency = 0.2
    all_at_work.set()
    site.wait_for(run, "paused", seconds=90)
    wait_until(lambda: site.rows(SHARES) == [(0,)])  # what was out is written down
    assert site.rows(f"SELECT state, reason FROM evaluation_run WHERE id = {run}") == [("paused", "budget")]
    assert judge.peak == 32  # places, shared by the three
    spent = float(site.rows("SELECT SUM(cost) FROM evaluation_reply")[0][0]) + judge.preflights * call
    assert 0.1920 - 32 * call <= spent <= 0.1920 + 32 * call + 1e-9
    site.manage("resume_run", str(run), "--budget", "10", check=False)
    site.wait_for(run, "completed", seconds=60)
    assert judge.calls <= 400  # nothing was asked twice
